//! In which order things were configured, for those who show them.

use super::Change;
use shared::gost::GostConfig;
use std::collections::BTreeMap;

/// Name → place, of chains and of services. What is added later comes last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    chains: BTreeMap<String, usize>,
    services: BTreeMap<String, usize>,
}

/// The names that a change brings.
pub(super) struct Named {
    chains: Vec<String>,
    services: Vec<String>,
    /// Nothing else is there afterwards.
    only: bool,
}

impl Named {
    pub(super) fn of(change: &Change) -> Self {
        let none = || Self { chains: Vec::new(), services: Vec::new(), only: false };
        match change {
            Change::Load(GostConfig { services, chains, .. })
            | Change::Replace(GostConfig { services, chains, .. }) => Self {
                chains: chains.iter().map(|chain| chain.name.clone()).collect(),
                services: services.iter().map(|service| service.name.clone()).collect(),
                only: matches!(change, Change::Replace(_)),
            },
            Change::AddServices(services) | Change::UpsertServices(services) => {
                Self { services: services.iter().map(|service| service.name.clone()).collect(), ..none() }
            }
            Change::AddChain(chain) | Change::UpsertChain(chain) => {
                Self { chains: vec![chain.name.clone()], ..none() }
            }
            _ => none(),
        }
    }
}

impl Places {
    /// A change was made; `exists` says what is there now.
    pub(super) fn follow(&mut self, named: Named, exists: (impl Fn(&str) -> bool, impl Fn(&str) -> bool)) {
        if named.only {
            *self = Self::default();
        }
        follow(&mut self.chains, named.chains, exists.0);
        follow(&mut self.services, named.services, exists.1);
    }

    /// The place of a chain.
    pub(super) fn of_chain(&self, name: &str) -> usize {
        self.chains.get(name).copied().unwrap_or(usize::MAX)
    }

    /// The place of a service.
    pub(super) fn of_service(&self, name: &str) -> usize {
        self.services.get(name).copied().unwrap_or(usize::MAX)
    }
}

fn follow(places: &mut BTreeMap<String, usize>, names: Vec<String>, exists: impl Fn(&str) -> bool) {
    places.retain(|name, _| exists(name));
    for name in names {
        let last = places.values().max().map_or(0, |last| last + 1);
        places.entry(name).or_insert(last);
    }
    places.retain(|name, _| exists(name));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_document_and_what_comes_later_is_last() {
        let named = |names: &[&str], only| Named {
            chains: names.iter().map(|name| (*name).to_owned()).collect(),
            services: Vec::new(),
            only,
        };
        let mut places = Places::default();
        let order = |places: &Places, names: &mut [&str]| {
            names.sort_by_key(|name| places.of_chain(name));
            names.join(" ")
        };
        places.follow(named(&["z", "m", "a"], false), (|_: &str| true, |_: &str| true));
        places.follow(named(&["k", "m"], false), (|_: &str| true, |_: &str| true));
        assert_eq!(order(&places, &mut ["a", "k", "m", "z"]), "z m a k");
        places.follow(named(&["z"], false), (|name: &str| name != "z", |_: &str| true));
        assert_eq!(places.of_chain("z"), usize::MAX, "it is gone");
        places.follow(named(&["k", "a"], true), (|_: &str| true, |_: &str| true));
        assert_eq!(order(&places, &mut ["a", "k"]), "k a");
    }
}
