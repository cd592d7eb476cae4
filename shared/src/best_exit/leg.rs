//! What one round says about one leg.

use crate::link::Sample;
use serde::{Deserialize, Serialize};

/// The outcome of one leg in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "state")]
pub enum Leg {
    /// At least one sample came back.
    Measured {
        /// Mean of the successful samples, in milliseconds; finite and not negative.
        latency_ms: f64,
        /// Share lost, 0 to 1 (exclusive).
        loss: f64,
    },
    /// Tried, and nothing came back.
    Failed {
        /// Why.
        reason: LegFailure,
    },
    /// Not tried, or nobody could say: no evidence for or against.
    Unmeasured {
        /// Why.
        reason: String,
    },
}

/// Why a leg failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum LegFailure {
    /// Every sample was lost.
    AllLost,
    /// The port is closed.
    Refused,
    /// The name has no address.
    Unresolved,
    /// No route, or no socket.
    Unreachable,
    /// The agent said "not successful", or answered numbers that cannot be.
    Unsuccessful,
}

impl Leg {
    /// From counts and round-trip times, as in the specification: latency is the mean of `rtts_ms`, loss is
    /// `1 - received/sent`. Numbers that cannot be are a failure, never a score.
    pub fn from_counts(sent: u32, received: u32, rtts_ms: &[f64]) -> Self {
        let failed = |reason| Leg::Failed { reason };
        if sent == 0 || received > sent || rtts_ms.iter().any(|ms| !ms.is_finite() || *ms < 0.0) {
            return failed(LegFailure::Unsuccessful);
        }
        if received == 0 || rtts_ms.is_empty() {
            return failed(LegFailure::AllLost);
        }
        let latency_ms = rtts_ms.iter().sum::<f64>() / rtts_ms.len() as f64;
        let loss = 1.0 - f64::from(received) / f64::from(sent);
        Self::measured(latency_ms, loss)
    }

    /// From the samples of one of our agents.
    ///
    /// A connect that needed n retransmissions counts n lost samples and gives no latency: its time is the kernel's
    /// timer, not the path's. A refusal, a name without address or a missing route is a hard failure at once.
    pub fn from_samples(samples: &[Sample]) -> Self {
        let (mut sent, mut received, mut rtts_ms) = (0u32, 0u32, Vec::with_capacity(samples.len()));
        for sample in samples {
            match sample {
                Sample::Ok { ms, retransmits: 0 } => {
                    sent += 1;
                    received += 1;
                    rtts_ms.push(*ms);
                }
                // A peer's bug or malice must not overflow the count.
                Sample::Ok { retransmits, .. } => sent += (*retransmits).min(100),
                Sample::Lost => sent += 1,
                Sample::Refused => return Leg::Failed { reason: LegFailure::Refused },
                Sample::Unresolved => return Leg::Failed { reason: LegFailure::Unresolved },
                Sample::Unreachable => return Leg::Failed { reason: LegFailure::Unreachable },
            }
        }
        Self::from_counts(sent, received, &rtts_ms)
    }

    /// From the average and percentage of a peer's agent. `success` comes first: a failed ping answers 0 ms and 0 %.
    pub fn from_average(success: bool, average_ms: f64, loss_percent: f64) -> Self {
        if !success {
            return Leg::Failed { reason: LegFailure::Unsuccessful };
        }
        Self::measured(average_ms, loss_percent / 100.0)
    }

    fn measured(latency_ms: f64, loss: f64) -> Self {
        if !latency_ms.is_finite() || latency_ms < 0.0 || !(0.0..=1.0).contains(&loss) {
            return Leg::Failed { reason: LegFailure::Unsuccessful };
        }
        if loss == 1.0 {
            return Leg::Failed { reason: LegFailure::AllLost };
        }
        Leg::Measured { latency_ms, loss }
    }

    /// Measured numbers: latency in milliseconds and loss, if there are any.
    pub fn numbers(&self) -> Option<(f64, f64)> {
        match *self {
            // Checked here too: a leg may have been read from a file.
            Leg::Measured { latency_ms, loss } => {
                (latency_ms.is_finite() && latency_ms >= 0.0 && (0.0..1.0).contains(&loss))
                    .then_some((latency_ms, loss))
            }
            Leg::Failed { .. } | Leg::Unmeasured { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNSUCCESSFUL: Leg = Leg::Failed { reason: LegFailure::Unsuccessful };
    const ALL_LOST: Leg = Leg::Failed { reason: LegFailure::AllLost };

    #[test]
    fn counts() {
        assert_eq!(
            Leg::from_counts(4, 3, &[10.0, 20.0, 30.0]),
            Leg::Measured { latency_ms: 20.0, loss: 0.25 }
        );
        assert_eq!(Leg::from_counts(4, 0, &[]), ALL_LOST);
        assert_eq!(Leg::from_counts(0, 0, &[]), UNSUCCESSFUL);
        assert_eq!(Leg::from_counts(3, 4, &[1.0]), UNSUCCESSFUL);
        for bad in [f64::NAN, f64::INFINITY, -0.1] {
            assert_eq!(Leg::from_counts(4, 4, &[1.0, bad]), UNSUCCESSFUL, "{bad}");
        }
        assert_eq!(Leg::from_counts(2, 2, &[f64::MAX, f64::MAX]), UNSUCCESSFUL);
    }

    #[test]
    fn samples() {
        let ok = |ms| Sample::Ok { ms, retransmits: 0 };
        assert_eq!(
            Leg::from_samples(&[ok(10.0), Sample::Lost, ok(30.0), ok(20.0)]),
            Leg::Measured { latency_ms: 20.0, loss: 0.25 }
        );
        // One connect that needed two retransmissions: two lost samples, no latency.
        let slow = Sample::Ok { ms: 3010.0, retransmits: 2 };
        assert_eq!(
            Leg::from_samples(&[ok(10.0), slow.clone(), ok(10.0)]),
            Leg::Measured { latency_ms: 10.0, loss: 0.5 }
        );
        assert_eq!(Leg::from_samples(&[slow]), ALL_LOST);
        for (sample, reason) in [
            (Sample::Refused, LegFailure::Refused),
            (Sample::Unresolved, LegFailure::Unresolved),
            (Sample::Unreachable, LegFailure::Unreachable),
        ] {
            assert_eq!(Leg::from_samples(&[ok(1.0), sample]), Leg::Failed { reason });
        }
        assert_eq!(Leg::from_samples(&[]), UNSUCCESSFUL);
    }

    #[test]
    fn a_failed_ping_answered_as_zero_is_failed() {
        assert_eq!(Leg::from_average(false, 0.0, 0.0), UNSUCCESSFUL);
        assert_eq!(Leg::from_average(true, 38.4, 25.0), Leg::Measured { latency_ms: 38.4, loss: 0.25 });
        assert_eq!(Leg::from_average(true, 38.4, 100.0), ALL_LOST);
        for (ms, loss) in [(f64::NAN, 0.0), (1.0, f64::NAN), (-1.0, 0.0), (1.0, -1.0), (1.0, 101.0)] {
            assert_eq!(Leg::from_average(true, ms, loss), UNSUCCESSFUL, "{ms} {loss}");
        }
    }
}
