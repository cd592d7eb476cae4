//! Counters of the panel, for Prometheus.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::sync::Arc;

/// Upper ends of the round durations' buckets, in seconds. A round's legs take the samples' spacing (0.6 s by default)
/// plus a round trip; the deadline of agents is 5 s by default.
const ROUND_BUCKETS_S: [f64; 9] = [0.1, 0.25, 0.5, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0];
/// Upper ends of the push durations' buckets, in seconds; a push is given up after 6 s.
const PUSH_BUCKETS_S: [f64; 8] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 6.0];

/// All metrics. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Registry>,
    /// Rounds of the prober that ended.
    pub rounds: Counter,
    /// How long they took.
    pub round_duration: Histogram,
    /// Legs by outcome.
    pub legs: Family<OutcomeLabel, Counter>,
    /// Legs asked for and not answered yet.
    pub legs_in_flight: Gauge,
    /// Evaluations of owners by reason code.
    pub decisions: Family<ReasonLabel, Counter>,
    /// Switches accepted by an owner.
    pub switches: Counter,
    /// Pushed orders by outcome.
    pub pushes: Family<OutcomeLabel, Counter>,
    /// From the decision to the owner's answer.
    pub push_duration: Histogram,
    /// Objects sent to nodes, by outcome.
    pub objects: Family<OutcomeLabel, Counter>,
    /// Agents connected now.
    pub agents_online: Gauge,
    /// Connections refused because of an unknown secret.
    pub agents_refused: Counter,
    /// Owners with a state.
    pub owners: Gauge,
}

/// A reason's code.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ReasonLabel {
    /// [`shared::best_exit::Reason::code`].
    pub reason: &'static str,
}

/// How something ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OutcomeLabel {
    /// A word.
    pub outcome: &'static str,
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("exitpilot");
        let metrics = Self {
            registry: Arc::new(Registry::default()),
            rounds: Counter::default(),
            round_duration: Histogram::new(ROUND_BUCKETS_S),
            legs: Family::default(),
            legs_in_flight: Gauge::default(),
            decisions: Family::default(),
            switches: Counter::default(),
            pushes: Family::default(),
            push_duration: Histogram::new(PUSH_BUCKETS_S),
            objects: Family::default(),
            agents_online: Gauge::default(),
            agents_refused: Counter::default(),
            owners: Gauge::default(),
        };
        registry.register("rounds", "Rounds of the prober that ended", metrics.rounds.clone());
        registry.register_with_unit(
            "round_duration",
            "From the start of a round to its last leg",
            Unit::Seconds,
            metrics.round_duration.clone(),
        );
        registry.register("legs", "Legs by outcome", metrics.legs.clone());
        registry.register("legs_in_flight", "Legs being measured", metrics.legs_in_flight.clone());
        registry.register("decisions", "Evaluations of owners by reason", metrics.decisions.clone());
        registry.register("switches", "Switches accepted by an owner", metrics.switches.clone());
        registry.register("pushes", "Pushed orders by outcome", metrics.pushes.clone());
        registry.register_with_unit(
            "push_duration",
            "From a decision to the owner's answer",
            Unit::Seconds,
            metrics.push_duration.clone(),
        );
        registry.register("objects", "Configuration objects sent to nodes", metrics.objects.clone());
        registry.register("agents_online", "Connected agents", metrics.agents_online.clone());
        registry.register(
            "agents_refused",
            "Connections with an unknown secret",
            metrics.agents_refused.clone(),
        );
        registry.register("owners", "Owners of best tunnels", metrics.owners.clone());
        Self { registry: Arc::new(registry), ..metrics }
    }

    /// The text for `/metrics`.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing into a String cannot fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }

    /// Counts one more of `family` with this outcome.
    pub fn count(family: &Family<OutcomeLabel, Counter>, outcome: &'static str) {
        family.get_or_create(&OutcomeLabel { outcome }).inc();
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_shown() {
        let metrics = Metrics::new();
        metrics.switches.inc();
        metrics.decisions.get_or_create(&ReasonLabel { reason: "current_is_best" }).inc_by(2);
        Metrics::count(&metrics.pushes, "refused");
        metrics.round_duration.observe(0.7);
        let text = metrics.encode();
        for line in [
            "exitpilot_switches_total 1",
            "exitpilot_decisions_total{reason=\"current_is_best\"} 2",
            "exitpilot_pushes_total{outcome=\"refused\"} 1",
            "exitpilot_round_duration_seconds_count 1",
            "exitpilot_agents_online 0",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    }
}
