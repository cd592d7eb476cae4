//! What is asked of a link. Plain data; `link` turns it into decisions.

use std::time::Duration;

use thiserror::Error;

/// How one direction of a link treats its packets. The default is a perfect link.
///
/// ```
/// # use std::time::Duration;
/// # use tests::netlab::{Burst, Impairment};
/// let satellite = Impairment::delay(Duration::from_millis(300))
///     .jitter(Duration::from_millis(20))
///     .loss(0.01)
///     .burst(Burst::from_average(0.02, 4.0));
/// assert!(satellite.check().is_ok());
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Impairment {
    /// One-way delay, on top of the time a packet waits for the rate.
    pub delay: Duration,
    /// The delay of a packet is uniform in `delay ± jitter`, never less than 0. A packet does not overtake the one
    /// before it, so packets closer together than the jitter see less of it.
    pub jitter: Duration,
    /// Probability that a packet is lost, independent of the others.
    pub loss: f64,
    /// Losses that come in bursts, on top of `loss`.
    pub burst: Option<Burst>,
    /// Packets held back so that later ones overtake them.
    pub reorder: Option<Reorder>,
    /// Bytes per time, and the queue in front of it.
    pub rate: Option<Rate>,
}

/// Gilbert-Elliott loss: a link is in a good or a bad state and may change it with each packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// Probability, for each packet, that a good link turns bad.
    pub good_to_bad: f64,
    /// Probability, for each packet, that a bad link turns good.
    pub bad_to_good: f64,
    /// Probability of loss while good.
    pub loss_good: f64,
    /// Probability of loss while bad.
    pub loss_bad: f64,
}

impl Burst {
    /// The model in which a bad link loses everything and a good one nothing, with this share of packets lost and
    /// this mean number of packets lost in a row (at least 1).
    #[must_use]
    pub fn from_average(loss: f64, mean_length: f64) -> Self {
        let bad_to_good = 1.0 / mean_length;
        // Share of time in the bad state is p / (p + r); solved for p.
        let good_to_bad = bad_to_good * loss / (1.0 - loss);
        Self { good_to_bad, bad_to_good, loss_good: 0.0, loss_bad: 1.0 }
    }

    /// The share of packets lost in the long run.
    #[must_use]
    pub fn average_loss(&self) -> f64 {
        let changes = self.good_to_bad + self.bad_to_good;
        if changes == 0.0 {
            return self.loss_good;
        }
        (self.good_to_bad * self.loss_bad + self.bad_to_good * self.loss_good) / changes
    }
}

/// Packets held back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// Probability that a packet is held back.
    pub probability: f64,
    /// How much longer than the others it takes.
    pub hold: Duration,
}

/// A token bucket with a bounded queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Bits of IP packets per second.
    pub bits_per_second: u64,
    /// Bytes that may pass at once after a pause.
    pub burst_bytes: u64,
    /// Bytes that may wait; a packet that does not fit is dropped.
    pub queue_bytes: u64,
}

impl Rate {
    /// A rate with room for two full packets at once and a queue of 100 ms, at least 32 packets of 1,500 bytes.
    #[must_use]
    pub fn bits_per_second(bits_per_second: u64) -> Self {
        let queue_bytes = (bits_per_second / 80).max(32 * 1500);
        Self { bits_per_second, burst_bytes: 2 * 1500, queue_bytes }
    }
}

/// A value no link can have.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum ImpairmentError {
    #[error("{field} is {value}, a probability is from 0 to 1")]
    Probability { field: &'static str, value: f64 },
    #[error("{field} is {value:?}, the longest is {MAX_TIME:?}")]
    Time { field: &'static str, value: Duration },
    #[error("rate.bits_per_second is 0; cut the link instead")]
    NoRate,
}

/// The longest delay, jitter or hold: longer than any path on Earth, short enough that sums cannot overflow.
pub const MAX_TIME: Duration = Duration::from_secs(600);

impl Impairment {
    /// A link that only delays, by this much one way.
    #[must_use]
    pub fn delay(delay: Duration) -> Self {
        Self { delay, ..Self::default() }
    }

    /// A link that only loses this share of its packets.
    #[must_use]
    pub fn lossy(loss: f64) -> Self {
        Self { loss, ..Self::default() }
    }

    /// The same with another jitter.
    #[must_use]
    pub fn jitter(self, jitter: Duration) -> Self {
        Self { jitter, ..self }
    }

    /// The same with another independent loss.
    #[must_use]
    pub fn loss(self, loss: f64) -> Self {
        Self { loss, ..self }
    }

    /// The same with bursts of loss.
    #[must_use]
    pub fn burst(self, burst: Burst) -> Self {
        Self { burst: Some(burst), ..self }
    }

    /// The same with some packets held back.
    #[must_use]
    pub fn reorder(self, probability: f64, hold: Duration) -> Self {
        Self { reorder: Some(Reorder { probability, hold }), ..self }
    }

    /// The same with a rate.
    #[must_use]
    pub fn rate(self, rate: Rate) -> Self {
        Self { rate: Some(rate), ..self }
    }

    /// Whether every value is one a link can have.
    ///
    /// # Errors
    /// The first field that is out of range.
    pub fn check(&self) -> Result<(), ImpairmentError> {
        let burst = self.burst.unwrap_or(Burst::from_average(0.0, 1.0));
        let reorder = self.reorder.unwrap_or(Reorder { probability: 0.0, hold: Duration::ZERO });
        for (field, value) in [
            ("loss", self.loss),
            ("burst.good_to_bad", burst.good_to_bad),
            ("burst.bad_to_good", burst.bad_to_good),
            ("burst.loss_good", burst.loss_good),
            ("burst.loss_bad", burst.loss_bad),
            ("reorder.probability", reorder.probability),
        ] {
            // Written so that NaN is refused too.
            if !(0.0..=1.0).contains(&value) {
                return Err(ImpairmentError::Probability { field, value });
            }
        }
        for (field, value) in [("delay", self.delay), ("jitter", self.jitter), ("reorder.hold", reorder.hold)]
        {
            if value > MAX_TIME {
                return Err(ImpairmentError::Time { field, value });
            }
        }
        if self.rate.is_some_and(|rate| rate.bits_per_second == 0) {
            return Err(ImpairmentError::NoRate);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_from_average_has_that_average() {
        for (loss, length) in [(0.01, 1.0), (0.05, 3.0), (0.2, 10.0), (0.5, 2.0)] {
            let burst = Burst::from_average(loss, length);
            assert!((burst.average_loss() - loss).abs() < 1e-12, "{loss} {length}");
            assert!((1.0 / burst.bad_to_good - length).abs() < 1e-12);
        }
    }

    #[test]
    fn names_the_field_that_is_wrong() {
        let wrong = [
            (Impairment::lossy(1.1), "loss is 1.1"),
            (Impairment::lossy(f64::NAN), "loss is NaN"),
            (Impairment::default().burst(Burst::from_average(0.9, 1.0)), "burst.good_to_bad"),
            (Impairment::default().reorder(-0.1, Duration::ZERO), "reorder.probability"),
            (Impairment::delay(Duration::from_secs(601)), "delay is 601s"),
            (Impairment::default().reorder(0.1, Duration::MAX), "reorder.hold"),
            (Impairment::default().rate(Rate::bits_per_second(0)), "rate.bits_per_second"),
        ];
        for (impairment, message) in wrong {
            let error = impairment.check().unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        assert_eq!(Impairment::default().check(), Ok(()));
    }
}
