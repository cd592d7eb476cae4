//! Services: listening ports and what is done with their connections.

mod admission;
mod associate;
pub(crate) mod build;
mod chains;
mod connection;
pub mod connections;
mod denied;
mod http;
mod http_exchange;
pub mod listener;
mod parting;
pub mod plane;
mod proxying;
mod race;
mod reach;
pub mod refused;
pub mod report;
mod session;
mod sessions;
mod socks5;
pub mod tally;
mod tied;
mod udp;
mod udp_relay;
mod udp_tunnel;
pub mod watch;

use crate::chain::group::Group;
use crate::chain::probe::Probe;
use crate::net::Interface;
use crate::proxy_protocol::Version;
use crate::relay::traffic::Traffic;
use crate::transport::acceptor::Acceptor;
use admission::LimiterNames;
use chains::ChainGroup;
use connections::Connections;
use plane::LogGate;
use refused::Refused;
use shared::address::HostPort;
use shared::gost::Auth;
use std::sync::Arc;
use std::time::Duration;

/// What is done with the connections of a listener. Never changes; an update puts another one in its place, which the
/// connections to come use.
pub struct Service {
    /// As configured.
    pub name: String,
    /// Name of the chain to go through. With a name, nothing is ever dialled directly.
    chain: Option<String>,
    /// Chains of which one is gone through; `chain` is nothing then.
    chains: Option<ChainGroup>,
    transport: Transport,
    handler: Handler,
    retries: u32,
    /// Replaces the general time for everything until a client connection is through.
    dial_timeout: Option<Duration>,
    interface: Option<Interface>,
    /// The hash strategies go by what the client asks for, instead of where it comes from.
    hash_by_target: bool,
    /// Each connection begins with a PROXY header.
    proxy_in: bool,
    /// The target gets a PROXY header of this version.
    proxy_out: Option<Version>,
    /// What it has carried; goes on when the service is changed.
    pub traffic: Arc<Traffic>,
    /// The clients it has let in; goes on when the service is changed.
    pub connections: Arc<Connections>,
    /// The clients it has refused; goes on when the service is changed.
    pub refused: Arc<Refused>,
    /// What its clients are limited by.
    limiters: LimiterNames,
    /// Refusals come as often as clients do; their log lines do not.
    refusals: LogGate,
}

/// How connections arrive.
enum Transport {
    Streams(Acceptor),
    Udp(sessions::SessionOptions),
}

enum Handler {
    /// To fixed targets.
    Forward(Forwarder),
    /// To the client's target, or to fixed ones.
    Relay {
        auth: Option<Auth>,
        request_timeout: Option<Duration>,
        forwarder: Option<Forwarder>,
        /// Whether clients may ask for associations of datagrams.
        bind: bool,
    },
    /// To the client's target, by a protocol that others speak.
    Proxy(proxying::Proxy),
}

/// Fixed targets; the same places as in the group.
struct Forwarder {
    names: Vec<String>,
    targets: Vec<HostPort>,
    /// How it is seen whether each works.
    probes: Vec<Option<Arc<Probe>>>,
    group: Group,
}
