//! A token bucket as pure arithmetic: whoever uses it brings the time.
//!
//! Its own, since ready-made ones count the time of one token in whole nanoseconds: at 100 MB/s that is 9 instead of
//! 9.5, and above 1 GB/s nothing.

/// Parts of a token that are counted. With time in nanoseconds and rates in thousandths per second, no fraction is lost.
const PARTS: u128 = 1_000_000_000_000;

/// Tokens per second, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// So many per second; more than 2^53 counts as 2^53. `None` unless it is above zero.
    pub fn per_second(tokens: f64) -> Option<Self> {
        let thousandths = (tokens.min((1u64 << 53) as f64) * 1000.0).round();
        // The cast of what is above zero and below 2^63 is exact enough.
        (thousandths > 0.0 && !tokens.is_nan()).then_some(Self(thousandths as u64))
    }

    /// Whole tokens per second, rounded up, so never zero.
    pub fn tokens(self) -> u64 {
        self.0.div_ceil(1000)
    }

    /// As a number of tokens per second.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 1000.0
    }
}

/// Holds up to `burst` tokens and gains them at its rate. In any stretch of time it gives out at most the burst and what
/// it gains meanwhile.
#[derive(Debug)]
pub struct Bucket {
    rate: Rate,
    burst: u64,
    /// In [`PARTS`] of a token.
    level: u128,
    at_ns: u64,
}

impl Bucket {
    /// A full one. `burst` is at least one token.
    pub fn new(rate: Rate, burst: u64, now_ns: u64) -> Self {
        let burst = burst.max(1);
        Self { rate, burst, level: u128::from(burst) * PARTS, at_ns: now_ns }
    }

    fn cap(&self) -> u128 {
        u128::from(self.burst) * PARTS
    }

    fn refill(&mut self, now_ns: u64) {
        // Callers read the clock before they have the bucket, so one may come with a time that is past.
        let passed = now_ns.saturating_sub(self.at_ns);
        self.at_ns = self.at_ns.max(now_ns);
        self.level = (self.level + u128::from(passed) * u128::from(self.rate.0)).min(self.cap());
    }

    /// Takes up to `most` tokens, but nothing if there are less than `least`; returns how many.
    pub fn take(&mut self, now_ns: u64, least: u64, most: u64) -> u64 {
        self.refill(now_ns);
        let there = u64::try_from(self.level / PARTS).unwrap_or(u64::MAX);
        if there < least {
            return 0;
        }
        let taken = there.min(most);
        self.level -= u128::from(taken) * PARTS;
        taken
    }

    /// Puts unused tokens back.
    pub fn give_back(&mut self, tokens: u64) {
        self.level = (self.level + u128::from(tokens) * PARTS).min(self.cap());
    }

    /// Nanoseconds until there are `tokens`; those beyond the burst are not waited for.
    pub fn wait_ns(&mut self, now_ns: u64, tokens: u64) -> u64 {
        self.refill(now_ns);
        let missing = (u128::from(tokens.min(self.burst)) * PARTS).saturating_sub(self.level);
        u64::try_from(missing.div_ceil(u128::from(self.rate.0))).unwrap_or(u64::MAX)
    }

    /// Another rate and burst from now on. What was gained until now stays, as far as it fits.
    pub fn set(&mut self, now_ns: u64, rate: Rate, burst: u64) {
        self.refill(now_ns);
        self.rate = rate;
        self.burst = burst.max(1);
        self.level = self.level.min(self.cap());
    }

    /// Whether it is as good as new.
    pub fn is_full(&mut self, now_ns: u64) -> bool {
        self.refill(now_ns);
        self.level == self.cap()
    }

