//! Settings for a history: what candidates would have done, and how often each would switch for nothing.

use super::history::Subject;
use super::random::Random;
use super::report::{Outcome, ReplayError, Way, compare};
use super::trace::Trace;
use crate::best_exit::{Applied, Candidate, DecisionRules, Leg, OwnerState, Round, Settings};
use serde::{Deserialize, Serialize};

/// Switches for nothing that a day may have.
const FALSE_PER_DAY: f64 = 1.0;
/// A mean excess this much above the least is as good; then fewer switches count.
const AS_GOOD_RATIO: f64 = 0.02;
const AS_GOOD_MS: f64 = 0.5;
/// Less history than this says little about a day.
const FEW_DAYS: f64 = 1.0;
const DAY_MS: f64 = 86_400_000.0;

/// Settings that were tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Tried {
    /// Which rules.
    pub decision_rules: DecisionRules,
    /// Consecutive rounds (classic only).
    pub confirmations: u32,
    /// Between two switches.
    pub cooldown_ms: u64,
    /// Smallest advantage as a share.
    pub min_advantage_ratio: f64,
    /// What they would have done.
    pub outcome: Outcome,
    /// Switches in a day if every round's measurements had been given to the exits by lot, after their usual latencies
    /// were made equal: what is left is noise, and every switch is for nothing.
    pub false_switches_per_day: f64,
}

/// Settings that would have done better, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Suggestion {
    /// All settings, with what is suggested.
    pub settings: Settings,
    /// Names of those that differ from the ones that were replayed, with both values.
    pub changes: Vec<Change>,
    /// Why these.
    pub why: String,
    /// Everything that was tried, the suggested first.
    pub tried: Vec<Tried>,
}

/// A setting that is to be changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Change {
    /// Its name.
    pub name: String,
    /// The value that was replayed.
    pub from: String,
    /// The value that is suggested.
    pub to: String,
}

/// The settings in force first, then the candidates.
fn candidates(settings: &Settings) -> Vec<Settings> {
    let mut all = vec![settings.clone()];
    let mut add = |candidate: Settings| {
        if !all.contains(&candidate) {
            all.push(candidate);
        }
    };
    for cooldown_ms in [30_000, 120_000, 600_000] {
        for min_advantage_ratio in [0.15, 0.3] {
            let base = Settings { cooldown_ms, min_advantage_ratio, ..settings.clone() };
            for confirmations in [2, 3, 5, 8] {
                add(Settings { confirmations, decision_rules: DecisionRules::Classic, ..base.clone() });
            }
            add(Settings { decision_rules: DecisionRules::Adaptive, ..base });
        }
    }
    all
}

/// Tries candidates on what owners measured. `proceed` is asked now and then.
pub(super) fn suggest(
    subjects: &[&Subject],
    settings: &Settings,
    proceed: &dyn Fn() -> bool,
) -> Result<Suggestion, ReplayError> {
    let traces: Vec<&Trace> = subjects.iter().map(|subject| &subject.trace).collect();
    let noise: Vec<Vec<DatedRound>> = traces.iter().map(|trace| by_lot(trace)).collect();
    let days = (traces.iter().map(|trace| trace.known_ms() as f64).sum::<f64>() / DAY_MS).max(1e-9);
    let candidates = candidates(settings);
    let ways: Vec<Way> = candidates.iter().cloned().map(Way::best).collect();
    let outcomes = compare("", subjects, &ways, settings.loss_penalty_ms_per_percent, proceed)?.policies;
    let attempt = |(settings, outcome): (Settings, Outcome)| {
        if !proceed() {
            return Err(ReplayError::Stopped);
        }
        let in_vain: usize = traces
            .iter()
            .zip(&noise)
            .map(|(trace, rounds)| switches(rounds, trace.recorded_every_ms, &settings))
            .sum();
        let tried = Tried {
            decision_rules: settings.decision_rules,
            confirmations: settings.confirmations,
            cooldown_ms: settings.cooldown_ms,
            min_advantage_ratio: settings.min_advantage_ratio,
            outcome,
            false_switches_per_day: in_vain as f64 / days,
        };
        Ok((settings, tried))
    };
    let mut tried: Vec<(Settings, Tried)> =
        candidates.into_iter().zip(outcomes).map(attempt).collect::<Result<_, _>>()?;
    let best = choose(&tried);
    let chosen = tried.remove(best);
    let why = explain(&chosen.1, if best == 0 { None } else { tried.first().map(|(_, now)| now) }, days);
    let mut all = vec![chosen.1];
    all.extend(tried.into_iter().map(|(_, tried)| tried));
    Ok(Suggestion { changes: changes(settings, &chosen.0), settings: chosen.0, why, tried: all })
}

