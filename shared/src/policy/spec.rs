//! Policies as data, and reading them from their text.

use super::text::{self, Argument, ParseError, Word};
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
const MAX_MS: u64 = 30 * 86_400_000;

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
}

impl Measure {
    fn new(interval_ms: u64, tolerance_ms: u64) -> Self {
        Self { url: DEFAULT_URL.to_owned(), interval_ms, tolerance_ms, fall: 1, rise: 1 }
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

const NAMES: &str = "one of fifo, round, rand, hash, parallel, lowestlatency, best, selector, urltest, fixed, min, \
                     min_avg10, min_moving_avg, fixed_fallback";

/// Reads a policy as configurations write it.
pub fn parse(text: &str) -> Result<Parsed, ParseError> {
    let call = text::call(text)?;
    let mut arguments = Arguments { rest: call.arguments, end: text.chars().count() };
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
                    _ => return Err(word.expected("`client`, `host` or `consistent`")),
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
                return Err(word.expected(format!("an idle timeout not below the interval of {interval}")));
            }
            let (interrupt, drain_ms) = (arguments.interrupt()?, arguments.duration("drain", 0)?);
            Policy::UrlTest { measure, idle_timeout_ms, interrupt, drain_ms }
        }
        "fixed" => Policy::Fixed(arguments.index()?),
        "min" | "min_last_latency" => arguments.min(Latency::Last)?,
        "min_avg10" => arguments.min(Latency::Avg10)?,
        "min_moving_avg" => arguments.min(Latency::Moving)?,
        "fixed_fallback" => arguments.fixed_fallback(&mut warnings)?,
        _ => return Err(call.name.expected(NAMES)),
    };
    arguments.nothing_left(&call.name.text)?;
    Ok(Parsed { policy, warnings })
}

struct Arguments {
    rest: Vec<Argument>,
    end: usize,
}

impl Arguments {
    /// The next argument without a key.
    fn positional(&mut self) -> Option<Word> {
        let found = self.rest.iter().position(|argument| argument.key.is_none())?;
        // Order matters among these only while none with a key stands before.
        (found == 0).then(|| self.rest.remove(0).value)
    }

    fn take(&mut self, key: &str) -> Option<Word> {
        let is = |argument: &Argument| argument.key.as_ref().is_some_and(|word| word.text == key);
        let found = self.rest.iter().position(is)?;
        Some(self.rest.remove(found).value)
    }

    fn duration(&mut self, key: &str, default: u64) -> Result<u64, ParseError> {
        self.take(key).as_ref().map_or(Ok(default), duration)
    }

    /// A duration whose bare number means milliseconds.
    fn millis(&mut self, key: &str, default: u64) -> Result<u64, ParseError> {
        self.take(key).as_ref().map_or(Ok(default), millis)
    }

    fn count(&mut self, key: &str) -> Result<u32, ParseError> {
        let Some(word) = self.take(key) else { return Ok(1) };
        let count = word.text.parse().ok().filter(|count| (1..=100).contains(count));
        count.ok_or_else(|| word.expected(format!("a number from 1 to 100 for `{key}`")))
    }

    fn measure(&mut self, default: Measure, seconds: bool) -> Result<Measure, ParseError> {
        let url = match self.take("url") {
            None => default.url,
            Some(word) if word.text.starts_with("http://") || word.text.starts_with("https://") => word.text,
            Some(word) => return Err(word.expected("a URL that starts with http:// or https://")),
        };
        let interval_ms = match self.take("interval") {
            None => default.interval_ms,
            Some(word) => match duration(&word)? {
                0 => return Err(word.expected("an interval above 0")),
                ms => ms,
            },
        };
        let tolerance = if seconds { Self::duration } else { Self::millis };
        let tolerance_ms = tolerance(self, "tolerance", default.tolerance_ms)?;
        Ok(Measure { url, interval_ms, tolerance_ms, fall: self.count("fall")?, rise: self.count("rise")? })
    }

