//! Name → chain, behind one atomic pointer: a connection sees the old chain or the new one, never none.

use crate::chain::Chain;
use arc_swap::ArcSwap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All chains of a runtime. Read by every connection, written only by the runtime's owner.
#[derive(Default)]
pub struct Registry {
    chains: ArcSwap<BTreeMap<String, Arc<Chain>>>,
}

impl Registry {
    /// The chain of this name, as it is now.
    pub fn get(&self, name: &str) -> Option<Arc<Chain>> {
        self.chains.load().get(name).cloned()
    }

    /// All chains as they are now, sorted by name.
    pub fn all(&self) -> Arc<BTreeMap<String, Arc<Chain>>> {
        self.chains.load_full()
    }

    /// Puts a chain in the place of the one of the same name.
    pub fn put(&self, chain: Chain) {
        let mut chains = BTreeMap::clone(&self.chains.load());
        chains.insert(chain.config.name.clone(), Arc::new(chain));
        self.chains.store(Arc::new(chains));
    }

    /// Takes a chain away; connections that have it keep it.
    pub fn remove(&self, name: &str) {
        let mut chains = BTreeMap::clone(&self.chains.load());
        if chains.remove(name).is_some() {
            self.chains.store(Arc::new(chains));
        }
    }
}
