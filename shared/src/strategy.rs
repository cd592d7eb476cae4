//! Strategies: how a group chooses one of its nodes for the next connection.

use crate::policy::{self, Policy};
use serde::{Deserialize, Serialize};

pub mod words;

/// How a group chooses one of its nodes.
///
/// Written as text everywhere (database, API, page). A text that this version does not know is kept as
/// [`Strategy::Other`], so that reading and writing back never changes it; validation refuses it where it is new.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Strategy {
    /// 主备: the first usable node in order.
    Fifo,
    /// 轮询: rotates over the usable nodes.
    Round,
    /// 随机: random, weighted by the node's `weight`.
    Rand,
    /// 哈希: the same client gets the same node.
    Hash,
    /// 最优: the panel measures the exits and puts the best one first; rendered as [`Strategy::Fifo`].
    Best,
    /// Any other policy, with its options.
    Policy(Box<Written>),
    /// A text this version does not know.
    Other(String),
}

/// A policy and the text in which somebody wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    text: String,
    policy: Policy,
}

impl Written {
    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it means.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }
}

/// A group's place in a tunnel; decides which strategies it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A middle hop.
    Hop,
    /// The exit group.
    Exit,
    /// The targets of a forward.
    Targets,
}

impl Strategy {
    /// The strategies without options, in the order in which the page lists them.
    pub const KNOWN: [Strategy; 5] =
        [Strategy::Fifo, Strategy::Round, Strategy::Rand, Strategy::Best, Strategy::Hash];

    /// Further ones, without options that are not needed, in the order in which the page lists them.
    pub const FURTHER: [&str; 10] = [
        "hash(consistent)",
        "selector",
        "urltest",
        "min_moving_avg",
        "min_avg10",
        "min",
        "lowestlatency",
        "fixed_fallback(0)",
        "fixed(0)",
        "parallel",
    ];

    /// What it is without its options: strategies of one kind differ in options only.
    pub fn kind(&self) -> &str {
        match self {
            Strategy::Policy(written) => match written.policy() {
                Policy::Hash { consistent: true, .. } => "hash(consistent)",
                policy => policy.name(),
            },
            Strategy::Other(text) => text.split('(').next().unwrap_or_default().trim(),
            plain => plain.as_str(),
        }
    }

    /// The text stored and sent for this strategy.
    pub fn as_str(&self) -> &str {
        match self {
            Strategy::Fifo => "fifo",
            Strategy::Round => "round",
            Strategy::Rand => "rand",
            Strategy::Hash => "hash",
            Strategy::Best => "best",
            Strategy::Policy(written) => &written.text,
            Strategy::Other(text) => text,
        }
    }

    /// Whether a group at `place` may have this strategy. `best` needs exits to measure, so it is for them only.
    pub fn allowed_at(&self, place: Place) -> bool {
        match self {
            Strategy::Fifo | Strategy::Round | Strategy::Rand | Strategy::Hash | Strategy::Policy(_) => true,
            Strategy::Best => place == Place::Exit,
            Strategy::Other(_) => false,
        }
    }

    /// The policy that is written, if it is none of those without options.
    pub fn policy(&self) -> Option<&Policy> {
        match self {
            Strategy::Policy(written) => Some(&written.policy),
            _ => None,
        }
    }

    /// The capability that an agent reports when it can carry it out, `strategy:urltest` for example. `None`: nobody
    /// knows what it is.
    pub fn capability(&self) -> Option<String> {
        let name = match self {
            Strategy::Best => "fifo",
            Strategy::Policy(written) => written.policy.name(),
            Strategy::Other(_) => return None,
            plain => plain.as_str(),
        };
        Some(format!("strategy:{name}"))
    }

    /// The strategy that an agent executes for it: `best` is `fifo` over the applied order.
    pub fn rendered(&self) -> Strategy {
        match self {
            Strategy::Best => Strategy::Fifo,
            other => other.clone(),
        }
    }
}

impl From<String> for Strategy {
    /// Accepts GOST's alternative spellings (`ha`, `rr`, `random`) too.
    fn from(text: String) -> Self {
        let Ok(parsed) = policy::parse(&text) else { return Strategy::Other(text) };
        match parsed.policy {
            Policy::Fifo => Strategy::Fifo,
            Policy::Round => Strategy::Round,
            Policy::Rand => Strategy::Rand,
            Policy::Hash { host: false, consistent: false } => Strategy::Hash,
            Policy::Best => Strategy::Best,
            policy => Strategy::Policy(Box::new(Written { text, policy })),
        }
    }
}

impl From<&str> for Strategy {
    fn from(text: &str) -> Self {
        Strategy::from(text.to_owned())
    }
}

impl From<Strategy> for String {
    fn from(strategy: Strategy) -> Self {
        match strategy {
            Strategy::Other(text) => text,
            Strategy::Policy(written) => written.text,
            known => known.as_str().to_owned(),
        }
    }
}

