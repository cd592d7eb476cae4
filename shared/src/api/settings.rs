use crate::best_exit::{DecisionRules, Settings};
use serde::{Deserialize, Serialize};

/// GET `/settings`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SettingsAnswer {
    /// Counts edits; sent back with a PUT.
    pub version: i64,
    /// The settings in force.
    #[serde(flatten)]
    pub settings: Settings,
}

/// PUT `/settings`: fields that are absent stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SettingsInput {
    /// The version that was edited; 409 when another edit came first. Absent: whatever is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// See [`Settings`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monitor_tunnel_quality_enabled: Option<bool>,
    /// See [`Settings`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_target: Option<String>,
    /// See [`Settings`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_interval_ms: Option<u64>,
    /// See [`Settings`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ping_count: Option<u32>,
    /// See [`Settings`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ping_timeout_ms: Option<u64>,
    /// See [`Settings`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmations: Option<u32>,
    /// See [`Settings`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown_ms: Option<u64>,
    /// See [`Settings`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_advantage_ms: Option<f64>,
    /// See [`Settings`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_advantage_ratio: Option<f64>,
    /// See [`Settings`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_penalty_ms_per_percent: Option<f64>,
    /// See [`Settings`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apply_retry_ms: Option<u64>,
    /// See [`Settings`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmeasured_grace_ms: Option<u64>,
    /// See [`Settings`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention_days: Option<u32>,
    /// See [`Settings`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_rules: Option<DecisionRules>,
}

impl SettingsInput {
    /// The settings with the given fields changed.
    pub fn over(self, old: Settings) -> Settings {
        Settings {
            monitor_tunnel_quality_enabled: self
                .monitor_tunnel_quality_enabled
                .unwrap_or(old.monitor_tunnel_quality_enabled),
            probe_target: self.probe_target.unwrap_or(old.probe_target),
            round_interval_ms: self.round_interval_ms.unwrap_or(old.round_interval_ms),
            ping_count: self.ping_count.unwrap_or(old.ping_count),
            ping_timeout_ms: self.ping_timeout_ms.unwrap_or(old.ping_timeout_ms),
            confirmations: self.confirmations.unwrap_or(old.confirmations),
            cooldown_ms: self.cooldown_ms.unwrap_or(old.cooldown_ms),
            min_advantage_ms: self.min_advantage_ms.unwrap_or(old.min_advantage_ms),
            min_advantage_ratio: self.min_advantage_ratio.unwrap_or(old.min_advantage_ratio),
            loss_penalty_ms_per_percent: self
                .loss_penalty_ms_per_percent
                .unwrap_or(old.loss_penalty_ms_per_percent),
            apply_retry_ms: self.apply_retry_ms.unwrap_or(old.apply_retry_ms),
            unmeasured_grace_ms: self.unmeasured_grace_ms.unwrap_or(old.unmeasured_grace_ms),
            retention_days: self.retention_days.unwrap_or(old.retention_days),
            decision_rules: self.decision_rules.unwrap_or(old.decision_rules),
        }
    }
}