    /// Tokens gained per second.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Tokens it holds at most.
    pub fn burst(&self) -> u64 {
        self.burst
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    fn rate(tokens: f64) -> Rate {
        Rate::per_second(tokens).unwrap()
    }

    #[test]
    fn rates() {
        for nothing in [0.0, -1.0, 0.0004, f64::NAN] {
            assert_eq!(Rate::per_second(nothing), None, "{nothing}");
        }
        assert_eq!(rate(0.5).tokens(), 1);
        assert_eq!(rate(12.5).tokens(), 13);
        assert_eq!(rate(f64::INFINITY).tokens(), 1 << 53);
    }

    #[test]
    fn tokens_over_time() {
        let mut bucket = Bucket::new(rate(100.0), 50, 0);
        // (now in ms, at least, at most, given)
        let steps = [
            (0, 1, 80, 50),
            (0, 1, 1, 0),
            (9, 1, 1, 0),
            (10, 1, 10, 1),
            (110, 20, 20, 0),
            (210, 20, 15, 15),
            (210, 1, 100, 5),
            (5_210, 1, 1000, 50),
            // A clock that is read late is no gain.
            (5_000, 1, 1, 0),
            (5_220, 1, 10, 1),
        ];
        for (at, (now_ms, least, most, given)) in steps.into_iter().enumerate() {
            assert_eq!(bucket.take(now_ms * 1_000_000, least, most), given, "step {at}");
        }
    }

    #[test]
    fn waits_are_as_short_as_they_can_be() {
        let mut bucket = Bucket::new(rate(0.5), 1, 0);
        assert_eq!(bucket.wait_ns(0, 1), 0);
        assert_eq!(bucket.take(0, 1, 1), 1);
        assert_eq!(bucket.wait_ns(0, 1), 2 * SECOND);
        assert_eq!(bucket.wait_ns(0, 1000), 2 * SECOND, "more than the burst cannot be waited for");
        assert_eq!(bucket.take(2 * SECOND - 1, 1, 1), 0);
        assert_eq!(bucket.take(2 * SECOND, 1, 1), 1);
    }

    #[test]
    fn another_rate_holds_from_now_on() {
        let mut bucket = Bucket::new(rate(10.0), 10, 0);
        assert_eq!(bucket.take(0, 1, 10), 10);
        bucket.set(SECOND / 2, rate(100.0), 3);
        assert_eq!(bucket.take(SECOND / 2, 1, 10), 3, "five were gained, three fit");
        assert_eq!(bucket.take(SECOND / 2 + 20_000_000, 1, 10), 2);
        bucket.give_back(100);
        assert!(bucket.is_full(SECOND));
    }

    #[test]
    fn rates_that_are_no_whole_nanoseconds_are_exact() {
        // 1024 · 1024 · 100 bytes per second: 9.54 ns each.
        let mut bucket = Bucket::new(rate(104_857_600.0), 10_000, 0);
        bucket.take(0, 1, 10_000);
        let mut given = 0;
        for step in 1..=1000u64 {
            given += bucket.take(step * 10_000, 1, u64::MAX);
        }
        assert_eq!(given, 1_048_576, "a hundredth second's worth");
    }

    proptest! {
        #[test]
        fn never_more_than_the_burst_and_what_was_gained(
            thousandths in 1u64..5_000_000,
            burst in 1u64..10_000,
            // (time that passes in µs, asked for, share in percent that is put back at once)
            steps in prop::collection::vec((0u64..2_000_000, 1u64..20_000, 0u64..=100), 1..200),
        ) {
            let mut bucket = Bucket::new(Rate(thousandths), burst, 0);
            let mut now = 0;
            let mut used = Vec::new();
            for (passed_us, asked, back) in steps {
                now += passed_us * 1000;
                let taken = bucket.take(now, 1, asked);
                let unused = taken * back / 100;
                bucket.give_back(unused);
                used.push((now, taken - unused));
            }
            for from in 0..used.len() {
                let mut sum = 0u128;
                for &(at, n) in &used[from..] {
                    sum += u128::from(n);
                    let gained = u128::from(at - used[from].0) * u128::from(thousandths);
                    prop_assert!(sum * PARTS <= u128::from(burst) * PARTS + gained);
                }
            }
        }

        #[test]
        fn a_wait_ends_when_the_tokens_are_there_and_not_before(
            thousandths in 1u64..5_000_000, burst in 1u64..10_000, asked in 1u64..10_000, taken in 0u64..10_000,
        ) {
            let mut bucket = Bucket::new(Rate(thousandths), burst, 0);
            let asked = asked.min(burst);
            bucket.take(0, 0, taken);
            let wait = bucket.wait_ns(0, asked);
            if wait > 0 {
                prop_assert_eq!(bucket.take(wait - 1, asked, asked), 0);
            }
            prop_assert_eq!(bucket.take(wait, asked, asked), asked);
        }
    }
}
