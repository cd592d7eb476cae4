//! In what ways a node, a chain or a target fails: the closed list of words by which failures are counted, the same in the
//! API and in the metrics.
//!
//! | word | what happened |
//! | --- | --- |
//! | `connect_refused`, `connect_timeout`, `connect_unreachable` | no connection to it |
//! | `tls`, `certificate` | its TLS handshake failed; because of its certificate |
//! | `handshake`, `handshake_timeout` | another handshake failed, or was cut off; any took too long |
//! | `credentials` | it wants other credentials, or some |
//! | `bad_request`, `unavailable`, `internal_error`, `refused` | it answered that it cannot, with a status of that kind or another |
//! | `protocol` | its answer is none of the protocol |
//! | `answer_timeout` | it did not answer in time |
//! | `lost` | the connection to it was lost before it had answered |
//! | `target_forbidden`, `target_timeout`, `target_refused`, `target_unreachable`, `target_network_unreachable` | it answered that it is the target |
//! | `no_datagrams` | it carries no datagrams, or what is spoken to it knows none; not held against it |
//! | `out_of_time` | there was too little time left to try it properly |
//! | `no_nodes` | a chain without nodes |

use super::fault::TargetFault;
use crate::relay::wire::Status;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $word:literal,)*) => {
        /// In what way something failed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum FailureKind {
            $($(#[$doc])* $kind,)*
        }

        impl FailureKind {
            /// All there are.
            pub const ALL: [FailureKind; [$($word),*].len()] = [$(FailureKind::$kind),*];

            /// A stable word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(FailureKind::$kind => $word,)*
                }
            }
        }
    };
}

kinds! {
    /// Nobody listens there.
    ConnectRefused = "connect_refused",
    /// No connection in time.
    ConnectTimeout = "connect_timeout",
    /// No way there, or its name has no address.
    ConnectUnreachable = "connect_unreachable",
    /// The TLS handshake failed.
    Tls = "tls",
    /// Its certificate is not accepted.
    Certificate = "certificate",
    /// Another handshake failed, or any was cut off.
    Handshake = "handshake",
    /// A handshake was not done in time.
    HandshakeTimeout = "handshake_timeout",
    /// It wants other credentials, or some.
    Credentials = "credentials",
    /// It answered that it does not understand, or that this is not for it to do.
    BadRequest = "bad_request",
    /// It answered that it has no way on.
    Unavailable = "unavailable",
    /// It answered that it failed itself.
    InternalError = "internal_error",
    /// It refused with another answer.
    Refused = "refused",
    /// Its answer is none of the protocol.
    Protocol = "protocol",
    /// No answer in time.
    AnswerTimeout = "answer_timeout",
    /// The connection was lost before it had answered.
    Lost = "lost",
    /// It answered that the target is forbidden.
    TargetForbidden = "target_forbidden",
    /// It answered that the target did not answer.
    TargetTimeout = "target_timeout",
    /// It answered that the target refused.
    TargetRefused = "target_refused",
    /// It answered that the target cannot be reached.
    TargetUnreachable = "target_unreachable",
    /// It answered that the target's network cannot be reached.
    TargetNetworkUnreachable = "target_network_unreachable",
    /// What is spoken to it knows no datagrams.
    NoDatagrams = "no_datagrams",
    /// Too little time was left to try it properly.
    OutOfTime = "out_of_time",
    /// A chain without nodes.
    NoNodes = "no_nodes",
}

impl FailureKind {
    /// A connect that failed.
    pub fn of_connect(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut => Self::ConnectTimeout,
            io::ErrorKind::ConnectionRefused => Self::ConnectRefused,
            _ => Self::ConnectUnreachable,
        }
    }

    /// A handshake of a layer that failed.
    pub fn of_handshake(error: &io::Error) -> Self {
        match (error.kind(), tls_error(error)) {
            (io::ErrorKind::TimedOut, _) => Self::HandshakeTimeout,
            (_, Some(rustls::Error::InvalidCertificate(_))) => Self::Certificate,
            (_, Some(_)) => Self::Tls,
            (_, None) => Self::Handshake,
        }
    }

    /// A node was asked, and the connection to it failed before it had answered.
    pub fn of_answer(error: &io::Error) -> Self {
        match (error.kind(), tls_error(error)) {
            (io::ErrorKind::TimedOut, _) => Self::AnswerTimeout,
            // A server refuses a client's certificate after the client's side of the handshake is done.
            (_, Some(_)) => Self::Tls,
            (_, None) => Self::Lost,
        }
    }

    /// A relay server's answer.
    pub fn of_status(status: Status) -> Self {
        match (TargetFault::of_status(status), status) {
            (Some(fault), _) => fault.into(),
            (None, Status::Unauthorized) => Self::Credentials,
            (None, Status::BadRequest) => Self::BadRequest,
            (None, Status::ServiceUnavailable) => Self::Unavailable,
            (None, Status::InternalError) => Self::InternalError,
            (None, _) => Self::Refused,
        }
    }

    /// The answer of an HTTP proxy.
    pub fn of_http(code: u16) -> Self {
        match (TargetFault::of_http(code), code) {
            (Some(fault), _) => fault.into(),
            (None, 401 | 407) => Self::Credentials,
            (None, 400 | 405 | 501) => Self::BadRequest,
            (None, 500) => Self::InternalError,
            (None, _) => Self::Refused,
        }
    }
}

