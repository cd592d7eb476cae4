//! What every request has at hand.

use crate::agents::Agents;
use crate::app::replays::Replays;
use crate::auth::password::Passwords;
use crate::auth::recall::Recall;
use crate::auth::throttle::{PER_ADDRESS, PER_USER, Throttle};
use crate::best_exit::BestExit;
use crate::clock::Clock;
use crate::config::Config;
use crate::events::Bus;
use crate::http::install::AgentBinary;
use crate::metrics::Metrics;
use crate::store::Db;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// What every request has at hand. Cheap to clone.
#[derive(Clone)]
pub struct AppState {
    /// What is stored.
    pub db: Db,
    /// The time.
    pub clock: Clock,
    /// What happens, for whoever watches.
    pub bus: Bus,
    /// The connected agents.
    pub agents: Agents,
    /// Who measures and decides.
    pub best_exit: BestExit,
    /// Counters.
    pub metrics: Metrics,
    /// Configuration.
    pub config: Arc<Config>,
    /// Hashes and checks passwords.
    pub passwords: Passwords,
    /// Login attempts.
    pub logins: Logins,
    /// Ends the streams of those whose session ended.
    pub recall: Recall,
    /// Replays that run now.
    pub replays: Replays,
    /// What new nodes fetch.
    pub agent_binary: AgentBinary,
    /// Ends streams when the panel stops.
    pub shutdown: CancellationToken,
}

/// Counts login attempts per user name and per address.
#[derive(Clone)]
pub struct Logins(Arc<Mutex<(Throttle, Throttle)>>);

impl Default for Logins {
    fn default() -> Self {
        Self(Arc::new(Mutex::new((Throttle::new(PER_USER), Throttle::new(PER_ADDRESS)))))
    }
}

impl Logins {
    /// Takes an attempt of both, or says in how many milliseconds there is one.
    pub fn take(&self, username: &str, address: &str, now_ms: u64) -> Result<(), u64> {
        // The buckets are consistent after every single step, so a panic elsewhere does not spoil them.
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.1.take(address, now_ms)?;
        let result = buckets.0.take(username, now_ms);
        if result.is_err() {
            buckets.1.give_back(address);
        }
        result
    }

    /// The attempt was a successful one and does not count.
    pub fn succeeded(&self, username: &str, address: &str) {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.0.give_back(username);
        buckets.1.give_back(address);
    }
}