impl std::fmt::Display for Strategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The transport between two neighbouring groups.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Protocol {
    /// TLS over TCP.
    Tls,
    /// Websocket over TLS.
    Wss,
    /// Plain TCP.
    Tcp,
    /// Plain websocket.
    Ws,
    /// Multiplexed TLS.
    Mtls,
    /// Multiplexed websocket over TLS.
    Mwss,
    /// Multiplexed TCP.
    Mtcp,
    /// A text this version does not know.
    Other(String),
}

impl Protocol {
    /// The protocols this version knows, in the order in which the page lists them.
    pub const KNOWN: [Protocol; 7] = [
        Protocol::Tls,
        Protocol::Wss,
        Protocol::Tcp,
        Protocol::Ws,
        Protocol::Mtls,
        Protocol::Mwss,
        Protocol::Mtcp,
    ];

    /// The text stored and sent for this protocol; also GOST's dialer and listener type.
    pub fn as_str(&self) -> &str {
        match self {
            Protocol::Tls => "tls",
            Protocol::Wss => "wss",
            Protocol::Tcp => "tcp",
            Protocol::Ws => "ws",
            Protocol::Mtls => "mtls",
            Protocol::Mwss => "mwss",
            Protocol::Mtcp => "mtcp",
            Protocol::Other(text) => text,
        }
    }

    /// The capability an agent reports when it can listen for and dial this protocol, `protocol:tls` for example.
    pub fn capability(&self) -> String {
        format!("protocol:{}", self.as_str())
    }
}

impl From<String> for Protocol {
    fn from(text: String) -> Self {
        Protocol::KNOWN.into_iter().find(|p| p.as_str() == text).unwrap_or(Protocol::Other(text))
    }
}

impl From<&str> for Protocol {
    fn from(text: &str) -> Self {
        Protocol::from(text.to_owned())
    }
}

impl From<Protocol> for String {
    fn from(protocol: Protocol) -> Self {
        protocol.as_str().to_owned()
    }
}

impl std::fmt::Display for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips_and_unknown_text_is_kept() {
        for strategy in Strategy::KNOWN {
            assert_eq!(Strategy::from(strategy.as_str()), strategy);
        }
        for protocol in Protocol::KNOWN {
            assert_eq!(Protocol::from(protocol.as_str()), protocol);
        }
        let json = r#""weighted(3)""#;
        let strategy: Strategy = serde_json::from_str(json).unwrap();
        assert_eq!(strategy, Strategy::Other("weighted(3)".into()));
        assert_eq!(serde_json::to_string(&strategy).unwrap(), json);
    }

    #[test]
    fn best_is_for_exits_and_renders_as_fifo() {
        assert!(Strategy::Best.allowed_at(Place::Exit));
        assert!(!Strategy::Best.allowed_at(Place::Hop));
        assert!(!Strategy::Best.allowed_at(Place::Targets));
        assert_eq!(Strategy::Best.rendered(), Strategy::Fifo);
        for strategy in [Strategy::Fifo, Strategy::Round, Strategy::Rand, Strategy::Hash] {
            assert_eq!(strategy.rendered(), strategy);
            assert!(strategy.allowed_at(Place::Hop) && strategy.allowed_at(Place::Exit));
        }
        assert!(!Strategy::Other("x".into()).allowed_at(Place::Exit));
    }

    #[test]
    fn what_is_offered_is_known_and_of_different_kinds() {
        let further = Strategy::FURTHER.map(Strategy::from);
        assert!(further.iter().all(|strategy| strategy.policy().is_some()));
        let kinds = Strategy::KNOWN.iter().chain(&further).map(Strategy::kind);
        let kinds: std::collections::BTreeSet<&str> = kinds.collect();
        assert_eq!(kinds.len(), Strategy::KNOWN.len() + further.len());
        // While options are typed, the kind stays.
        for text in ["urltest(tolerance=", "urltest( tolerance=5 )", "urltest"] {
            assert_eq!(Strategy::from(text).kind(), "urltest");
        }
        assert_eq!(Strategy::from("hash(client, consistent)").kind(), "hash(consistent)");
    }

    #[test]
    fn a_policy_keeps_its_text_and_tells_what_an_agent_must_be_able_to_do() {
        for (text, capability) in [
            ("urltest( tolerance = 20ms )", "strategy:urltest"),
            ("min_last_latency", "strategy:min"),
            ("hash(consistent)", "strategy:hash"),
            ("ll", "strategy:lowestlatency"),
        ] {
            let strategy = Strategy::from(text);
            assert_eq!(strategy.capability().as_deref(), Some(capability));
            assert!(strategy.policy().is_some());
            assert_eq!(String::from(strategy), text);
        }
        assert_eq!(Strategy::from("random()"), Strategy::Rand);
        assert_eq!(Strategy::Best.capability().as_deref(), Some("strategy:fifo"));
        let wrong = Strategy::from("urltest(tolerance=soon)");
        assert_eq!((wrong.capability(), wrong.as_str()), (None, "urltest(tolerance=soon)"));
    }
}
