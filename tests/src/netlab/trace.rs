//! Recorded behaviour of a path.

use std::time::Duration;

use thiserror::Error;

use super::impairment::{Impairment, MAX_TIME};

/// One-way delay and loss over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    points: Vec<TracePoint>,
}

/// What holds from `time` until the next point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TracePoint {
    /// Since the trace's start.
    pub time: Duration,
    /// One way.
    pub delay: Duration,
    /// Probability that a packet is lost.
    pub loss: f64,
}

/// Why a text is not a trace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {reason}")]
pub struct TraceError {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// The header line, and the names of the columns.
const HEADER: [&str; 3] = ["time_ms", "delay_ms", "loss"];

impl Trace {
    /// Reads `time_ms,delay_ms,loss` lines: milliseconds (fractions allowed) and a probability. A header line, empty
    /// lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// The first line that is not three numbers, goes back in time, or holds a value no link can have.
    pub fn parse_csv(text: &str) -> Result<Self, TraceError> {
        let mut points: Vec<TracePoint> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            let cells: Vec<&str> = line.split(',').map(str::trim).collect();
            if line.is_empty() || line.starts_with('#') || (points.is_empty() && cells == HEADER) {
                continue;
            }
            let fail = |reason: String| TraceError { line: index + 1, reason };
            let point = parse_point(&cells).map_err(fail)?;
            if points.last().is_some_and(|last| last.time > point.time) {
                return Err(fail("time_ms goes back".to_owned()));
            }
            points.push(point);
        }
        Ok(Self { points })
    }

    /// The points in order of time.
    #[must_use]
    pub fn points(&self) -> &[TracePoint] {
        &self.points
    }
}

fn parse_point(cells: &[&str]) -> Result<TracePoint, String> {
    let &[time, delay, loss] = cells else {
        return Err(format!("{} columns, need {}", cells.len(), HEADER.join(",")));
    };
    let number = |index: usize, cell: &str| {
        cell.parse::<f64>().map_err(|_| format!("{} is {cell:?}, not a number", HEADER[index]))
    };
    let millis = |index: usize, cell: &str, most: Duration| {
        let millis = number(index, cell)?;
        let time = Duration::try_from_secs_f64(millis / 1000.0).ok().filter(|time| *time <= most);
        time.ok_or_else(|| format!("{} is {cell}, must be from 0 to {}", HEADER[index], most.as_millis()))
    };
    let point = TracePoint {
        // A trace may be a week long.
        time: millis(0, time, Duration::from_secs(7 * 24 * 3600))?,
        delay: millis(1, delay, MAX_TIME)?,
        loss: number(2, loss)?,
    };
    Impairment::delay(point.delay).loss(point.loss).check().map_err(|error| error.to_string())?;
    Ok(point)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_points() {
        let trace =
            Trace::parse_csv("# a comment\ntime_ms,delay_ms,loss\n0,10,0\n\n500, 12.5 ,0.25\n").unwrap();
        let point = |time, delay, loss| TracePoint {
            time: Duration::from_millis(time),
            delay: Duration::from_micros(delay),
            loss,
        };
        assert_eq!(trace.points(), [point(0, 10_000, 0.0), point(500, 12_500, 0.25)]);
    }

    #[test]
    fn names_line_and_reason() {
        let cases = [
            ("0,1\n", 1, "2 columns"),
            ("0,1,0\nx,1,0\n", 2, "time_ms is \"x\""),
            ("0,-1,0", 1, "delay_ms is -1"),
            ("0,NaN,0", 1, "delay_ms is NaN"),
            ("0,700000,0", 1, "from 0 to 600000"),
            ("0,1,1.5", 1, "loss is 1.5"),
            ("#\n10,1,0\n5,1,0", 3, "goes back"),
            ("0,1,0\ntime_ms,delay_ms,loss", 2, "not a number"),
        ];
        for (text, line, reason) in cases {
            let error = Trace::parse_csv(text).unwrap_err();
            assert_eq!(error.line, line, "{text}");
            assert!(error.reason.contains(reason), "{error}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "[0-9a-z.,#\n-]{0,80}") {
            let _ = Trace::parse_csv(&text);
        }
    }
}
