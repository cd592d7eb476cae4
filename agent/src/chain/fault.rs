//! Whose fault it is when a node was asked for a connection and gave none: one rule for every protocol.
//!
//! An answer that speaks of the target is held against the node only if another one reaches the same target. Otherwise a
//! client that asks for targets which are down or forbidden would push every exit aside. Any other failure is the node's.
//!
//! | the node says that the target | relay | SOCKS5 | HTTP |
//! | --- | --- | --- | --- |
//! | is forbidden by its rules | 3 | 02 | 403 |
//! | did not answer in time | 4 | 06 | 504 |
//! | refused | | 05 | |
//! | cannot be reached | 6 | 04 | 502, 503 |
//! | is in a network that cannot be reached | 7 | 03 | |
//!
//! HTTP's 503 is there although it could speak of the proxy: it is what GOST and Squid say of any target that is down.

use super::failure::FailureKind;
use crate::proxy::http::client::ClientError as HttpError;
use crate::proxy::socks5::client::ClientError as SocksError;
use crate::proxy::socks5::wire::Reply;
use crate::relay::client::RelayError;
use crate::relay::wire::Status;
use std::io;

/// What a node, or the system, says about a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetFault {
    /// Rules forbid it.
    Forbidden,
    /// It did not answer in time.
    Timeout,
    /// It answered, with a refusal.
    Refused,
    /// It cannot be reached, or its name has no address.
    HostUnreachable,
    /// Its network cannot be reached.
    NetworkUnreachable,
}

impl TargetFault {
    /// What a relay server's answer says about the target, if it is about that.
    pub fn of_status(status: Status) -> Option<Self> {
        match status {
            Status::Forbidden => Some(Self::Forbidden),
            Status::Timeout => Some(Self::Timeout),
            Status::HostUnreachable => Some(Self::HostUnreachable),
            Status::NetworkUnreachable => Some(Self::NetworkUnreachable),
            Status::Ok
            | Status::BadRequest
            | Status::Unauthorized
            | Status::ServiceUnavailable
            | Status::InternalError
            | Status::Other(_) => None,
        }
    }

    /// How a relay server says it.
    pub fn status(self) -> Status {
        match self {
            Self::Forbidden => Status::Forbidden,
            Self::Timeout => Status::Timeout,
            Self::Refused | Self::HostUnreachable => Status::HostUnreachable,
            Self::NetworkUnreachable => Status::NetworkUnreachable,
        }
    }

    /// What a SOCKS5 server's reply says about the target, if it is about that.
    pub fn of_reply(reply: Reply) -> Option<Self> {
        match reply {
            Reply::NotAllowed => Some(Self::Forbidden),
            Reply::TtlExpired => Some(Self::Timeout),
            Reply::ConnectionRefused => Some(Self::Refused),
            Reply::HostUnreachable => Some(Self::HostUnreachable),
            Reply::NetworkUnreachable => Some(Self::NetworkUnreachable),
            Reply::Succeeded
            | Reply::GeneralFailure
            | Reply::CommandNotSupported
            | Reply::AddressTypeNotSupported
            | Reply::Other(_) => None,
        }
    }

    /// How a SOCKS5 server says it.
    pub fn reply(self) -> Reply {
        match self {
            Self::Forbidden => Reply::NotAllowed,
            Self::Timeout => Reply::TtlExpired,
            Self::Refused => Reply::ConnectionRefused,
            Self::HostUnreachable => Reply::HostUnreachable,
            Self::NetworkUnreachable => Reply::NetworkUnreachable,
        }
    }

    /// What the answer of an HTTP proxy says about the target, if it is about that.
    pub fn of_http(code: u16) -> Option<Self> {
        match code {
            403 => Some(Self::Forbidden),
            502 | 503 => Some(Self::HostUnreachable),
            504 => Some(Self::Timeout),
            _ => None,
        }
    }

    /// How an HTTP proxy says it. 503 is left to say that there is no way.
    pub fn http(self) -> u16 {
        match self {
            Self::Forbidden => 403,
            Self::Timeout => 504,
            Self::Refused | Self::HostUnreachable | Self::NetworkUnreachable => 502,
        }
    }

    /// What a failed connect says about the target.
    pub fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut => Self::Timeout,
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::NetworkDown => Self::NetworkUnreachable,
            _ => Self::HostUnreachable,
        }
    }
}

impl std::fmt::Display for TargetFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Forbidden => "forbidden",
            Self::Timeout => "target timed out",
            Self::Refused => "target refused",
            Self::HostUnreachable => "host unreachable",
            Self::NetworkUnreachable => "network unreachable",
        })
    }
}

