//! Limiters of open connections and of new ones per second.

use super::bucket::{Bucket, Rate};
use super::rules::Rules;
use crate::clock::Clock;
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Addresses after which those that need not be remembered are looked for.
const FIRST_SWEEP: usize = 1024;
/// Addresses whose rates are remembered at most; further ones are refused until others are idle. A flood from more
/// addresses than this is over every limit.
const MOST_ADDRESSES: usize = 65_536;

/// Which limit a connection ran into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// That of all together.
    All,
    /// That of its address.
    Address,
}

impl std::fmt::Display for Full {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Full::All => "in all",
            Full::Address => "for one address",
        })
    }
}

/// Limits open connections. Services that name it share it.
#[derive(Debug, Default)]
pub struct ConnectionLimiter {
    rules: ArcSwap<Rules<Option<u64>>>,
    open: Mutex<Open>,
}

/// All are counted, limited or not, since a limit may come later.
#[derive(Debug, Default)]
struct Open {
    all: u64,
    by_ip: HashMap<IpAddr, u64>,
}

impl ConnectionLimiter {
    /// Nothing is open yet.
    pub fn new(rules: Rules<Option<u64>>) -> Self {
        Self { rules: ArcSwap::from_pointee(rules), open: Mutex::default() }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        // Changed by single statements only.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Other limits from now on. Nobody is cut off; whoever comes finds those who are there counted.
    pub fn set(&self, rules: Rules<Option<u64>>) {
        self.rules.store(Arc::new(rules));
    }

    /// Counts a connection as open until the result is dropped.
    pub fn admit(self: &Arc<Self>, ip: IpAddr) -> Result<Counted, Full> {
        let ip = ip.to_canonical();
        let rules = self.rules.load();
        let mut open = self.open();
        if rules.all.flatten().is_some_and(|most| open.all >= most) {
            return Err(Full::All);
        }
        let here = open.by_ip.get(&ip).copied().unwrap_or(0);
        // GOST: an address with a line of its own is not under `$$`.
        if rules.of(ip).or(rules.each).flatten().is_some_and(|most| here >= most) {
            return Err(Full::Address);
        }
        open.all += 1;
        open.by_ip.insert(ip, here + 1);
        Ok(Counted { limiter: self.clone(), ip })
    }

    /// Connections open now.
    pub fn count(&self) -> u64 {
        self.open().all
    }
}

/// An open connection that is counted.
#[derive(Debug)]
pub struct Counted {
    limiter: Arc<ConnectionLimiter>,
    ip: IpAddr,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut open = self.limiter.open();
        open.all = open.all.saturating_sub(1);
        match open.by_ip.get_mut(&self.ip) {
            Some(here) if *here > 1 => *here -= 1,
            _ => {
                open.by_ip.remove(&self.ip);
            }
        }
    }
}

/// Limits new connections per second. Services that name it share it.
#[derive(Debug)]
pub struct RateLimiter {
    rules: ArcSwap<Rules<Option<Rate>>>,
    recent: Mutex<Recent>,
    clock: Clock,
}

#[derive(Debug)]
struct Recent {
    all: Option<Bucket>,
    by_ip: HashMap<IpAddr, Bucket>,
    sweep_at: usize,
}

