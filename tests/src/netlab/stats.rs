//! What the lab counts.

use std::collections::BTreeMap;
use std::time::Duration;

/// Why a packet did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// Lost on its own.
    Loss,
    /// Lost in a burst.
    Burst,
    /// The link is cut.
    Cut,
    /// The direction is a black hole.
    BlackHole,
    /// No room in the queue in front of the rate.
    QueueFull,
    /// More packets on the way than the lab holds ([`super::IN_FLIGHT_LIMIT`]).
    Overflow,
    /// The kernel did not take it (the host's interface is down).
    Refused,
}

/// Counts of one direction of a link since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets sent into the link.
    pub packets: u64,
    /// Their bytes, IP header included.
    pub bytes: u64,
    /// Packets that came out at the other end.
    pub delivered: u64,
    /// Packets held back for reordering.
    pub held: u64,
    /// Packets on the way now.
    pub in_flight: u64,
    /// Packets that did not arrive; `packets` is the sum of these, `delivered` and `in_flight`.
    pub dropped: BTreeMap<DropReason, u64>,
}

impl LinkStats {
    /// Packets dropped for this reason.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped.get(&reason).copied().unwrap_or(0)
    }

    pub(crate) fn drop_one(&mut self, reason: DropReason) {
        *self.dropped.entry(reason).or_insert(0) += 1;
    }
}

/// Counts of a lab.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabStats {
    /// By (from, to); only links that were used or set.
    pub links: BTreeMap<(String, String), LinkStats>,
    /// Packets to an address no host has.
    pub no_route: u64,
    /// Packets that were not IPv4.
    pub not_ipv4: u64,
    /// How late packets were handed over, as the lab itself sees it.
    pub lateness: Lateness,
}

/// A histogram of how long after their time packets were handed over; buckets double in width.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Bucket `i` counts packets later than 2^(i-1) µs and at most 2^i µs.
    buckets: [u64; 24],
}

impl Lateness {
    pub(crate) fn record(&mut self, late: Duration) {
        let micros = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
        let bucket = (u64::BITS - micros.saturating_sub(1).leading_zeros()) as usize;
        let last = self.buckets.len() - 1;
        self.buckets[if micros == 0 { 0 } else { bucket.min(last) }] += 1;
    }

    /// The time that this share (0 to 1) of the packets was at most late, rounded up to a power of two of µs.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Duration {
        let total: u64 = self.buckets.iter().sum();
        let wanted = (share * total as f64).ceil() as u64;
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_micros(1 << index);
            }
        }
        Duration::from_micros(1 << (self.buckets.len() - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_round_up_to_a_power_of_two() {
        let mut lateness = Lateness::default();
        for micros in [0, 1, 3, 60, 64, 65, 100_000] {
            lateness.record(Duration::from_micros(micros));
        }
        assert_eq!(lateness.quantile(0.0), Duration::from_micros(1));
        assert_eq!(lateness.quantile(0.4), Duration::from_micros(4));
        assert_eq!(lateness.quantile(0.5), Duration::from_micros(64));
        assert_eq!(lateness.quantile(0.8), Duration::from_micros(128));
        assert_eq!(lateness.quantile(1.0), Duration::from_micros(131_072));
    }
}
