//! Policies as data, and reading them from their text.

use super::arguments::{Arguments, duration};
use super::expected::Expected;
use super::text::{self, Argument, ParseError};
use super::written::written;
use serde::{Deserialize, Serialize};

/// Where automatic groups look by default (sing-box's default; answers 204 without a body).
pub const DEFAULT_URL: &str = "https://www.gstatic.com/generate_204";
/// sing-box's interval between tests.
pub const URLTEST_INTERVAL_MS: u64 = 180_000;
/// sing-box's tolerance.
pub const URLTEST_TOLERANCE_MS: u64 = 50;
/// sing-box's time without use after which testing stops.
pub const URLTEST_IDLE_MS: u64 = 1_800_000;
/// dae's interval between checks.
pub const CHECK_INTERVAL_MS: u64 = 30_000;
/// `fixed_fallback` in configurations probes no faster than this, whatever is written.
pub const MIN_RETRY_MS: u64 = 2000;
/// The longest duration anything may have: 30 days.
pub(super) const MAX_MS: u64 = 30 * 86_400_000;

/// When connections are closed that were opened through a member that is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interrupt {
    /// They live on.
    #[default]
    Never,
    /// When the member died.
    OnDeath,
    /// Whenever the choice changes.
    OnSwitch,
}

/// How a latency policy sees a member's measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Latency {
    /// The last one.
    Last,
    /// The mean of the last ten.
    Avg10,
    /// The moving average: half the old, half the new, from the first one on.
    Moving,
}

/// What all policies that measure share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure {
    /// What is fetched through each member; measurements of different targets are never mixed.
    pub url: String,
    /// Between two tests of a member.
    pub interval_ms: u64,
    /// A better member must be better by this much.
    pub tolerance_ms: u64,
    /// Failures in a row until a member is dead.
    pub fall: u32,
    /// Successes in a row until a dead one is alive.
    pub rise: u32,
    /// The status that means success; `None`: any from 200 to 299.
    #[serde(default)]
    pub expected_status: Option<u16>,
    /// PEM file with an authority for a URL that the usual ones do not vouch for.
    #[serde(default)]
    pub ca_file: Option<String>,
}

impl Measure {
    pub(super) fn new(interval_ms: u64, tolerance_ms: u64) -> Self {
        let url = DEFAULT_URL.to_owned();
        Self { url, interval_ms, tolerance_ms, fall: 1, rise: 1, expected_status: None, ca_file: None }
    }
}

/// What takes over while the fixed member of a `fixed_fallback` is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fallback {
    /// Any living member.
    Random,
    /// The one with the lowest latency.
    Min(Latency),
}

/// A policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The first usable one.
    Fifo,
    /// In turn.
    Round,
    /// By chance and weight.
    Rand,
    /// By the client; `host`: by the destination.
    Hash {
        /// By the destination's host instead of the client.
        host: bool,
        /// Remaps only what must move.
        consistent: bool,
    },
    /// All at once; the first that is up wins.
    Parallel,
    /// Lowest latency of the node probes.
    LowestLatency {
        /// A better one must be better by this much.
        tolerance_ms: u64,
    },
    /// Decided by the panel.
    Best,
    /// A person's choice.
    Selector {
        /// Without a stored choice; else the first member.
        default: Option<String>,
        /// What happens to connections on the member that was left.
        interrupt: Interrupt,
        /// How long they still get.
        drain_ms: u64,
    },
    /// The fastest in regular tests.
    UrlTest {
        /// What and how often.
        measure: Measure,
        /// Without use for this long, testing stops.
        idle_timeout_ms: u64,
        /// What happens to connections on the member that was left.
        interrupt: Interrupt,
        /// How long they still get.
        drain_ms: u64,
    },
    /// Always the same one, dead or alive.
    Fixed(usize),
    /// The living one with the lowest latency.
    Min {
        /// Which latency.
        latency: Latency,
        /// What and how often.
        measure: Measure,
        /// What happens to connections on the member that was left.
        interrupt: Interrupt,
        /// How long they still get.
        drain_ms: u64,
    },
    /// One member while it lives; another policy while it does not.
    FixedFallback {
        /// The member.
        index: usize,
        /// Between two retries.
        timeout_ms: u64,
        /// Retries in all; the probe at once is the first.
        retries: u32,
        /// Who takes over.
        fallback: Fallback,
        /// It must have been alive for this long before traffic returns.
        return_delay_ms: u64,
        /// What and how often.
        measure: Measure,
        /// What happens to connections on the member that was left.
        interrupt: Interrupt,
        /// How long they still get.
        drain_ms: u64,
    },
}

/// A policy read from text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The policy.
    pub policy: Policy,
    /// What was changed, in words for whoever wrote the text.
    pub warnings: Vec<String>,
}

