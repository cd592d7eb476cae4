//! How often somebody may try to log in: a bucket of attempts per user name and per address.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// How fast a bucket empties and fills.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Attempts possible at once.
    pub burst: u32,
    /// One more attempt after this many milliseconds.
    pub refill_ms: u64,
}

/// Ten at once and one more every ten seconds: 8,640 guesses a day, far from any password of eight characters.
pub const PER_USER: Rate = Rate { burst: 10, refill_ms: 10_000 };
/// Offices share an address, so it may try more names.
pub const PER_ADDRESS: Rate = Rate { burst: 50, refill_ms: 2_000 };
/// Buckets kept; beyond it the one that is fullest soonest is forgotten.
const MAX_BUCKETS: usize = 10_000;

/// The buckets of one kind.
#[derive(Debug)]
pub struct Throttle {
    rate: Rate,
    /// When the bucket is full again, in monotonic milliseconds.
    full_at: BTreeMap<String, u64>,
}

impl Throttle {
    /// All buckets full.
    pub fn new(rate: Rate) -> Self {
        Self { rate, full_at: BTreeMap::new() }
    }

    /// Takes an attempt, or says in how many milliseconds there is one.
    pub fn take(&mut self, key: &str, now_ms: u64) -> Result<(), u64> {
        let Rate { burst, refill_ms } = self.rate;
        let full_at = self.full_at.get(key).copied().unwrap_or(0).max(now_ms);
        let empty_from = now_ms + u64::from(burst - 1) * refill_ms;
        if full_at > empty_from {
            return Err(full_at - empty_from);
        }
        if self.full_at.len() >= MAX_BUCKETS && !self.full_at.contains_key(key) {
            self.make_room(now_ms);
        }
        self.full_at.insert(key.to_owned(), full_at + refill_ms);
        Ok(())
    }

    /// Gives an attempt back: it was a successful one.
    pub fn give_back(&mut self, key: &str) {
        let refill_ms = self.rate.refill_ms;
        if let Some(full_at) = self.full_at.get_mut(key) {
            *full_at = full_at.saturating_sub(refill_ms);
        }
    }

    fn make_room(&mut self, now_ms: u64) {
        self.full_at.retain(|_, full_at| *full_at > now_ms);
        while self.full_at.len() >= MAX_BUCKETS {
            let Some(soonest) = self.full_at.iter().min_by_key(|(_, at)| **at).map(|(key, _)| key.clone())
            else {
                return;
            };
            self.full_at.remove(&soonest);
        }
    }
}

/// The key of an address. Who has one IPv6 address has a whole /64.
pub fn address_key(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_one_per_interval() {
        let mut throttle = Throttle::new(Rate { burst: 3, refill_ms: 1000 });
        for _ in 0..3 {
            assert_eq!(throttle.take("a", 500), Ok(()));
        }
        assert_eq!(throttle.take("a", 500), Err(1000));
        assert_eq!(throttle.take("b", 500), Ok(()));
        assert_eq!(throttle.take("a", 1499), Err(1));
        assert_eq!(throttle.take("a", 1500), Ok(()));
        assert_eq!(throttle.take("a", 1500), Err(1000));
        throttle.give_back("a");
        assert_eq!(throttle.take("a", 1500), Ok(()));
    }

    #[test]
    fn a_flood_of_names_neither_grows_it_nor_frees_the_one_under_attack() {
        let mut throttle = Throttle::new(Rate { burst: 2, refill_ms: 1000 });
        throttle.take("admin", 0).unwrap();
        throttle.take("admin", 0).unwrap();
        for i in 0..MAX_BUCKETS + 10 {
            throttle.take(&format!("user {i}"), 0).unwrap();
        }
        assert!(throttle.full_at.len() <= MAX_BUCKETS);
        assert!(throttle.take("admin", 0).is_err());
    }

    #[test]
    fn neighbours_in_a_v6_network_share_a_bucket() {
        let key = |text: &str| address_key(text.parse().unwrap());
        assert_eq!(key("2001:db8:1:2::1"), key("2001:db8:1:2:ffff::9"));
        assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
        assert_eq!(key("::ffff:192.0.2.1"), key("192.0.2.1"));
    }
}