impl RateLimiter {
    /// Nobody has come yet.
    pub fn new(rules: Rules<Option<Rate>>, clock: &Clock) -> Self {
        let recent = Recent { all: None, by_ip: HashMap::new(), sweep_at: FIRST_SWEEP };
        let limiter = Self { rules: ArcSwap::default(), recent: Mutex::new(recent), clock: clock.clone() };
        limiter.set(rules);
        limiter
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        // Buckets are consistent after each of their methods.
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Other limits from now on; those who came are remembered.
    pub fn set(&self, rules: Rules<Option<Rate>>) {
        let now_ns = self.clock.now_ns();
        let mut recent = self.recent();
        recent.all = rules.all.flatten().map(|rate| follow(recent.all.take(), rate, now_ns));
        let by_ip = std::mem::take(&mut recent.by_ip);
        recent.by_ip = by_ip
            .into_iter()
            .filter_map(|(ip, bucket)| {
                let rate = rules.of(ip).or(rules.each).flatten()?;
                Some((ip, follow(Some(bucket), rate, now_ns)))
            })
            .collect();
        self.rules.store(Arc::new(rules));
    }

    /// Whether another connection may come now.
    pub fn admit(&self, ip: IpAddr) -> Result<(), Full> {
        let (ip, now_ns) = (ip.to_canonical(), self.clock.now_ns());
        let mut recent = self.recent();
        let rules = self.rules.load();
        // The address first: one that is over its own limit takes nothing from the others.
        if let Some(rate) = rules.of(ip).or(rules.each).flatten() {
            if !recent.by_ip.contains_key(&ip) {
                recent.make_room(now_ns).map_err(|()| Full::Address)?;
            }
            let bucket = recent.by_ip.entry(ip).or_insert_with(|| follow(None, rate, now_ns));
            if bucket.take(now_ns, 1, 1) == 0 {
                return Err(Full::Address);
            }
        }
        if let Some(all) = &mut recent.all
            && all.take(now_ns, 1, 1) == 0
        {
            if let Some(bucket) = recent.by_ip.get_mut(&ip) {
                bucket.give_back(1);
            }
            return Err(Full::All);
        }
        Ok(())
    }

    /// Addresses that are remembered now.
    pub fn remembered(&self) -> usize {
        self.recent().by_ip.len()
    }
}

impl Recent {
    fn make_room(&mut self, now_ns: u64) -> Result<(), ()> {
        if self.by_ip.len() >= self.sweep_at {
            self.by_ip.retain(|_, bucket| !bucket.is_full(now_ns));
            self.sweep_at = FIRST_SWEEP.max(self.by_ip.len() * 2).min(MOST_ADDRESSES);
        }
        if self.by_ip.len() >= MOST_ADDRESSES { Err(()) } else { Ok(()) }
    }
}

/// A second's worth may come at once.
fn follow(bucket: Option<Bucket>, rate: Rate, now_ns: u64) -> Bucket {
    match bucket {
        Some(mut bucket) => {
            bucket.set(now_ns, rate, rate.tokens());
            bucket
        }
        None => Bucket::new(rate, rate.tokens(), now_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn lines(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    fn connections(text: &[&str]) -> Rules<Option<u64>> {
        Rules::connections("climiter c", &lines(text)).unwrap()
    }

    fn rates(text: &[&str]) -> Rules<Option<Rate>> {
        Rules::rates("rlimiter r", &lines(text)).unwrap()
    }

    #[test]
    fn open_connections_are_counted_in_all_and_per_address() {
        let limiter = Arc::new(ConnectionLimiter::new(connections(&["$ 3", "$$ 2", "192.0.2.9 1"])));
        let (a, b, own) = (ip("192.0.2.1"), ip("192.0.2.2"), ip("192.0.2.9"));
        let first = limiter.admit(a).unwrap();
        let _second = limiter.admit(ip("::ffff:192.0.2.1")).unwrap();
        assert_eq!(limiter.admit(a).unwrap_err(), Full::Address);
        let _own = limiter.admit(own).unwrap();
        assert_eq!(limiter.admit(b).unwrap_err(), Full::All);
        drop(first);
        assert_eq!(limiter.admit(own).unwrap_err(), Full::Address);
        let _third = limiter.admit(b).unwrap();
        assert_eq!(limiter.count(), 3);
    }

    #[test]
    fn a_new_limit_counts_those_who_are_there_and_cuts_nobody() {
        let limiter = Arc::new(ConnectionLimiter::new(connections(&[])));
        let mut held: Vec<_> = (0..5).map(|_| limiter.admit(ip("192.0.2.1")).unwrap()).collect();
        limiter.set(connections(&["$ 3"]));
        assert_eq!(limiter.count(), 5);
        held.truncate(3);
        assert_eq!(limiter.admit(ip("192.0.2.2")).unwrap_err(), Full::All);
        held.truncate(2);
        held.push(limiter.admit(ip("192.0.2.2")).unwrap());
        limiter.set(connections(&["$ 0"]));
        held.push(limiter.admit(ip("192.0.2.2")).unwrap());
        held.clear();
        assert_eq!(limiter.count(), 0);
        assert!(limiter.open().by_ip.is_empty());
    }

    #[tokio::test]
    async fn new_connections_come_at_their_rate() {
        let clock = Clock::system();
        let limiter = RateLimiter::new(rates(&["$ 3", "$$ 2", "192.0.2.9 0.5"]), &clock);
        let (a, b, own) = (ip("192.0.2.1"), ip("192.0.2.2"), ip("192.0.2.9"));
        // A long pause before each step fills the buckets; the clock between them is real, but far too slow to matter
        // for a bucket of 0.5 per second.
        limiter.admit(own).unwrap();
        assert_eq!(limiter.admit(own), Err(Full::Address));
        clock.advance(Duration::from_secs(2));
        limiter.admit(own).unwrap();

        clock.advance(Duration::from_secs(100));
        limiter.set(rates(&["$ 0.003", "$$ 0.002"]));
        assert_eq!(limiter.admit(a), Ok(()), "one may always come");
        assert_eq!(limiter.admit(a), Err(Full::Address));
        assert_eq!(limiter.admit(b), Err(Full::All));
        clock.advance(Duration::from_secs(334));
        assert_eq!(limiter.admit(b), Ok(()), "a refused one has used nothing of its own");
        assert_eq!(limiter.admit(a), Err(Full::Address), "500 s are needed");
    }

    #[tokio::test]
    async fn addresses_are_forgotten_when_they_are_idle() {
        let clock = Clock::system();
        let limiter = RateLimiter::new(rates(&["$$ 0.01"]), &clock);
        for n in 0..FIRST_SWEEP as u32 {
            limiter.admit(IpAddr::from(n.to_be_bytes())).unwrap();
        }
        assert_eq!(limiter.remembered(), FIRST_SWEEP);
        clock.advance(Duration::from_secs(100));
        limiter.admit(ip("192.0.2.1")).unwrap();
        assert_eq!(limiter.remembered(), 1);
    }
}
