//! The configuration that is there at start: what can be used is, and the rest is kept with the reason.

use super::binding::listen;
use super::entry::{Entry, State};
use super::owner::Owner;
use crate::limit::limiters;
use shared::gost::GostConfig;
use std::collections::BTreeSet;

impl Owner {
    pub(super) async fn load(&mut self, config: GostConfig) {
        for (kind, limiter) in limiters(&config) {
            if let Err(error) = self.plane.limits.put(kind, limiter.clone()) {
                tracing::warn!(%error, "limiter not loaded");
            }
        }
        for chain in config.chains {
            if let Err(error) = self.upsert_chain(&chain) {
                tracing::warn!(%error, "chain not loaded");
                self.invalid_chains.insert(chain.name.clone(), (chain, error.to_string()));
            }
        }
        for config in config.services {
            let name = config.name.clone();
            let planned = match self.plan(vec![config.clone()]) {
                Ok(plans) => plans,
                Err(error) => {
                    tracing::warn!(%error, "service not loaded");
                    let invalid = || Entry { config, state: State::Invalid(error.to_string()) };
                    self.services.entry(name).or_insert_with(invalid);
                    continue;
                }
            };
            for mut plan in planned {
                let mut closed = Vec::new();
                let bound = self.bind(std::slice::from_mut(&mut plan), &BTreeSet::new(), &mut closed).await;
                if bound.is_err() && self.services.contains_key(&name) {
                    // Loaded over what runs: that goes on.
                    self.reopen(closed).await;
                    continue;
                }
                self.commit(plan).await;
                if bound.is_err()
                    && let Some(Entry { config, state: State::Built(built) }) = self.services.get_mut(&name)
                {
                    listen(config, built, &self.plane).await;
                }
            }
        }
    }
}
