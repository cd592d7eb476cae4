//! The numbers that govern `best`, with defaults and ranges.

use crate::address::HostPort;
use crate::field::FieldError;
use serde::{Deserialize, Serialize};

/// Which set of rules decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum DecisionRules {
    /// Consecutive rounds, advantage and cooldown.
    #[default]
    Classic,
    /// Windows, margins scaled to the noise, states, growing cooldown.
    Adaptive,
}

/// All settings of measuring and deciding. One place; changed at run time through `/settings`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Settings {
    /// Off: nothing is probed, applied orders stay.
    pub monitor_tunnel_quality_enabled: bool,
    /// What an exit is measured against, `host:port`.
    pub probe_target: String,
    /// Between the starts of two rounds.
    pub round_interval_ms: u64,
    /// Samples per leg and round.
    pub ping_count: u32,
    /// Per sample. Below the kernel's 1 s SYN timer, so that a lost SYN is a lost sample and not a slow one.
    pub ping_timeout_ms: u64,
    /// Consecutive rounds in which the same exit must win.
    pub confirmations: u32,
    /// Between two switches of one owner.
    pub cooldown_ms: u64,
    /// Smallest advantage in score, absolute.
    pub min_advantage_ms: f64,
    /// Smallest advantage as a share of the current score.
    pub min_advantage_ratio: f64,
    /// What one percent of loss costs.
    pub loss_penalty_ms_per_percent: f64,
    /// After a refused or unanswered push, before it is tried again.
    pub apply_retry_ms: u64,
    /// For how long an unmeasured current exit with a good leg A is kept.
    pub unmeasured_grace_ms: u64,
    /// How long history is kept.
    pub retention_days: u32,
    /// Which set of rules decides.
    pub decision_rules: DecisionRules,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            monitor_tunnel_quality_enabled: true,
            probe_target: "www.bing.com:443".to_owned(),
            round_interval_ms: 5000,
            ping_count: 4,
            ping_timeout_ms: 900,
            confirmations: 3,
            cooldown_ms: 30_000,
            min_advantage_ms: 20.0,
            min_advantage_ratio: 0.15,
            loss_penalty_ms_per_percent: 100.0,
            apply_retry_ms: 30_000,
            unmeasured_grace_ms: 60_000,
            retention_days: 7,
            decision_rules: DecisionRules::Classic,
        }
    }
}

/// The allowed range of one numeric setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// JSON name.
    pub field: &'static str,
    /// Lowest allowed.
    pub min: f64,
    /// Highest allowed.
    pub max: f64,
}

/// The allowed ranges, for validation and for the page's inputs.
pub const RANGES: [Range; 11] = {
    const fn range(field: &'static str, min: f64, max: f64) -> Range {
        Range { field, min, max }
    }
    [
        range("roundIntervalMs", 500.0, 3_600_000.0),
        range("pingCount", 1.0, 20.0),
        range("pingTimeoutMs", 100.0, 10_000.0),
        range("confirmations", 1.0, 100.0),
        range("cooldownMs", 0.0, 86_400_000.0),
        range("minAdvantageMs", 0.0, 10_000.0),
        range("minAdvantageRatio", 0.0, 1.0),
        range("lossPenaltyMsPerPercent", 0.0, 10_000.0),
        range("applyRetryMs", 0.0, 86_400_000.0),
        range("unmeasuredGraceMs", 0.0, 86_400_000.0),
        range("retentionDays", 1.0, 3650.0),
    ]
};

impl Settings {
    /// Checks every range; `[]` means valid.
    pub fn validate(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for range in RANGES {
            let value = self.number(range.field);
            if !(range.min..=range.max).contains(&value) {
                let message = format!("must be between {} and {}", range.min, range.max);
                errors.push(
                    FieldError::new(range.field, "out_of_range", message)
                        .with("min", range.min)
                        .with("max", range.max),
                );
            }
        }
        if let Err(error) = HostPort::parse(&self.probe_target) {
            errors.push(FieldError::new("probeTarget", error.code(), error.to_string()));
        }
        errors
    }

    /// A numeric setting by its JSON name. NaN for a name that is none (outside every range, so never valid).
    pub fn number(&self, field: &str) -> f64 {
        match field {
            "roundIntervalMs" => self.round_interval_ms as f64,
            "pingCount" => f64::from(self.ping_count),
            "pingTimeoutMs" => self.ping_timeout_ms as f64,
            "confirmations" => f64::from(self.confirmations),
            "cooldownMs" => self.cooldown_ms as f64,
            "minAdvantageMs" => self.min_advantage_ms,
            "minAdvantageRatio" => self.min_advantage_ratio,
            "lossPenaltyMsPerPercent" => self.loss_penalty_ms_per_percent,
            "applyRetryMs" => self.apply_retry_ms as f64,
            "unmeasuredGraceMs" => self.unmeasured_grace_ms as f64,
            "retentionDays" => f64::from(self.retention_days),
            _ => f64::NAN,
        }
    }

    /// How long an agent may take for a batch: `pingCount * (pingTimeout + 100 ms) + 1 s`.
    pub fn answer_deadline_ms(&self) -> u64 {
        u64::from(self.ping_count) * (self.ping_timeout_ms + 100) + 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_as_specified() {
        let settings = Settings::default();
        assert_eq!(settings.validate(), []);
        assert_eq!(serde_json::from_str::<Settings>("{}").unwrap(), settings);
        assert_eq!(settings.answer_deadline_ms(), 5000);
    }

    #[test]
    fn each_range_is_enforced_at_both_ends() {
        for range in RANGES {
            for (value, valid) in
                [(range.min, true), (range.max, true), (range.min - 1.0, false), (range.max + 1.0, false)]
            {
                let mut json = serde_json::to_value(Settings::default()).unwrap();
                json[range.field] = if value.fract() == 0.0 && !range.field.starts_with("minAdvantage") {
                    serde_json::json!(value as i64)
                } else {
                    serde_json::json!(value)
                };
                // A negative number does not even parse where the type is unsigned; that is a refusal too.
                let errors = match serde_json::from_value::<Settings>(json) {
                    Ok(settings) => settings.validate(),
                    Err(_) => vec![FieldError::new(range.field, "out_of_range", "")],
                };
                assert_eq!(errors.is_empty(), valid, "{} = {value}", range.field);
                assert!(errors.iter().all(|e| e.field == range.field && e.code == "out_of_range"));
            }
        }
    }

    #[test]
    fn target_and_rules() {
        let settings = Settings { probe_target: "https://x".into(), ..Settings::default() };
        assert_eq!(settings.validate()[0].field, "probeTarget");
        let settings = Settings { decision_rules: DecisionRules::Adaptive, ..Settings::default() };
        assert_eq!(settings.validate(), []);
        for name in ["minAdvantageMs", "minAdvantageRatio", "lossPenaltyMsPerPercent"] {
            assert!(!Settings::default().number(name).is_nan());
        }
        let settings = Settings { min_advantage_ratio: f64::NAN, ..Settings::default() };
        assert_eq!(settings.validate()[0].field, "minAdvantageRatio");
    }
}
