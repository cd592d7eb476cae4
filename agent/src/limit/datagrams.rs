//! Datagrams under traffic limits. They are not made to wait: one that exceeds the limits is dropped, as GOST does, and
//! its sender learns from that how fast it may be.

use super::traffic::{Direction, Paces, TrafficLimiter};
use crate::clock::Clock;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One flow of datagrams under limits, in both directions.
#[derive(Debug)]
pub struct Policed {
    input: Mutex<Credit>,
    output: Mutex<Credit>,
    clock: Clock,
}

/// Permission that is there and did not suffice yet. Never more than the largest datagram.
#[derive(Debug)]
struct Credit {
    paces: Paces,
    bytes: u64,
}

impl Policed {
    /// `ip` is the client's. `None` if there are no limiters.
    pub fn new(limiters: &[Arc<TrafficLimiter>], ip: IpAddr, clock: &Clock) -> Option<Self> {
        let credit = |direction| Mutex::new(Credit { paces: Paces::new(limiters, ip, direction), bytes: 0 });
        let (input, output) = (credit(Direction::Input), credit(Direction::Output));
        (!limiters.is_empty()).then(|| Self { input, output, clock: clock.clone() })
    }

    /// Whether a datagram may pass, which then counts. What was permitted and is too little for this one helps the next:
    /// so those pass in time, too, that are larger than what the limits permit at once.
    pub fn permits(&self, direction: Direction, bytes: usize) -> bool {
        let bytes = bytes as u64;
        let mut credit = self.credit(direction);
        let missing = bytes.saturating_sub(credit.bytes);
        if missing > 0 {
            credit.bytes += credit.paces.take(self.clock.now_ns(), missing, false).unwrap_or(0);
        }
        let enough = credit.bytes >= bytes;
        if enough {
            credit.bytes -= bytes;
        }
        enough
    }

    /// Takes a permission back of which no use could be made; the datagram asks again.
    pub fn give_back(&self, direction: Direction, bytes: usize) {
        self.credit(direction).bytes += bytes as u64;
    }

    fn credit(&self, direction: Direction) -> MutexGuard<'_, Credit> {
        let credit = match direction {
            Direction::Input => &self.input,
            Direction::Output => &self.output,
        };
        // Consistent at any time: a number and what it was taken from.
        credit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::Rules;
    use super::*;
    use std::time::Duration;

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn limiter(line: &str, clock: &Clock) -> Arc<TrafficLimiter> {
        Arc::new(TrafficLimiter::new(Rules::traffic("x", &[line.to_owned()]).unwrap(), clock))
    }

    /// Bytes of datagrams of this length that pass in ten seconds, tried a thousand times per second.
    fn passed(policed: &Policed, clock: &Clock, direction: Direction, len: usize) -> usize {
        let permitted = (0..10_000).filter(|_| {
            clock.advance(Duration::from_millis(1));
            policed.permits(direction, len)
        });
        permitted.count() * len
    }

    #[tokio::test]
    async fn datagrams_of_any_length_keep_to_the_rate_and_reach_it() {
        for len in [64, 1400, 65_000] {
            let clock = Clock::system();
            let policed = Policed::new(&[limiter("$ 100KB 20KB", &clock)], CLIENT, &clock).unwrap();
            for (direction, rate) in [(Direction::Input, 102_400), (Direction::Output, 20_480)] {
                let offered = len * 1000;
                let expected = 10 * rate.min(offered);
                let passed = passed(&policed, &clock, direction, len);
                // A bucket is full at first, and the last datagram may lack a little.
                let tolerance = 2 * rate + 65_535;
                assert!(passed.abs_diff(expected) <= tolerance, "{len}: {passed} instead of {expected}");
            }
        }
    }

    #[tokio::test]
    async fn flows_share_what_they_have_together() {
        let clock = Clock::system();
        let shared = [limiter("$ 10KB 10KB", &clock)];
        let flows = [(); 4].map(|()| Policed::new(&shared, CLIENT, &clock).unwrap());
        let mut passed = 0;
        for _ in 0..10_000 {
            clock.advance(Duration::from_millis(1));
            passed += flows.iter().filter(|flow| flow.permits(Direction::Input, 1000)).count() * 1000;
        }
        assert!((90_000..=130_000).contains(&passed), "{passed}");
        assert!(Policed::new(&[], CLIENT, &clock).is_none());
    }
}
