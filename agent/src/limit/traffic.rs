//! Traffic limiters: bytes per second, in each direction.

use super::bucket::{Bucket, Rate};
use super::rules::{Rates, Rules};
use crate::clock::Clock;
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What one connection of several takes at a time, in bytes: a TLS record.
const QUANTUM: u64 = 16 * 1024;
/// A bucket holds what comes in so many parts of a second, …
const BURSTS_PER_SECOND: u64 = 10;
/// … but at least this, so that slow limits do not cut the traffic into crumbs. At most one second's worth.
const LEAST_BURST: u64 = 16 * 1024;
/// A wait ends after this at the latest; so a limit that was changed meanwhile is felt soon.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Addresses after which those that need not be remembered are looked for.
const FIRST_SWEEP: usize = 1024;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From clients.
    Input,
    /// To clients.
    Output,
}

/// A bucket that connections share, and how many of them wait for it.
#[derive(Debug)]
pub(super) struct Throttle {
    bucket: Mutex<Bucket>,
    waiting: AtomicU64,
}

fn burst(rate: Rate) -> u64 {
    (rate.tokens() / BURSTS_PER_SECOND).max(LEAST_BURST.min(rate.tokens()))
}

impl Throttle {
    fn new(rate: Rate, now_ns: u64) -> Self {
        Self { bucket: Mutex::new(Bucket::new(rate, burst(rate), now_ns)), waiting: AtomicU64::new(0) }
    }

    fn bucket(&self) -> MutexGuard<'_, Bucket> {
        // A bucket is consistent after each of its methods, none of which can panic half-way.
        self.bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, rate: Rate, now_ns: u64) {
        self.bucket().set(now_ns, rate, burst(rate));
    }

    /// Permission for up to `most` bytes, or how long to wait before asking again. Who has not waited yet (`in_turn`
    /// false) comes after those who wait.
    fn take(&self, now_ns: u64, most: u64, in_turn: bool) -> Result<u64, Duration> {
        let ahead = self.waiting.load(Ordering::Relaxed);
        let mut bucket = self.bucket();
        let quantum = QUANTUM.min(bucket.burst().div_ceil(2)).min(most);
        if in_turn || ahead == 0 {
            let taken = bucket.take(now_ns, quantum, most);
            if taken > 0 {
                return Ok(taken);
            }
        }
        // Those who wait take a quantum each, one after another.
        let queue = quantum as f64 * ahead as f64 / bucket.rate().as_f64();
        let own = Duration::from_nanos(bucket.wait_ns(now_ns, quantum));
        Err((own + Duration::from_secs_f64(queue.min(LONGEST_WAIT.as_secs_f64()))).min(LONGEST_WAIT))
    }

    fn give_back(&self, bytes: u64) {
        if bytes > 0 {
            self.bucket().give_back(bytes);
        }
    }
}

/// A place in the queue of a bucket, until it is dropped.
#[derive(Debug)]
pub(super) struct Place(Arc<Throttle>);

