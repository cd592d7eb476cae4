//! Limits that services name: traffic (`limiter`), open connections (`climiter`), new connections per second
//! (`rlimiter`).
//!
//! A limiter belongs to its name, not to a service: services that name the same one share it. Changing it changes the
//! limits of live connections; what its buckets hold stays.

pub mod bucket;
pub mod count;
pub mod datagrams;
pub mod limited;
pub mod rules;
pub mod traffic;

use crate::clock::Clock;
use crate::metadata::ConfigError;
use arc_swap::ArcSwap;
use count::{ConnectionLimiter, RateLimiter};
use rules::Rules;
use shared::gost::{GostConfig, LimiterConfig};
use std::collections::BTreeMap;
use std::sync::Arc;
use traffic::TrafficLimiter;

/// What a limiter limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitKind {
    /// Bytes per second.
    Traffic,
    /// Open connections.
    Connections,
    /// New connections per second.
    Rate,
}

impl LimitKind {
    /// In the order in which documents list them.
    pub const ALL: [LimitKind; 3] = [LimitKind::Traffic, LimitKind::Connections, LimitKind::Rate];

    /// The field of a service that names such limiters.
    pub fn field(self) -> &'static str {
        match self {
            LimitKind::Traffic => "limiter",
            LimitKind::Connections => "climiter",
            LimitKind::Rate => "rlimiter",
        }
    }
}

#[derive(Clone)]
enum Limiter {
    Traffic(Arc<TrafficLimiter>),
    Connections(Arc<ConnectionLimiter>),
    Rate(Arc<RateLimiter>),
}

#[derive(Clone)]
struct Entry {
    config: LimiterConfig,
    limiter: Limiter,
}

/// The lines of a limiter, understood.
enum Parsed {
    Traffic(Rules<rules::Rates>),
    Connections(Rules<Option<u64>>),
    Rate(Rules<Option<bucket::Rate>>),
}

fn parse(kind: LimitKind, config: &LimiterConfig) -> Result<Parsed, ConfigError> {
    if config.name.trim().is_empty() {
        return Err(ConfigError::new(format!("{}: name", kind.field()), "is empty"));
    }
    if config.name.contains(',') {
        let path = format!("{} {}: name", kind.field(), config.name);
        return Err(ConfigError::new(path, "must not contain a comma: services list names with it"));
    }
    let path = format!("{} {}", kind.field(), config.name);
    Ok(match kind {
        LimitKind::Traffic => Parsed::Traffic(Rules::traffic(&path, &config.limits)?),
        LimitKind::Connections => Parsed::Connections(Rules::connections(&path, &config.limits)?),
        LimitKind::Rate => Parsed::Rate(Rules::rates(&path, &config.limits)?),
    })
}

/// Says what is wrong with a limiter's configuration.
pub fn check(kind: LimitKind, config: &LimiterConfig) -> Result<(), ConfigError> {
    parse(kind, config).map(|_| ())
}

/// All limiters of a runtime. Read by every connection whose service names one, written only by the runtime's owner.
#[derive(Default)]
pub struct Limits {
    entries: ArcSwap<BTreeMap<(LimitKind, String), Entry>>,
    clock: Clock,
}

impl Limits {
    /// None yet.
    pub fn new(clock: &Clock) -> Self {
        Self { entries: ArcSwap::default(), clock: clock.clone() }
    }

    /// Whether there is one of this name.
    pub fn has(&self, kind: LimitKind, name: &str) -> bool {
        self.entries.load().contains_key(&(kind, name.to_owned()))
    }

    /// A new limiter, or other limits for the one that has the name. An error changes nothing.
    pub fn put(&self, kind: LimitKind, config: LimiterConfig) -> Result<(), ConfigError> {
        let parsed = parse(kind, &config)?;
        let mut entries = BTreeMap::clone(&self.entries.load());
        let key = (kind, config.name.clone());
        let limiter = match (entries.remove(&key).map(|entry| entry.limiter), parsed) {
            (Some(Limiter::Traffic(limiter)), Parsed::Traffic(rules)) => {
                limiter.set(rules);
                Limiter::Traffic(limiter)
            }
            (Some(Limiter::Connections(limiter)), Parsed::Connections(rules)) => {
                limiter.set(rules);
                Limiter::Connections(limiter)
            }
            (Some(Limiter::Rate(limiter)), Parsed::Rate(rules)) => {
                limiter.set(rules);
                Limiter::Rate(limiter)
            }
            (_, Parsed::Traffic(rules)) => {
                Limiter::Traffic(Arc::new(TrafficLimiter::new(rules, &self.clock)))
            }
            (_, Parsed::Connections(rules)) => Limiter::Connections(Arc::new(ConnectionLimiter::new(rules))),
            (_, Parsed::Rate(rules)) => Limiter::Rate(Arc::new(RateLimiter::new(rules, &self.clock))),
        };
        entries.insert(key, Entry { config, limiter });
        self.entries.store(Arc::new(entries));
        Ok(())
    }

    /// Takes a limiter away. Live connections under it are not limited any more.
    pub fn remove(&self, kind: LimitKind, name: &str) {
        let mut entries = BTreeMap::clone(&self.entries.load());
        match entries.remove(&(kind, name.to_owned())).map(|entry| entry.limiter) {
            None => return,
            Some(Limiter::Traffic(limiter)) => limiter.set(Rules::default()),
            Some(Limiter::Connections(_) | Limiter::Rate(_)) => {}
        }
        self.entries.store(Arc::new(entries));
    }

    /// The configurations of one kind, sorted by name.
    pub fn configs(&self, kind: LimitKind) -> Vec<LimiterConfig> {
        let entries = self.entries.load();
        entries.iter().filter(|((of, _), _)| *of == kind).map(|(_, entry)| entry.config.clone()).collect()
    }

    fn get(&self, kind: LimitKind, name: &str) -> Option<Limiter> {
        self.entries.load().get(&(kind, name.to_owned())).map(|entry| entry.limiter.clone())
    }

    /// The traffic limiters of these names; those that do not exist limit nothing.
    pub fn traffic(&self, names: &[String]) -> Vec<Arc<TrafficLimiter>> {
        let of = |name: &String| match self.get(LimitKind::Traffic, name)? {
            Limiter::Traffic(limiter) => Some(limiter),
            Limiter::Connections(_) | Limiter::Rate(_) => None,
        };
        names.iter().filter_map(of).collect()
    }

    /// The connection limiter of this name.
    pub fn connections(&self, name: &str) -> Option<Arc<ConnectionLimiter>> {
        match self.get(LimitKind::Connections, name)? {
            Limiter::Connections(limiter) => Some(limiter),
            Limiter::Traffic(_) | Limiter::Rate(_) => None,
        }
    }

    /// The rate limiter of this name.
    pub fn rate(&self, name: &str) -> Option<Arc<RateLimiter>> {
        match self.get(LimitKind::Rate, name)? {
            Limiter::Rate(limiter) => Some(limiter),
            Limiter::Traffic(_) | Limiter::Connections(_) => None,
        }
    }
}

/// All limiters of a document.
pub fn limiters(config: &GostConfig) -> impl Iterator<Item = (LimitKind, &LimiterConfig)> {
    LimitKind::ALL.into_iter().flat_map(|kind| {
        let list = match kind {
            LimitKind::Traffic => &config.limiters,
            LimitKind::Connections => &config.climiters,
            LimitKind::Rate => &config.rlimiters,
        };
        list.iter().map(move |limiter| (kind, limiter))
    })
}

/// Names of limiters, as a service lists them: with commas between.
pub fn names(list: Option<&str>) -> Vec<String> {
    list.unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}