    fn interrupt(&mut self) -> Result<Interrupt, ParseError> {
        let Some(word) = self.take("interrupt_exist_connections").or_else(|| self.take("interrupt")) else {
            return Ok(Interrupt::Never);
        };
        match word.text.as_str() {
            "never" | "false" => Ok(Interrupt::Never),
            "on_death" | "onDeath" => Ok(Interrupt::OnDeath),
            "on_switch" | "onSwitch" | "true" => Ok(Interrupt::OnSwitch),
            _ => Err(word.expected("`never`, `on_death` or `on_switch`")),
        }
    }

    fn index(&mut self) -> Result<usize, ParseError> {
        let Some(word) = self.positional().or_else(|| self.take("index")) else {
            let expected = "the member's number (0 = the first)".to_owned();
            let first = self.rest.first();
            let at = first.map_or(self.end, |argument| argument.value.at);
            return Err(ParseError {
                at,
                expected,
                found: first.map_or(String::new(), |a| a.value.text.clone()),
            });
        };
        word.text.parse().map_err(|_| word.expected("the member's number (0 = the first)"))
    }

    fn min(&mut self, latency: Latency) -> Result<Policy, ParseError> {
        let measure = self.measure(Measure::new(CHECK_INTERVAL_MS, 0), false)?;
        Ok(Policy::Min { latency, measure })
    }

    fn fixed_fallback(&mut self, warnings: &mut Vec<String>) -> Result<Policy, ParseError> {
        let index = self.index()?;
        let timeout = self.positional().or_else(|| self.take("timeout"));
        let retries = self.positional().or_else(|| self.take("retries"));
        let fallback = self.positional().or_else(|| self.take("fallback"));
        let mut timeout_ms = timeout.as_ref().map_or(Ok(3000), duration)?;
        if timeout_ms < MIN_RETRY_MS {
            let (asked, least) = (written(timeout_ms), written(MIN_RETRY_MS));
            warnings.push(format!("fixed_fallback: the timeout of {asked} is raised to {least}"));
            timeout_ms = MIN_RETRY_MS;
        }
        let retries = match retries {
            None => 3,
            Some(word) => {
                let retries = word.text.parse().ok().filter(|retries| *retries <= 1000);
                retries.ok_or_else(|| word.expected("the number of retries, 0 to 1000"))?
            }
        };
        let fallback = match &fallback {
            None => Fallback::Min(Latency::Moving),
            Some(word) => match word.text.as_str() {
                "random" | "rand" => Fallback::Random,
                "min" | "min_last_latency" => Fallback::Min(Latency::Last),
                "min_avg10" => Fallback::Min(Latency::Avg10),
                "min_moving_avg" => Fallback::Min(Latency::Moving),
                _ => return Err(word.expected("random, min, min_avg10 or min_moving_avg")),
            },
        };
        let measure = self.measure(Measure::new(CHECK_INTERVAL_MS, 0), false)?;
        let return_delay_ms = self.duration("return_delay", 0)?;
        Ok(Policy::FixedFallback { index, timeout_ms, retries, fallback, return_delay_ms, measure })
    }

    fn nothing_left(&self, name: &str) -> Result<(), ParseError> {
        match self.rest.first() {
            None => Ok(()),
            Some(Argument { key: Some(key), .. }) => {
                Err(key.expected(format!("an option that `{name}` has, once")))
            }
            Some(Argument { key: None, value }) => {
                Err(value.expected(format!("no further value for `{name}`; options are written key=value")))
            }
        }
    }
}

fn duration(word: &Word) -> Result<u64, ParseError> {
    read_duration(&word.text, 1000)
        .ok_or_else(|| word.expected("a duration of at most 30 days such as 500ms, 3s, 2m or 1h"))
}

fn millis(word: &Word) -> Result<u64, ParseError> {
    read_duration(&word.text, 1)
        .ok_or_else(|| word.expected("milliseconds such as 50 or 50ms, at most 30 days"))
}

/// `bare`: milliseconds that a number without a unit stands for.
fn read_duration(text: &str, bare: u64) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit {
        "" => bare,
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit).filter(|ms| *ms <= MAX_MS)
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