/// Among those that switch for nothing rarely enough, the ones with about the least excess; of these the one that
/// switches least, and the settings in force (the first) before others. If none is quiet enough, the quietest.
fn choose(tried: &[(Settings, Tried)]) -> usize {
    let quiet = |tried: &Tried| tried.false_switches_per_day <= FALSE_PER_DAY;
    let least = tried
        .iter()
        .filter(|(_, tried)| quiet(tried))
        .map(|(_, tried)| tried.outcome.mean_excess_ms)
        .min_by(f64::total_cmp);
    let rank = |tried: &Tried| match least {
        Some(least) => {
            let as_good = tried.outcome.mean_excess_ms <= least * (1.0 + AS_GOOD_RATIO) + AS_GOOD_MS;
            (!(quiet(tried) && as_good), tried.outcome.switches as f64, tried.outcome.mean_excess_ms)
        }
        None => (false, tried.false_switches_per_day, tried.outcome.mean_excess_ms),
    };
    let order = |a: &usize, b: &usize| {
        let ((a_out, a_first, a_then), (b_out, b_first, b_then)) = (rank(&tried[*a].1), rank(&tried[*b].1));
        a_out.cmp(&b_out).then(a_first.total_cmp(&b_first)).then(a_then.total_cmp(&b_then)).then(a.cmp(b))
    };
    // `candidates` begins with the settings in force, so there is one.
    (0..tried.len()).min_by(order).unwrap_or(0)
}

fn explain(chosen: &Tried, now: Option<&Tried>, days: f64) -> String {
    let figures = |tried: &Tried| {
        format!(
            "mean excess {:.1} ms, {:.1} switches and {:.1} flaps a day, {:.1} a day for nothing, left after {}",
            tried.outcome.mean_excess_ms,
            tried.outcome.switches_per_day,
            tried.outcome.flaps_per_day,
            tried.false_switches_per_day,
            tried.outcome.detection_ms.map_or("-".to_owned(), |ms| format!("{} s", ms / 1000)),
        )
    };
    let mut why = match now {
        None => format!("The settings that were replayed stay: {}.", figures(chosen)),
        Some(now) => {
            format!("Suggested: {}. The settings that were replayed: {}.", figures(chosen), figures(now))
        }
    };
    if chosen.false_switches_per_day > FALSE_PER_DAY {
        why += " No settings switch for nothing less than once a day here; these do so least often.";
    }
    if days < FEW_DAYS {
        why += &format!(" There are only {:.1} hours of history, which say little about a day.", days * 24.0);
    }
    why
}

fn changes(from: &Settings, to: &Settings) -> Vec<Change> {
    let rules = |settings: &Settings| match settings.decision_rules {
        DecisionRules::Classic => "classic".to_owned(),
        DecisionRules::Adaptive => "adaptive".to_owned(),
    };
    let mut pairs = vec![("decisionRules", rules(from), rules(to))];
    for name in ["confirmations", "cooldownMs", "minAdvantageRatio"] {
        pairs.push((name, from.number(name).to_string(), to.number(name).to_string()));
    }
    let change = |(name, from, to): (&str, String, String)| Change { name: name.to_owned(), from, to };
    pairs.into_iter().filter(|(_, from, to)| from != to).map(change).collect()
}

