//! One connection through a chain that carries nothing: whether it comes up, and how long that takes.

use super::Runtime;
use crate::chain::Chain;
use crate::chain::asking::Asking;
use crate::chain::dial::{Budget, reach};
use shared::address::HostPort;
use shared::gost::{ChainConfig, SelectorConfig};
use shared::link::{ConnectThrough, ConnectThroughResult};
use std::time::Duration;

/// The longest that a trial may take, whatever is asked.
const LONGEST: Duration = Duration::from_secs(60);

/// How long after its own end a trial may still be worth an answer.
const LATE: Duration = Duration::from_millis(500);

fn limit(ask: &ConnectThrough) -> Duration {
    Duration::from_millis(ask.timeout_ms).min(LONGEST)
}

/// When nobody waits for the answer any more.
pub(crate) fn deadline(ask: &ConnectThrough) -> Duration {
    limit(ask) + LATE
}

impl Runtime {
    /// Opens a connection and closes it. The nodes' marks and counters are neither asked nor touched, and no session is
    /// shared: it shows what the nodes do now. The error says what is in the way.
    pub async fn connect_through(&self, ask: &ConnectThrough) -> Result<ConnectThroughResult, String> {
        let (name, via) = (&ask.chain, ask.via.as_deref());
        let target =
            HostPort::parse(&ask.target).map_err(|error| format!("target {}: {error}", ask.target))?;
        let chain = self.plane.registry.get(name).ok_or_else(|| format!("chain {name} does not exist"))?;
        let config = restricted(decided(&chain, via), via)?;
        let chain = Chain::build(&config, None).map_err(|error| error.to_string())?;
        let clock = &self.plane.options.clock;
        let begun = clock.instant();
        let mut budget = Budget::new(&self.plane.options, limit(ask), 0);
        let through = reach(&chain, &target, None, &mut Asking::Nothing, &mut budget).await;
        let through = through.map_err(|failure| format!("chain {name}: {failure}"))?;
        let ms = clock.instant().saturating_duration_since(begun).as_secs_f64() * 1000.0;
        drop(through);
        Ok(ConnectThroughResult { ms })
    }
}

/// The chain as it is used now where that is decided ahead of connections: those hops have their nodes in that order,
/// and nobody decides. Where one node is named, the last hop keeps all of them.
fn decided(chain: &Chain, via: Option<&str>) -> ChainConfig {
    let mut config = chain.config.clone();
    let last = config.hops.len().saturating_sub(1);
    for (at, (hop, built)) in config.hops.iter_mut().zip(&chain.hops).enumerate() {
        let (Some(order), Some(nodes)) = (built.group.order(), &mut hop.nodes) else { continue };
        hop.selector = Some(SelectorConfig { strategy: "fifo".to_owned(), ..SelectorConfig::default() });
        if at != last || via.is_none() {
            *nodes = order.into_iter().filter_map(|i| nodes.get(i).cloned()).collect();
        }
        // Options for whoever decides are none of any other strategy's.
        nodes.iter_mut().for_each(|node| node.metadata.clear());
    }
    config
}

/// The chain with a single node in its last hop, which answers before it is trusted.
fn restricted(mut chain: ChainConfig, via: Option<&str>) -> Result<ChainConfig, String> {
    let Some(last) = chain.hops.last_mut() else { return Err(format!("chain {} has no hop", chain.name)) };
    // A hop that is only named here is one of a file, where nobody asks for trials.
    let nodes = last.nodes.get_or_insert_default();
    if let Some(via) = via {
        nodes.retain(|node| node.addr == via);
        if nodes.is_empty() {
            return Err(format!("chain {} does not lead through {via}", chain.name));
        }
    }
    for node in nodes.iter_mut().filter(|node| node.connector.kind == "relay") {
        node.connector.metadata.retain(|key, _| !key.eq_ignore_ascii_case("nodelay"));
        node.connector.metadata.insert("nodelay".to_owned(), true.into());
    }
    Ok(chain)
}
