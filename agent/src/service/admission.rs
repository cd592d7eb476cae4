//! Whether a client may come in, and under which limits.

use super::Service;
use super::plane::Plane;
use super::refused::RefusedBy;
use crate::limit::count::{Counted, Full};
use crate::limit::datagrams::Policed;
use crate::limit::limited::Limited;
use crate::limit::traffic::TrafficLimiter;
use crate::limit::{LimitKind, names};
use crate::net::within;
use crate::proxy_protocol::{self, Ends, HeaderError};
use crate::stream::Stream;
use shared::gost::ServiceConfig;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpStream;

/// The limiters that a service names. Looked up per connection, so one that comes later counts for who comes later.
pub(super) struct LimiterNames {
    traffic: Vec<String>,
    connections: Vec<String>,
    rates: Vec<String>,
}

impl LimiterNames {
    pub(super) fn of(config: &ServiceConfig) -> Self {
        Self {
            traffic: names(config.limiter.as_deref()),
            connections: names(config.climiter.as_deref()),
            rates: names(config.rlimiter.as_deref()),
        }
    }
}

impl LimiterNames {
    /// All of them.
    pub(super) fn names(&self) -> impl Iterator<Item = (LimitKind, &str)> {
        LimitKind::ALL.into_iter().flat_map(|kind| {
            let list = match kind {
                LimitKind::Traffic => &self.traffic,
                LimitKind::Connections => &self.connections,
                LimitKind::Rate => &self.rates,
            };
            list.iter().map(move |name| (kind, name.as_str()))
        })
    }
}

/// Why a client may not come in.
#[derive(Debug, thiserror::Error)]
pub(super) enum Denied {
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error("too many open connections {full} (climiter {limiter})")]
    Connections { limiter: String, full: Full },
    #[error("too many new connections {full} (rlimiter {limiter})")]
    Rate { limiter: String, full: Full },
}

impl Denied {
    /// The word by which it is counted.
    pub(super) fn refused_by(&self) -> RefusedBy {
        match self {
            Denied::Header(HeaderError::Io(error)) if error.kind() != io::ErrorKind::TimedOut => {
                match RefusedBy::of_request(error) {
                    RefusedBy::ClientLeft => RefusedBy::ClientLeft,
                    _ => RefusedBy::ProxyHeader,
                }
            }
            Denied::Header(_) => RefusedBy::ProxyHeader,
            Denied::Connections { .. } => RefusedBy::ConnectionLimit,
            Denied::Rate { .. } => RefusedBy::RateLimit,
        }
    }
}

/// A client that may come in; counted as long as this lives.
pub(super) struct Admitted {
    _counted: Vec<Counted>,
    traffic: Vec<Arc<TrafficLimiter>>,
    ip: IpAddr,
}

/// Who a client is: what the PROXY header says, if the service wants one.
///
/// A service that wants one takes nothing else: whoever leaves it out could be anybody.
pub(super) async fn ends(
    service: &Service,
    tcp: &mut TcpStream,
    peer: SocketAddr,
    plane: &Plane,
) -> Result<Ends, Denied> {
    let own = Ends { source: peer, destination: tcp.local_addr().map_err(HeaderError::Io)? };
    if !service.proxy_in {
        return Ok(own);
    }
    let deadline = plane.options.deadlines.handshake;
    let said = within(deadline, async { Ok(proxy_protocol::read(tcp).await) }).await;
    Ok(said.map_err(HeaderError::Io)??.unwrap_or(own))
}

/// Asks all limiters of the service. `ip` is the client's.
pub(super) fn admit(service: &Service, ip: IpAddr, plane: &Plane) -> Result<Admitted, Denied> {
    let LimiterNames { traffic, connections, rates } = &service.limiters;
    let mut counted = Vec::new();
    for name in connections {
        if let Some(limiter) = plane.limits.connections(name) {
            let full = |full| Denied::Connections { limiter: name.clone(), full };
            counted.push(limiter.admit(ip).map_err(full)?);
        }
    }
    for name in rates {
        if let Some(limiter) = plane.limits.rate(name) {
            limiter.admit(ip).map_err(|full| Denied::Rate { limiter: name.clone(), full })?;
        }
    }
    Ok(Admitted { _counted: counted, traffic: plane.limits.traffic(traffic), ip })
}

/// The limits of what a client that has come in sends beside its connection, if there are any.
pub(super) fn police(service: &Service, ip: IpAddr, plane: &Plane) -> Option<Policed> {
    Policed::new(&plane.limits.traffic(&service.limiters.traffic), ip, &plane.options.clock)
}

impl Admitted {
    /// The limits of a flow of datagrams, if there are any.
    pub(super) fn police(&self, plane: &Plane) -> Option<Policed> {
        Policed::new(&self.traffic, self.ip, &plane.options.clock)
    }

    /// Puts the connection under the limits; without any it stays what it is.
    pub(super) fn limit(&self, stream: Stream, plane: &Plane) -> Stream {
        if self.traffic.is_empty() {
            return stream;
        }
        Stream::Layered(Box::new(Limited::new(stream, &self.traffic, self.ip, &plane.options.clock)))
    }
}