/// Why a node that was asked gave no connection.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It says that it is the target.
    #[error("answered: {0}")]
    Target(TargetFault),
    /// Its answer speaks of itself, or is none of the protocol.
    #[error("{0}")]
    Node(String, FailureKind),
    /// What is spoken to it knows connections only.
    #[error("its connector carries no datagrams")]
    NoDatagrams,
    /// It carries connections only.
    #[error("it carries no datagrams: {0}")]
    DatagramsDenied(Reply),
    /// The connection to it failed, or it did not answer in time.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl AskError {
    /// Why a SOCKS5 server gave no way for datagrams. It was asked for no target yet, so it speaks of itself, and says no
    /// to all of them: GOST's with "not allowed" unless it is configured to, others do not know the command.
    pub(super) fn of_tunnel(error: SocksError) -> Self {
        match error {
            SocksError::Denied(reply @ (Reply::NotAllowed | Reply::CommandNotSupported)) => {
                Self::DatagramsDenied(reply)
            }
            SocksError::Denied(reply) => Self::Node(error.to_string(), of_reply(reply)),
            other => other.into(),
        }
    }

    /// The word by which it is counted.
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Target(fault) => (*fault).into(),
            Self::Node(_, kind) => *kind,
            Self::NoDatagrams | Self::DatagramsDenied(_) => FailureKind::NoDatagrams,
            Self::Io(error) => FailureKind::of_answer(error),
        }
    }
}

/// What a SOCKS5 server says of itself.
fn of_reply(reply: Reply) -> FailureKind {
    match reply {
        Reply::GeneralFailure => FailureKind::Unavailable,
        Reply::CommandNotSupported | Reply::AddressTypeNotSupported => FailureKind::BadRequest,
        _ => FailureKind::Refused,
    }
}

impl From<RelayError> for AskError {
    fn from(error: RelayError) -> Self {
        match error {
            RelayError::Status(status) => match TargetFault::of_status(status) {
                Some(fault) => Self::Target(fault),
                None => Self::Node(error.to_string(), FailureKind::of_status(status)),
            },
            RelayError::Wire(_) => Self::Node(error.to_string(), FailureKind::Protocol),
            RelayError::Io(error) => Self::Io(error),
        }
    }
}

impl From<SocksError> for AskError {
    fn from(error: SocksError) -> Self {
        match error {
            SocksError::Denied(reply) => match TargetFault::of_reply(reply) {
                Some(fault) => Self::Target(fault),
                None => Self::Node(error.to_string(), of_reply(reply)),
            },
            SocksError::Io(error) => Self::Io(error),
            SocksError::Unauthorized | SocksError::NoMethod { .. } => {
                Self::Node(error.to_string(), FailureKind::Credentials)
            }
            SocksError::Method(_) | SocksError::Wire(_) => {
                Self::Node(error.to_string(), FailureKind::Protocol)
            }
        }
    }
}

impl From<HttpError> for AskError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Denied { code, .. } => match TargetFault::of_http(code) {
                Some(fault) => Self::Target(fault),
                None => Self::Node(error.to_string(), FailureKind::of_http(code)),
            },
            HttpError::Io(error) => Self::Io(error),
            other => Self::Node(other.to_string(), FailureKind::Protocol),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAULTS: [TargetFault; 5] = [
        TargetFault::Forbidden,
        TargetFault::Timeout,
        TargetFault::Refused,
        TargetFault::HostUnreachable,
        TargetFault::NetworkUnreachable,
    ];

    #[test]
    fn a_relay_server_is_understood_as_it_was_meant() {
        for fault in FAULTS {
            let expected = if fault == TargetFault::Refused { TargetFault::HostUnreachable } else { fault };
            assert_eq!(TargetFault::of_status(fault.status()), Some(expected));
        }
        for code in [0, 1, 2, 5, 8, 9, 255] {
            assert_eq!(TargetFault::of_status(Status::from_code(code)), None, "{code}");
        }
    }
    #[test]
    fn a_socks5_server_is_understood_as_it_was_meant() {
        for fault in FAULTS {
            assert_eq!(TargetFault::of_reply(fault.reply()), Some(fault));
        }
        for code in [0, 1, 7, 8, 9, 255] {
            assert_eq!(TargetFault::of_reply(Reply::from_code(code)), None, "{code}");
        }
    }

    #[test]
    fn an_http_proxy_is_understood_as_it_was_meant() {
        for fault in FAULTS {
            let expected = match fault {
                TargetFault::Refused | TargetFault::NetworkUnreachable => TargetFault::HostUnreachable,
                other => other,
            };
            assert_eq!(TargetFault::of_http(fault.http()), Some(expected));
        }
        for code in [301, 400, 401, 404, 405, 407, 429, 500, 501] {
            assert_eq!(TargetFault::of_http(code), None, "{code}");
        }
    }
}