/// Reads a policy as configurations write it.
pub fn parse(text: &str) -> Result<Parsed, ParseError> {
    parse_with(text, &[])
}

/// As [`parse`], with further options that are written beside the text: names and values, `idleTimeout` or
/// `idle_timeout`. An error in one of them names it.
pub fn parse_with(text: &str, options: &[(String, String)]) -> Result<Parsed, ParseError> {
    let call = text::call(text)?;
    let mut rest = call.arguments;
    rest.extend(options.iter().map(|(name, value)| Argument::beside(name, value)));
    let mut arguments = Arguments { rest, end: text.chars().count() };
    let mut warnings = Vec::new();
    let policy = match call.name.text.as_str() {
        "fifo" | "ha" => Policy::Fifo,
        "round" | "rr" => Policy::Round,
        "rand" | "random" => Policy::Rand,
        "parallel" => Policy::Parallel,
        "best" => Policy::Best,
        "hash" => {
            let (mut host, mut consistent) = (false, false);
            while let Some(word) = arguments.positional() {
                match word.text.as_str() {
                    "host" => host = true,
                    "client" => host = false,
                    "consistent" => consistent = true,
                    _ => return Err(word.expected(Expected::Words(&["client", "host", "consistent"]))),
                }
            }
            Policy::Hash { host, consistent }
        }
        "lowestlatency" | "lowest" | "ll" => {
            Policy::LowestLatency { tolerance_ms: arguments.millis("tolerance", 0)? }
        }
        "selector" => Policy::Selector {
            default: arguments.take("default").map(|word| word.text),
            interrupt: arguments.interrupt()?,
            drain_ms: arguments.duration("drain", 0)?,
        },
        "urltest" => {
            let measure =
                arguments.measure(Measure::new(URLTEST_INTERVAL_MS, URLTEST_TOLERANCE_MS), false)?;
            let idle = arguments.take("idle_timeout");
            // Not written, it follows a longer interval; written, it is meant.
            let default = URLTEST_IDLE_MS.max(measure.interval_ms);
            let idle_timeout_ms = idle.as_ref().map_or(Ok(default), duration)?;
            if let Some(word) = idle.filter(|_| idle_timeout_ms < measure.interval_ms) {
                let interval = written(measure.interval_ms);
                return Err(word.expected(Expected::IdleTimeout(interval)));
            }
            let (interrupt, drain_ms) = (arguments.interrupt()?, arguments.duration("drain", 0)?);
            Policy::UrlTest { measure, idle_timeout_ms, interrupt, drain_ms }
        }
        "fixed" => Policy::Fixed(arguments.index()?),
        "min" | "min_last_latency" => arguments.min(Latency::Last)?,
        "min_avg10" => arguments.min(Latency::Avg10)?,
        "min_moving_avg" => arguments.min(Latency::Moving)?,
        "fixed_fallback" => arguments.fixed_fallback(&mut warnings)?,
        _ => return Err(call.name.expected(Expected::KnownName)),
    };
    arguments.nothing_left(&call.name.text)?;
    Ok(Parsed { policy, warnings })
}

impl Policy {
    /// The latency by which it compares members.
    pub const fn latency(&self) -> Latency {
        match self {
            Policy::Min { latency, .. } | Policy::FixedFallback { fallback: Fallback::Min(latency), .. } => {
                *latency
            }
            _ => Latency::Last,
        }
    }
}

impl Latency {
    /// The policy that uses it, as written.
    pub const fn name(self) -> &'static str {
        match self {
            Latency::Last => "min",
            Latency::Avg10 => "min_avg10",
            Latency::Moving => "min_moving_avg",
        }
    }
}

impl Policy {
    /// Its name, without options.
    pub const fn name(&self) -> &'static str {
        match self {
            Policy::Fifo => "fifo",
            Policy::Round => "round",
            Policy::Rand => "rand",
            Policy::Hash { .. } => "hash",
            Policy::Parallel => "parallel",
            Policy::LowestLatency { .. } => "lowestlatency",
            Policy::Best => "best",
            Policy::Selector { .. } => "selector",
            Policy::UrlTest { .. } => "urltest",
            Policy::Fixed(_) => "fixed",
            Policy::Min { latency, .. } => latency.name(),
            Policy::FixedFallback { .. } => "fixed_fallback",
        }
    }

    /// Whether its choice is made ahead of connections: by tests, or by whoever wrote or chose it. The filters of the
    /// other ones (failures, latency of probes) mean nothing to it.
    pub const fn is_decided_ahead(&self) -> bool {
        matches!(
            self,
            Policy::Selector { .. }
                | Policy::UrlTest { .. }
                | Policy::Fixed(_)
                | Policy::Min { .. }
                | Policy::FixedFallback { .. }
        )
    }
}
