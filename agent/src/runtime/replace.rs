//! Puts one whole document in the place of everything that runs.

use super::ApplyError;
use super::entry::Socket;
use super::owner::Owner;
use crate::chain::Chain;
use crate::limit::{LimitKind, check, limiters};
use crate::metadata::ConfigError;
use shared::gost::GostConfig;
use shared::link::{chain_key, service_key};
use std::collections::BTreeSet;

impl Owner {
    /// All of it or nothing: everything is built and bound before anything changes. What is the same is left alone.
    pub(super) async fn replace(&mut self, config: GostConfig) -> Result<(), ApplyError> {
        let mut names = BTreeSet::new();
        for chain in &config.chains {
            if !names.insert(chain.name.clone()) {
                return Err(ConfigError::new(format!("chain {}", chain.name), "is there twice").into());
            }
            Chain::build(chain, None)?;
            if !self.plane.options.allow_commands {
                Chain::refuse_commands(chain)?;
            }
        }
        let mut limits = BTreeSet::new();
        for (kind, limiter) in limiters(&config) {
            check(kind, limiter)?;
            limits.insert((kind, limiter.name.clone()));
        }
        let wanted: BTreeSet<_> = config.services.iter().map(|service| service.name.clone()).collect();
        let gone: BTreeSet<_> =
            self.services.keys().filter(|name| !wanted.contains(*name)).cloned().collect();
        let mut plans = self.plan(config.services.clone())?;
        let mut closed = Vec::new();
        if let Err(error) = self.bind(&mut plans, &gone, &mut closed).await {
            // With the listeners that it bound already, which may stand where another is to return.
            drop(plans);
            self.reopen(closed).await;
            return Err(error);
        }

        // Nothing below fails: what could, was tried above. Limits and chains come before the services that name them
        // and go after them.
        for (kind, limiter) in limiters(&config) {
            if !self.plane.limits.configs(kind).contains(limiter) {
                self.plane.limits.put(kind, limiter.clone())?;
            }
        }
        for chain in &config.chains {
            self.upsert_chain(chain)?;
        }
        for plan in plans {
            self.commit(plan).await;
        }
        for name in gone {
            if let Some(mut entry) = self.services.remove(&name) {
                entry.close(Socket::Closed).await;
            }
            self.unfollow(&service_key(&name));
        }
        self.invalid_chains.clear();
        let running: Vec<_> = self.plane.registry.all().keys().cloned().collect();
        for name in running.into_iter().filter(|name| !names.contains(name)) {
            self.plane.registry.remove(&name);
            self.unfollow(&chain_key(&name));
        }
        for kind in LimitKind::ALL {
            for limiter in self.plane.limits.configs(kind) {
                if !limits.contains(&(kind, limiter.name.clone())) {
                    self.plane.limits.remove(kind, &limiter.name);
                }
            }
        }
        Ok(())
    }
}