impl Place {
    fn take(throttle: &Arc<Throttle>) -> Self {
        throttle.waiting.fetch_add(1, Ordering::Relaxed);
        Self(throttle.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A traffic limiter. Services that name it share it.
#[derive(Debug)]
pub struct TrafficLimiter {
    rules: ArcSwap<Rules<Rates>>,
    /// Grows with each change of the rules.
    version: AtomicU64,
    shared: Mutex<Shared>,
    clock: Clock,
}

#[derive(Debug)]
struct Shared {
    all: Pair,
    by_ip: HashMap<IpAddr, Pair>,
    sweep_at: usize,
}

/// Both directions of one scope.
#[derive(Clone, Debug, Default)]
struct Pair {
    input: Option<Arc<Throttle>>,
    output: Option<Arc<Throttle>>,
}

impl Pair {
    /// As the rates say from now on; what the buckets hold stays.
    fn follow(&mut self, rates: Option<Rates>, now_ns: u64) {
        let follow = |throttle: &mut Option<Arc<Throttle>>, rate: Option<Rate>| match (&*throttle, rate) {
            (Some(throttle), Some(rate)) => throttle.set(rate, now_ns),
            (None, Some(rate)) => *throttle = Some(Arc::new(Throttle::new(rate, now_ns))),
            (_, None) => *throttle = None,
        };
        follow(&mut self.input, rates.and_then(|rates| rates.input));
        follow(&mut self.output, rates.and_then(|rates| rates.output));
    }

    fn of(&self, direction: Direction) -> Option<&Arc<Throttle>> {
        match direction {
            Direction::Input => self.input.as_ref(),
            Direction::Output => self.output.as_ref(),
        }
    }

    /// Whether forgetting it makes no difference.
    fn is_idle(&self, now_ns: u64) -> bool {
        let idle =
            |throttle: &Arc<Throttle>| Arc::strong_count(throttle) == 1 && throttle.bucket().is_full(now_ns);
        self.input.as_ref().is_none_or(idle) && self.output.as_ref().is_none_or(idle)
    }
}

impl TrafficLimiter {
    /// Nothing has passed yet.
    pub fn new(rules: Rules<Rates>, clock: &Clock) -> Self {
        let shared = Shared { all: Pair::default(), by_ip: HashMap::new(), sweep_at: FIRST_SWEEP };
        let limiter = Self {
            rules: ArcSwap::default(),
            version: AtomicU64::new(0),
            shared: Mutex::new(shared),
            clock: clock.clone(),
        };
        limiter.set(rules);
        limiter
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Other limits from now on, for live connections too.
    pub fn set(&self, rules: Rules<Rates>) {
        let now_ns = self.clock.now_ns();
        let mut shared = self.shared();
        shared.all.follow(rules.all, now_ns);
        for (ip, pair) in &mut shared.by_ip {
            pair.follow(rules.of(*ip), now_ns);
        }
        self.rules.store(Arc::new(rules));
        drop(shared);
        self.version.fetch_add(1, Ordering::Release);
    }

    fn by_ip(&self, ip: IpAddr, direction: Direction) -> Option<Arc<Throttle>> {
        let rates = self.rules.load().of(ip)?;
        let now_ns = self.clock.now_ns();
        let mut shared = self.shared();
        if shared.by_ip.len() >= shared.sweep_at && !shared.by_ip.contains_key(&ip) {
            shared.by_ip.retain(|_, pair| !pair.is_idle(now_ns));
            shared.sweep_at = FIRST_SWEEP.max(shared.by_ip.len() * 2);
        }
        let pair = shared.by_ip.entry(ip).or_insert_with(|| {
            let mut pair = Pair::default();
            pair.follow(Some(rates), now_ns);
            pair
        });
        pair.of(direction).cloned()
    }

    /// Addresses that are remembered now.
    pub fn remembered(&self) -> usize {
        self.shared().by_ip.len()
    }
}

/// One direction of one connection under one limiter.
#[derive(Debug)]
pub(super) struct Pace {
    limiter: Arc<TrafficLimiter>,
    ip: IpAddr,
    direction: Direction,
    /// Of the limiter's rules when `throttles` was made.
    version: u64,
    /// The connection's own bucket, if it has one; it outlives changes.
    own: Option<Arc<Throttle>>,
    /// All that apply.
    throttles: Vec<Arc<Throttle>>,
}

impl Pace {
    pub(super) fn new(limiter: Arc<TrafficLimiter>, ip: IpAddr, direction: Direction) -> Self {
        let version = limiter.version.load(Ordering::Acquire);
        let ip = ip.to_canonical();
        let mut pace = Self { limiter, ip, direction, version, own: None, throttles: Vec::new() };
        pace.follow();
        pace
    }

    fn refresh(&mut self) {
        let version = self.limiter.version.load(Ordering::Acquire);
        if version != self.version {
            self.version = version;
            self.follow();
        }
    }

    fn follow(&mut self) {
        let rules = self.limiter.rules.load();
        let each = rules.each.and_then(|rates| match self.direction {
            Direction::Input => rates.input,
            Direction::Output => rates.output,
        });
        let now_ns = self.limiter.clock.now_ns();
        self.own = match (self.own.take(), each) {
            (Some(own), Some(rate)) => {
                own.set(rate, now_ns);
                Some(own)
            }
            (None, Some(rate)) => Some(Arc::new(Throttle::new(rate, now_ns))),
            (_, None) => None,
        };
        let all = self.limiter.shared().all.of(self.direction).cloned();
        let by_ip = self.limiter.by_ip(self.ip, self.direction);
        self.throttles = self.own.iter().cloned().chain(by_ip).chain(all).collect();
    }
}

/// One direction of one connection under all limiters of its service.
#[derive(Debug)]
pub(super) struct Paces(Vec<Pace>);

impl Paces {
    pub(super) fn new(limiters: &[Arc<TrafficLimiter>], ip: IpAddr, direction: Direction) -> Self {
        Self(limiters.iter().map(|limiter| Pace::new(limiter.clone(), ip, direction)).collect())
    }

    /// Permission for up to `most` bytes, from all buckets or from none; else where to wait and how long.
    pub(super) fn take(&mut self, now_ns: u64, most: u64, in_turn: bool) -> Result<u64, (Place, Duration)> {
        self.0.iter_mut().for_each(Pace::refresh);
        let mut granted = most;
        let mut taken: Vec<(&Throttle, u64)> = Vec::new();
        let mut refused = None;
        for throttle in self.0.iter().flat_map(|pace| &pace.throttles) {
            match throttle.take(now_ns, granted, in_turn) {
                Ok(bytes) => {
                    taken.push((throttle, bytes));
                    granted = bytes;
                }
                Err(wait) => {
                    refused = Some((throttle, wait));
                    granted = 0;
                    break;
                }
            }
        }
        for (throttle, bytes) in taken {
            throttle.give_back(bytes - granted);
        }
        match refused {
            Some((throttle, wait)) => Err((Place::take(throttle), wait)),
            None => Ok(granted),
        }
    }

    /// Puts back what was not used of the last permission.
    pub(super) fn give_back(&self, bytes: u64) {
        for throttle in self.0.iter().flat_map(|pace| &pace.throttles) {
            throttle.give_back(bytes);
        }
    }
}

#[cfg(test)]
#[path = "traffic_tests.rs"]
mod tests;
