//! Counters of the panel, for Prometheus.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use shared::best_exit::Reason;
use std::sync::Arc;

/// Upper ends of the round durations' buckets, in seconds. A round's legs take the samples' spacing (0.6 s by default)
/// plus a round trip; the deadline of agents is 5 s by default.
const ROUND_BUCKETS_S: [f64; 9] = [0.1, 0.25, 0.5, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0];
/// Upper ends of the push durations' buckets, in seconds; a push is given up after 6 s.
const PUSH_BUCKETS_S: [f64; 8] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 6.0];

/// How legs end; see [`Metrics::legs`].
const LEGS: [&str; 3] = ["measured", "failed", "unmeasured"];
/// How pushes of orders end; see [`Metrics::pushes`].
const PUSHES: [&str; 4] = ["accepted", "refused", "unanswered", "offline"];
/// How pushes of other objects end; see [`Metrics::objects`].
const OBJECTS: [&str; 3] = ["accepted", "refused", "unanswered"];

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
        metrics.begin();
        Self { registry: Arc::new(registry), ..metrics }
    }

    /// Every series is there from the start: of one that appears with its first event nobody sees that event.
    fn begin(&self) {
        for (family, outcomes) in
            [(&self.legs, &LEGS[..]), (&self.pushes, &PUSHES[..]), (&self.objects, &OBJECTS[..])]
        {
            for outcome in outcomes {
                let _ = family.get_or_create(&OutcomeLabel { outcome });
            }
        }
        for reason in Reason::CODES {
            let _ = self.decisions.get_or_create(&ReasonLabel { reason });
        }
    }

    /// The text for `/metrics`.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing into a String cannot fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }

    /// Counts one more of `family` with this outcome, one of those it began with.
    pub fn count(family: &Family<OutcomeLabel, Counter>, outcome: &'static str) {
        debug_assert!(family.get(&OutcomeLabel { outcome }).is_some(), "{outcome} is not documented");
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
    use std::collections::BTreeSet;

    /// The words in backticks.
    fn words(text: &str) -> impl Iterator<Item = String> {
        text.split('`').skip(1).step_by(2).map(str::to_owned)
    }

    /// Every name with its kind and its labels, and every label with its values, as one line each.
    fn series(text: &str) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE exitpilot_")) {
            let (name, kind) = line.split_once(' ').unwrap();
            let name = if kind == "counter" { format!("{name}_total") } else { name.to_owned() };
            let begins = format!("exitpilot_{name}{{");
            let labelled: Vec<(&str, &str)> = samples
                .iter()
                .filter_map(|sample| sample.strip_prefix(&begins)?.split_once("=\""))
                .map(|(label, rest)| (label, rest.split('"').next().unwrap()))
                .collect();
            let label = labelled.first().map_or("", |(label, _)| label);
            all.insert(format!("{name} {kind} {label}").trim_end().to_owned());
            all.extend(labelled.iter().map(|(label, value)| format!("{name} {label}={value}")));
        }
        all
    }

    /// The same, from the tables of the document: of all metrics, and of a label's values under its metric's heading.
    fn documented(text: &str) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        let mut heading = None;
        for line in text.lines() {
            if let Some(title) = line.strip_prefix("## ") {
                let mut of = words(title);
                heading = of.next().zip(of.next());
            }
            let Some(row) = line.strip_prefix("| `") else { continue };
            let cells: Vec<&str> = row.split(" | ").collect();
            match &heading {
                None => {
                    let name = cells[0].trim_end_matches('`');
                    let label = words(cells[2]).next().unwrap_or_default();
                    all.insert(format!("{name} {} {label}", cells[1]).trim_end().to_owned());
                }
                Some((name, label)) => {
                    let first = format!("`{}", cells[0]);
                    all.extend(words(&first).map(|value| format!("{name} {label}={value}")));
                }
            }
        }
        all
    }

    #[test]
    fn the_document_has_every_metric_and_no_other() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/panel-metrics.md");
        let (told, shown) =
            (documented(&std::fs::read_to_string(path).unwrap()), series(&Metrics::new().encode()));
        let missing: Vec<&String> = shown.difference(&told).collect();
        let invented: Vec<&String> = told.difference(&shown).collect();
        assert!(missing.is_empty() && invented.is_empty(), "not told: {missing:?}, not there: {invented:?}");
        // 12 metrics and what their labels can be.
        assert!(shown.len() > 12 + Reason::CODES.len(), "{shown:?}");
    }

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