impl From<TargetFault> for FailureKind {
    fn from(fault: TargetFault) -> Self {
        match fault {
            TargetFault::Forbidden => Self::TargetForbidden,
            TargetFault::Timeout => Self::TargetTimeout,
            TargetFault::Refused => Self::TargetRefused,
            TargetFault::HostUnreachable => Self::TargetUnreachable,
            TargetFault::NetworkUnreachable => Self::TargetNetworkUnreachable,
        }
    }
}

impl std::fmt::Display for FailureKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What TLS says of an error, if it comes from there.
pub fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

/// How often something failed in which way.
#[derive(Debug, Default)]
pub struct Failures([AtomicU64; FailureKind::ALL.len()]);

impl Failures {
    /// Counts one.
    pub fn count(&self, kind: FailureKind) {
        self.0[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// All together.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Those kinds that have happened.
    pub fn by_kind(&self) -> BTreeMap<&'static str, u64> {
        FailureKind::ALL
            .into_iter()
            .map(|kind| (kind.as_str(), self.0[kind as usize].load(Ordering::Relaxed)))
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_above_has_every_word_and_no_other() {
        let table: String =
            include_str!("failure.rs").lines().take_while(|line| line.starts_with("//!")).collect();
        let written: Vec<&str> = table
            .split("//! | ")
            .filter(|row| row.starts_with('`'))
            .flat_map(|row| row.split(" | ").next().unwrap().split(", "))
            .map(|word| word.trim_matches('`'))
            .collect();
        let mut words: Vec<_> = FailureKind::ALL.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(written.len(), words.len());
        words.retain(|word| !written.contains(word));
        assert!(words.is_empty(), "{words:?} not in {written:?}");
    }

    #[test]
    fn kinds_are_counted_apart() {
        let failures = Failures::default();
        assert_eq!((failures.total(), failures.by_kind().len()), (0, 0));
        failures.count(FailureKind::Tls);
        failures.count(FailureKind::ConnectRefused);
        failures.count(FailureKind::Tls);
        assert_eq!(failures.total(), 3);
        assert_eq!(failures.by_kind(), BTreeMap::from([("connect_refused", 1), ("tls", 2)]));
    }

    #[test]
    fn errors_of_tls_are_known_behind_the_systems() {
        let of = |error| FailureKind::of_handshake(&io::Error::new(io::ErrorKind::InvalidData, error));
        assert_eq!(of(rustls::Error::HandshakeNotComplete), FailureKind::Tls);
        let certificate = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        assert_eq!(of(certificate), FailureKind::Certificate);
        let eof = io::Error::from(io::ErrorKind::UnexpectedEof);
        assert_eq!(FailureKind::of_handshake(&eof), FailureKind::Handshake);
        assert_eq!(FailureKind::of_answer(&eof), FailureKind::Lost);
        let late = io::Error::from(io::ErrorKind::TimedOut);
        assert_eq!(FailureKind::of_connect(&late), FailureKind::ConnectTimeout);
        assert_eq!(FailureKind::of_handshake(&late), FailureKind::HandshakeTimeout);
        assert_eq!(FailureKind::of_answer(&late), FailureKind::AnswerTimeout);
    }

    #[test]
    fn answers_have_their_kinds() {
        let status = |code| FailureKind::of_status(Status::from_code(code)).as_str();
        let expected = ["bad_request", "credentials", "target_forbidden", "target_timeout", "unavailable"];
        assert_eq!([1, 2, 3, 4, 5].map(status), expected);
        assert_eq!(
            [6, 7, 8, 99].map(status),
            ["target_unreachable", "target_network_unreachable", "internal_error", "refused"]
        );
        let http = |code| FailureKind::of_http(code).as_str();
        assert_eq!(
            [407, 403, 502, 400, 302].map(http),
            ["credentials", "target_forbidden", "target_unreachable", "bad_request", "refused"]
        );
    }
}
