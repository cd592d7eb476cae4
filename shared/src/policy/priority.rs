//! Priorities of members: a number that may depend on the latency, in bands.
//!
//! `0,2(,100ms),1(100ms,200ms)`: 2 up to 100 ms, 1 up to 200 ms, else 0. The first band that fits counts, else the
//! number in front. The higher number is preferred, whatever the latencies are.
//!
//! A band that was entered is left only when the latency is well outside of it: one that wanders about an edge would move
//! connections to and fro.

use super::arguments::read_duration;
use super::expected::Expected;
use super::text::ParseError;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A better band is left only this far behind its edge, or this share of the latency, whichever is more.
const MARGIN_MS: f64 = 10.0;
const MARGIN_RATIO: f64 = 0.1;
/// More bands than this are a mistake.
const MOST_BANDS: usize = 16;

/// A member's priority.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Priority {
    /// Where no band fits, and while nothing was measured.
    default: u32,
    bands: Vec<Band>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Band {
    priority: u32,
    /// Both edges belong to it.
    low_ms: u64,
    high_ms: Option<u64>,
}

impl Priority {
    /// The same at every latency.
    pub fn fixed(default: u32) -> Self {
        Self { default, bands: Vec::new() }
    }

    /// Reads `default[,priority(low,high)]…`; an empty `low` is 0, an empty `high` has no end.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut reader = Reader { text, at: 0 };
        let default = reader.number()?;
        let mut bands = Vec::new();
        while reader.take(',') {
            if bands.len() == MOST_BANDS {
                return Err(reader.wrong(Expected::End));
            }
            let priority = reader.number()?;
            reader.expect('(')?;
            let low_ms = reader.duration(',')?.unwrap_or(0);
            let at = reader.at;
            let high_ms = reader.duration(')')?;
            if high_ms.is_some_and(|high_ms| high_ms < low_ms) {
                return Err(Reader { text, at }.wrong(Expected::Millis));
            }
            bands.push(Band { priority, low_ms, high_ms });
        }
        if reader.at < text.len() {
            return Err(reader.wrong(Expected::End));
        }
        Ok(Self { default, bands })
    }

    /// The priority at a latency.
    pub fn at(&self, ms: f64) -> u32 {
        let fits = |band: &&Band| {
            ms >= band.low_ms as f64 && band.high_ms.is_none_or(|high_ms| ms <= high_ms as f64)
        };
        self.bands.iter().find(fits).map_or(self.default, |band| band.priority)
    }

    /// The priority after a measurement, with what it was before: a better band is entered at its edge, and left only
    /// well behind it.
    pub fn after(&self, before: Option<u32>, ms: f64) -> u32 {
        let now = self.at(ms);
        let margin = MARGIN_MS.max(MARGIN_RATIO * ms.abs());
        match before {
            Some(before)
                if now < before && (self.at(ms - margin) >= before || self.at(ms + margin) >= before) =>
            {
                before
            }
            _ => now,
        }
    }

    /// While nothing was measured.
    pub fn unmeasured(&self) -> u32 {
        self.default
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.default)?;
        for Band { priority, low_ms, high_ms } in &self.bands {
            let high = high_ms.map_or_else(String::new, |ms| format!("{ms}ms"));
            write!(f, ",{priority}({low_ms}ms,{high})")?;
        }
        Ok(())
    }
}

struct Reader<'a> {
    text: &'a str,
    /// In bytes.
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn take(&mut self, wanted: char) -> bool {
        self.skip_spaces();
        let found = self.rest().starts_with(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    fn expect(&mut self, wanted: char) -> Result<(), ParseError> {
        if self.take(wanted) {
            return Ok(());
        }
        Err(self.wrong(if wanted == '(' { Expected::Words(&["("]) } else { Expected::CommaOrEnd }))
    }

    fn number(&mut self) -> Result<u32, ParseError> {
        self.skip_spaces();
        let digits = self.rest().find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest().len());
        match self.rest()[..digits].parse() {
            Ok(number) => {
                self.at += digits;
                Ok(number)
            }
            Err(_) => Err(self.wrong(Expected::Number(0, u32::MAX))),
        }
    }

    /// Up to `end`, which is taken too; `None` if it is empty. A bare number means milliseconds.
    fn duration(&mut self, end: char) -> Result<Option<u64>, ParseError> {
        self.skip_spaces();
        let length = self.rest().find([',', ')']).unwrap_or(self.rest().len());
        let word = self.rest()[..length].trim_end();
        let ms = match word {
            "" => None,
            word => Some(read_duration(word, 1).ok_or_else(|| self.wrong(Expected::Millis))?),
        };
        self.at += word.len();
        self.expect(end)?;
        Ok(ms)
    }

    fn wrong(&self, expected: Expected) -> ParseError {
        let at = self.text[..self.at].chars().count();
        let found = self.rest().trim_start().chars().next().map(String::from).unwrap_or_default();
        ParseError { at, expected, found, option: None }
    }
}
