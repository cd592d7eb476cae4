//! Names to addresses, outside the timed part of a probe.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Deadline of one look-up. glibc asks a server for 5 s before it turns to the next one; a name that takes longer than
/// this is of no use to the round that asks.
pub(crate) const RESOLVE_TIMEOUT: Duration = Duration::from_secs(3);
/// Look-ups at the same time. Each holds a thread until the system's resolver gives up, even when nobody waits for it
/// any more, so a dead name server must not be able to take all threads.
const LOOKUPS: usize = 32;

/// The system's resolver with a limit.
#[derive(Clone, Debug)]
pub(crate) struct Resolver {
    lookups: Arc<Semaphore>,
}

/// Why a host has no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ResolveError {
    /// The resolver's own words.
    #[error("the name was not resolved: {0}")]
    Failed(String),
    #[error("the name was not resolved within {} s", RESOLVE_TIMEOUT.as_secs())]
    Timeout,
}

impl Default for Resolver {
    fn default() -> Self {
        Self { lookups: Arc::new(Semaphore::new(LOOKUPS)) }
    }
}

impl Resolver {
    /// The first address of `host`; an address stands for itself.
    pub(crate) async fn first(&self, host: &str) -> Result<IpAddr, ResolveError> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(address);
        }
        tokio::time::timeout(RESOLVE_TIMEOUT, self.look_up(host.to_owned()))
            .await
            .unwrap_or(Err(ResolveError::Timeout))
    }

    async fn look_up(&self, host: String) -> Result<IpAddr, ResolveError> {
        let failed = |error: String| ResolveError::Failed(error);
        let permit = self.lookups.clone().acquire_owned().await.map_err(|e| failed(e.to_string()))?;
        let found = tokio::task::spawn_blocking(move || {
            let found = (host.as_str(), 0).to_socket_addrs().map(|mut all| all.next());
            drop(permit);
            found
        });
        let first: Option<SocketAddr> =
            found.await.map_err(|e| failed(e.to_string()))?.map_err(|e| failed(e.to_string()))?;
        first.map(|address| address.ip()).ok_or_else(|| failed("no address".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn addresses_stand_for_themselves_and_names_are_looked_up() {
        let resolver = Resolver::default();
        assert_eq!(resolver.first("192.0.2.7").await, Ok(IpAddr::from([192, 0, 2, 7])));
        assert_eq!(resolver.first("2001:db8::1").await.unwrap().to_string(), "2001:db8::1");
        assert!(resolver.first("localhost").await.unwrap().is_loopback());
        // RFC 6761 reserves `.invalid`: it never resolves.
        assert!(resolver.first("exit.invalid").await.is_err());
    }
}
