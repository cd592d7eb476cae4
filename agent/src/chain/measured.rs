//! What the probes of a node have found.

use super::select::Latency;
use shared::link::ProbeReport;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Weight of a new sample in the moving average: an eighth, as TCP smooths its round trips.
const SMOOTHING: u64 = 8;
/// In `last`, where latencies are microseconds plus one.
const UNKNOWN: u64 = 0;
const FAILED: u64 = u64::MAX;

/// What the probes of a node have found; outlives the chain it belongs to when the next has the same node.
#[derive(Debug, Default)]
pub struct Measured {
    /// For selection, which must not wait for a lock.
    last: AtomicU64,
    /// Locked for a few instructions at a time.
    record: Mutex<Record>,
}

#[derive(Debug, Default)]
struct Record {
    /// How often everything was forgotten.
    epoch: u64,
    last: Option<ProbeRecord>,
}

/// The last probe, and what came before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeRecord {
    /// Why it failed, if it did.
    pub error: Option<String>,
    /// How long it took; of a failed one, until it failed.
    pub latency_us: u64,
    /// Moving average of the successful ones; begins at the first.
    pub average_us: Option<u64>,
    /// When, on the clock of the marks.
    pub at_ms: u64,
    /// Failures in a row up to now.
    pub failures: u32,
    /// How many there were.
    pub probes: u64,
}

impl ProbeRecord {
    /// For others to see.
    pub fn report(&self, now_ms: u64) -> ProbeReport {
        let ms = |us: u64| us as f64 / 1000.0;
        ProbeReport {
            ok: self.error.is_none(),
            error: self.error.clone(),
            latency_ms: ms(self.latency_us),
            average_ms: self.average_us.map(ms),
            age_ms: now_ms.saturating_sub(self.at_ms),
            failures: self.failures,
            probes: self.probes,
        }
    }
}

impl Measured {
    fn record(&self) -> MutexGuard<'_, Record> {
        // Always whole: its parts are replaced in one piece.
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a probe that begins now is to be noted with.
    pub fn epoch(&self) -> u64 {
        self.record().epoch
    }

    /// Notes a probe that ended at `now_ms` and took `took`; false, and nothing, if everything was forgotten since the
    /// `epoch` in which it began.
    pub fn note(&self, epoch: u64, outcome: Result<(), String>, took: Duration, now_ms: u64) -> bool {
        let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).min(FAILED - 2);
        let mut record = self.record();
        if record.epoch != epoch {
            return false;
        }
        let before = record.last.take();
        let (average, failures, probes) =
            before.map_or((None, 0, 0), |before| (before.average_us, before.failures, before.probes));
        let success = outcome.is_ok();
        let average = match (average, success) {
            (None, true) => Some(took_us),
            (Some(average), true) => Some(average - average / SMOOTHING + took_us / SMOOTHING),
            (average, false) => average,
        };
        record.last = Some(ProbeRecord {
            error: outcome.err(),
            latency_us: took_us,
            average_us: average,
            at_ms: now_ms,
            failures: if success { 0 } else { failures.saturating_add(1) },
            probes: probes.saturating_add(1),
        });
        self.last.store(if success { took_us + 1 } else { FAILED }, Ordering::Release);
        true
    }

    /// Forgets everything: what was measured is no longer what is asked for.
    pub fn forget(&self) {
        let mut record = self.record();
        *record = Record { epoch: record.epoch + 1, last: None };
        self.last.store(UNKNOWN, Ordering::Release);
    }

    /// What the last probe says to selection.
    pub fn latency(&self) -> Latency {
        match self.last.load(Ordering::Acquire) {
            UNKNOWN => Latency::Unknown,
            FAILED => Latency::Failed,
            us => Latency::Micros(us - 1),
        }
    }

    /// The last probe, if there was one.
    pub fn last(&self) -> Option<ProbeRecord> {
        self.record().last.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sample_and_the_average() {
        let measured = Measured::default();
        assert_eq!((measured.latency(), measured.last()), (Latency::Unknown, None));
        measured.note(0, Ok(()), Duration::from_millis(80), 5);
        assert_eq!(measured.last().unwrap().average_us, Some(80_000), "begins at the first sample");
        measured.note(0, Ok(()), Duration::from_millis(160), 6);
        let last = measured.last().unwrap();
        assert_eq!((last.latency_us, last.average_us), (160_000, Some(90_000)));
        assert_eq!(measured.latency(), Latency::Micros(160_000));

        for failures in 1..3 {
            measured.note(0, Err("refused".into()), Duration::from_millis(1), 7);
            assert_eq!(measured.latency(), Latency::Failed);
            assert_eq!(measured.last().unwrap().failures, failures);
        }
        let last = measured.last().unwrap();
        assert_eq!((last.average_us, last.error.as_deref(), last.probes), (Some(90_000), Some("refused"), 4));
        measured.note(0, Ok(()), Duration::ZERO, 8);
        assert_eq!(measured.latency(), Latency::Micros(0));
        assert_eq!(measured.last().unwrap().failures, 0);
        measured.note(0, Ok(()), Duration::MAX, 9);
        assert!(matches!(measured.latency(), Latency::Micros(_)), "no value is taken for another thing");
        measured.forget();
        assert!(!measured.note(0, Ok(()), Duration::ZERO, 10), "began before everything was forgotten");
        assert_eq!((measured.latency(), measured.last()), (Latency::Unknown, None));
    }
}
