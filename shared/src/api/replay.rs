use super::WallMs;
use crate::replay::question::Question;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// POST `/tunnels/{id}/replay`: what other ways of choosing would have done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ReplayInput {
    /// Settings that decide and differ from those in force: `decisionRules`, `confirmations`, `cooldownMs`, `minAdvantageMs`,
    /// `minAdvantageRatio`, `lossPenaltyMsPerPercent`, `applyRetryMs`, `unmeasuredGraceMs`. Without `decisionRules` both sets
    /// of rules are replayed.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub settings: Map<String, Value>,
    /// Policies of groups beside them, such as `urltest(tolerance=20ms)`; at most 16.
    pub policies: Vec<String>,
    /// First moment of the history; default: a day before `to`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<WallMs>,
    /// Last moment, excluded; default: now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<WallMs>,
    /// Only this owner, by its name; without it all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Also the settings in force as they are, as the first way of choosing. All are judged by the changed settings.
    pub in_force: bool,
    /// Also suggest settings: tries two dozen of them, which takes most of the time.
    pub suggest: bool,
}

impl ReplayInput {
    /// What is asked of the history.
    pub fn into_question(self) -> Question {
        let Self { settings, policies, owner, in_force, suggest, .. } = self;
        Question { settings, policies, owner, in_force, suggest }
    }
}
