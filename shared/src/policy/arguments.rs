//! Reading the arguments of a policy.

use super::expected::Expected;
use super::spec::{CHECK_INTERVAL_MS, Fallback, Interrupt, Latency, MAX_MS, MIN_RETRY_MS, Measure, Policy};
use super::text::{Argument, ParseError, Word};
use super::written::written;

/// What is not read yet.
pub(super) struct Arguments {
    pub(super) rest: Vec<Argument>,
    pub(super) end: usize,
}

impl Arguments {
    /// The next argument without a key.
    pub(super) fn positional(&mut self) -> Option<Word> {
        let found = self.rest.iter().position(|argument| argument.key.is_none())?;
        // Order matters among these only while none with a key stands before.
        (found == 0).then(|| self.rest.remove(0).value)
    }

    pub(super) fn take(&mut self, key: &str) -> Option<Word> {
        let is = |argument: &Argument| argument.key.as_ref().is_some_and(|word| word.text == key);
        let found = self.rest.iter().position(is)?;
        Some(self.rest.remove(found).value)
    }

    pub(super) fn duration(&mut self, key: &str, default: u64) -> Result<u64, ParseError> {
        self.take(key).as_ref().map_or(Ok(default), duration)
    }

    /// A duration whose bare number means milliseconds.
    pub(super) fn millis(&mut self, key: &str, default: u64) -> Result<u64, ParseError> {
        self.take(key).as_ref().map_or(Ok(default), millis)
    }

    pub(super) fn count(&mut self, key: &str) -> Result<u32, ParseError> {
        let Some(word) = self.take(key) else { return Ok(1) };
        let count = word.text.parse().ok().filter(|count| (1..=100).contains(count));
        count.ok_or_else(|| word.expected(Expected::Number(1, 100)))
    }

    pub(super) fn measure(&mut self, default: Measure, seconds: bool) -> Result<Measure, ParseError> {
        let url = match self.take("url") {
            None => default.url,
            Some(word) if word.text.starts_with("http://") || word.text.starts_with("https://") => word.text,
            Some(word) => return Err(word.expected(Expected::Url)),
        };
        let interval_ms = match self.take("interval") {
            None => default.interval_ms,
            Some(word) => match duration(&word)? {
                0 => return Err(word.expected(Expected::AboveZero)),
                ms => ms,
            },
        };
        let tolerance = if seconds { Self::duration } else { Self::millis };
        let tolerance_ms = tolerance(self, "tolerance", default.tolerance_ms)?;
        let expected_status = match self.take("expected_status") {
            None => None,
            Some(word) => {
                let status = word.text.parse().ok().filter(|status| (100..=599).contains(status));
                Some(status.ok_or_else(|| word.expected(Expected::Number(100, 599)))?)
            }
        };
        let ca_file = self.take("ca_file").map(|word| word.text);
        let (fall, rise) = (self.count("fall")?, self.count("rise")?);
        Ok(Measure { url, interval_ms, tolerance_ms, fall, rise, expected_status, ca_file })
    }

    pub(super) fn interrupt(&mut self) -> Result<Interrupt, ParseError> {
        let Some(word) = self.take("interrupt_exist_connections").or_else(|| self.take("interrupt")) else {
            return Ok(Interrupt::Never);
        };
        match word.text.as_str() {
            "never" | "false" => Ok(Interrupt::Never),
            "on_death" | "onDeath" => Ok(Interrupt::OnDeath),
            "on_switch" | "onSwitch" | "true" => Ok(Interrupt::OnSwitch),
            _ => Err(word.expected(Expected::Words(&["never", "on_death", "on_switch"]))),
        }
    }

    pub(super) fn index(&mut self) -> Result<usize, ParseError> {
        let Some(word) = self.positional().or_else(|| self.take("index")) else {
            let expected = Expected::Member;
            let first = self.rest.first();
            let at = first.map_or(self.end, |argument| argument.value.at);
            let found = first.map_or(String::new(), |a| a.value.text.clone());
            return Err(ParseError { at, expected, found, option: None });
        };
        word.text.parse().map_err(|_| word.expected(Expected::Member))
    }

    pub(super) fn min(&mut self, latency: Latency) -> Result<Policy, ParseError> {
        let measure = self.measure(Measure::new(CHECK_INTERVAL_MS, 0), false)?;
        let (interrupt, drain_ms) = (self.interrupt()?, self.duration("drain", 0)?);
        Ok(Policy::Min { latency, measure, interrupt, drain_ms })
    }

    pub(super) fn fixed_fallback(&mut self, warnings: &mut Vec<String>) -> Result<Policy, ParseError> {
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
                retries.ok_or_else(|| word.expected(Expected::Number(0, 1000)))?
            }
        };
        let fallback = match &fallback {
            None => Fallback::Min(Latency::Moving),
            Some(word) => match word.text.as_str() {
                "random" | "rand" => Fallback::Random,
                "min" | "min_last_latency" => Fallback::Min(Latency::Last),
                "min_avg10" => Fallback::Min(Latency::Avg10),
                "min_moving_avg" => Fallback::Min(Latency::Moving),
                _ => {
                    return Err(word.expected(Expected::Words(&[
                        "random",
                        "min",
                        "min_avg10",
                        "min_moving_avg",
                    ])));
                }
            },
        };
        let measure = self.measure(Measure::new(CHECK_INTERVAL_MS, 0), false)?;
        let return_delay_ms = self.duration("return_delay", 0)?;
        let (interrupt, drain_ms) = (self.interrupt()?, self.duration("drain", 0)?);
        let fixed = Policy::FixedFallback {
            index,
            timeout_ms,
            retries,
            fallback,
            return_delay_ms,
            measure,
            interrupt,
            drain_ms,
        };
        Ok(fixed)
    }

    pub(super) fn nothing_left(&self, name: &str) -> Result<(), ParseError> {
        match self.rest.first() {
            None => Ok(()),
            Some(Argument { key: Some(key), .. }) => Err(key.expected(Expected::OptionOf(name.to_owned()))),
            Some(Argument { key: None, value }) => Err(value.expected(Expected::NoValue(name.to_owned()))),
        }
    }
}

pub(super) fn duration(word: &Word) -> Result<u64, ParseError> {
    read_duration(&word.text, 1000).ok_or_else(|| word.expected(Expected::Duration))
}

fn millis(word: &Word) -> Result<u64, ParseError> {
    read_duration(&word.text, 1).ok_or_else(|| word.expected(Expected::Millis))
}

/// `bare`: milliseconds that a number without a unit stands for.
pub(super) fn read_duration(text: &str, bare: u64) -> Option<u64> {
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