/// A round of candidates with its time.
type DatedRound = (u64, Vec<Candidate>);

/// The rounds of a trace with the exits' usual latencies made equal and each round's measurements given out by lot.
fn by_lot(trace: &Trace) -> Vec<DatedRound> {
    let exits = trace.exits.len();
    let total = |candidate: &Candidate| {
        let ((a, _), (b, _)) = (candidate.leg_a.numbers()?, candidate.leg_b.numbers()?);
        Some(a + b)
    };
    let usual: Vec<f64> = (0..exits)
        .map(|exit| {
            let mut all: Vec<f64> =
                trace.recorded.iter().filter_map(|(_, candidates)| total(&candidates[exit])).collect();
            all.sort_by(f64::total_cmp);
            all.get(all.len() / 2).copied().unwrap_or(0.0)
        })
        .collect();
    let slowest = usual.iter().copied().fold(0.0, f64::max);
    let mut random = Random::new(trace.seed ^ 0x5aff);
    let shuffled = |(at, candidates): &DatedRound| {
        let mut order: Vec<usize> = (0..exits).collect();
        for i in (1..exits).rev() {
            order.swap(i, usize::try_from(random.draw() % (i as u64 + 1)).unwrap_or(0));
        }
        let candidate = |(place, from): (usize, &usize)| {
            let mut candidate = candidates[*from].clone();
            candidate.exit = candidates[place].exit;
            if let Leg::Measured { latency_ms, .. } = &mut candidate.leg_a {
                *latency_ms += slowest - usual[*from];
            }
            candidate
        };
        (*at, order.iter().enumerate().map(candidate).collect())
    };
    trace.recorded.iter().map(shuffled).collect()
}

/// How often the rules switch on rounds.
fn switches(rounds: &[DatedRound], interval_ms: u64, settings: &Settings) -> usize {
    let settings = Settings { round_interval_ms: interval_ms, ..settings.clone() };
    let mut state = OwnerState::new(Applied::default());
    let mut count = 0;
    for (at, candidates) in rounds {
        let now = super::best::BEFORE_START + at;
        let round =
            Round { now, complete: true, monitoring: true, owner_online: true, candidates, pin: None };
        if let Some(order) = state.evaluate(&round, &settings).push {
            state.accepted(order, now);
            count += 1;
        }
    }
    count
}

impl Suggestion {
    pub(super) fn text(&self) -> String {
        let mut text = "\nsuggestion\n".to_owned();
        for Change { name, from, to } in &self.changes {
            text += &format!("  {name}: {from} -> {to}\n");
        }
        text += &format!("  {}\n\n", self.why);
        text += &format!(
            "{:<10} {:>8} {:>10} {:>9} {:>10} {:>9} {:>9} {:>10} {:>10}\n",
            "rules",
            "confirm.",
            "cooldown s",
            "advantage",
            "excess ms",
            "switch/d",
            "flaps/d",
            "nothing/d",
            "detect. s"
        );
        for tried in &self.tried {
            let classic = tried.decision_rules == DecisionRules::Classic;
            text += &format!(
                "{:<10} {:>8} {:>10} {:>8}% {:>10.1} {:>9.1} {:>9.1} {:>10.1} {:>10}\n",
                if classic { "classic" } else { "adaptive" },
                if classic { tried.confirmations.to_string() } else { "-".to_owned() },
                tried.cooldown_ms / 1000,
                (tried.min_advantage_ratio * 100.0).round(),
                tried.outcome.mean_excess_ms,
                tried.outcome.switches_per_day,
                tried.outcome.flaps_per_day,
                tried.false_switches_per_day,
                tried.outcome.detection_ms.map_or("-".to_owned(), |ms| (ms / 1000).to_string()),
            );
        }
        text
    }
}
