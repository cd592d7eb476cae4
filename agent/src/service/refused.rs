//! Why clients are refused: the closed list of words by which they are counted, the same in the API and in the metrics.
//!
//! | word | why |
//! | --- | --- |
//! | `room` | the agent has no room for more |
//! | `connection_limit`, `rate_limit` | a `climiter`, a `rlimiter` |
//! | `proxy_header` | no good PROXY header came |
//! | `tls` | the TLS handshake failed |
//! | `handshake`, `handshake_timeout` | the websocket handshake failed; any handshake took too long |
//! | `client_left` | it was gone before it was through; counted only, for probes do that |
//! | `request`, `request_timeout` | what it sent is none of the protocol; was not complete in time |
//! | `credentials` | wrong credentials, or none |
//! | `unsupported` | it asked for what this service does not do |
//! | `blocked_protocol` | it speaks what the panel has blocked on this node |
//! | `no_chain` | the chain does not exist |
//! | `no_exit` | no node of the chain could be used |
//! | `target` | its target cannot be reached |
//! | `out_of_time` | no way was found in time |

use super::Service;
use super::plane::Plane;
use crate::chain::failure::tls_error;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! reasons {
    ($($(#[$doc:meta])* $reason:ident = $word:literal,)*) => {
        /// Why a client was refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum RefusedBy {
            $($(#[$doc])* $reason,)*
        }

        impl RefusedBy {
            /// All there are.
            pub const ALL: [RefusedBy; [$($word),*].len()] = [$(RefusedBy::$reason),*];

            /// A stable word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(RefusedBy::$reason => $word,)*
                }
            }
        }
    };
}

reasons! {
    /// The agent has no room for more connections.
    Room = "room",
    /// A limit of open connections.
    ConnectionLimit = "connection_limit",
    /// A limit of new connections per second.
    RateLimit = "rate_limit",
    /// No good PROXY header came.
    ProxyHeader = "proxy_header",
    /// The TLS handshake failed.
    Tls = "tls",
    /// Another handshake failed.
    Handshake = "handshake",
    /// A handshake was not done in time.
    HandshakeTimeout = "handshake_timeout",
    /// It was gone before it was through.
    ClientLeft = "client_left",
    /// What it sent is none of the protocol.
    Request = "request",
    /// Its request was not complete in time.
    RequestTimeout = "request_timeout",
    /// Wrong credentials, or none.
    Credentials = "credentials",
    /// It asked for what this service does not do.
    Unsupported = "unsupported",
    /// It speaks what is blocked on this node.
    BlockedProtocol = "blocked_protocol",
    /// The chain does not exist.
    NoChain = "no_chain",
    /// No node of the chain could be used.
    NoExit = "no_exit",
    /// Its target cannot be reached.
    Target = "target",
    /// No way was found in time.
    OutOfTime = "out_of_time",
}

impl RefusedBy {
    /// The handshakes of the layers of a client's connection failed.
    pub(super) fn of_handshake(error: &io::Error) -> Self {
        match (error.kind(), tls_error(error)) {
            (io::ErrorKind::TimedOut, _) => Self::HandshakeTimeout,
            (_, Some(_)) => Self::Tls,
            (kind, None) if is_gone(kind) => Self::ClientLeft,
            (_, None) => Self::Handshake,
        }
    }

    /// The connection failed while its request was read.
    pub(super) fn of_request(error: &io::Error) -> Self {
        match (error.kind(), tls_error(error)) {
            (io::ErrorKind::TimedOut, _) => Self::RequestTimeout,
            // Its certificate, which is looked at last.
            (_, Some(_)) => Self::Tls,
            (kind, None) if is_gone(kind) => Self::ClientLeft,
            (_, None) => Self::Request,
        }
    }
}

fn is_gone(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
    matches!(kind, UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe | NotConnected)
}

/// How many clients were refused for which reason.
#[derive(Debug, Default)]
pub struct Refused([AtomicU64; RefusedBy::ALL.len()]);

impl Refused {
    /// Counts one.
    pub(super) fn count(&self, by: RefusedBy) {
        self.0[by as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Clients refused for this reason.
    pub fn of(&self, by: RefusedBy) -> u64 {
        self.0[by as usize].load(Ordering::Relaxed)
    }

    /// Those reasons that there were.
    pub fn by_reason(&self) -> BTreeMap<&'static str, u64> {
        let all = RefusedBy::ALL.into_iter().map(|by| (by.as_str(), self.of(by)));
        all.filter(|(_, count)| *count > 0).collect()
    }
}

impl Service {
    /// Counts a refused client, and logs that with the reason as often as the log is to be filled with such lines.
    pub(super) fn refuse(
        &self,
        by: RefusedBy,
        client: IpAddr,
        reason: &dyn std::fmt::Display,
        plane: &Plane,
    ) {
        self.refused.count(by);
        plane.tally.refused.count(by);
        let (service, word) = (&self.name, by.as_str());
        if by == RefusedBy::ClientLeft {
            tracing::debug!(service, %client, %reason, "client left");
        } else if let Some(held_back) = self.refusals.pass(&plane.options.clock) {
            tracing::warn!(service, %client, by = word, %reason, held_back, "client refused");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_above_has_every_word() {
        let table = include_str!("refused.rs").split_once("use crate").unwrap().0;
        for by in RefusedBy::ALL {
            assert!(table.contains(&format!("`{}`", by.as_str())), "{}", by.as_str());
        }
        assert_eq!(
            table.matches('`').count(),
            2 * (RefusedBy::ALL.len() + 2),
            "and no other but two limiters"
        );
    }

    #[test]
    fn a_client_that_left_is_told_from_one_that_failed() {
        let eof = io::Error::from(io::ErrorKind::UnexpectedEof);
        assert_eq!(RefusedBy::of_handshake(&eof), RefusedBy::ClientLeft);
        assert_eq!(RefusedBy::of_request(&eof), RefusedBy::ClientLeft);
        let tls = || io::Error::new(io::ErrorKind::InvalidData, rustls::Error::HandshakeNotComplete);
        assert_eq!(RefusedBy::of_handshake(&tls()), RefusedBy::Tls);
        assert_eq!(RefusedBy::of_request(&tls()), RefusedBy::Tls);
        let other = io::Error::other("a GET that asks for no websocket");
        assert_eq!(RefusedBy::of_handshake(&other), RefusedBy::Handshake);
        assert_eq!(RefusedBy::of_request(&other), RefusedBy::Request);
    }
}
