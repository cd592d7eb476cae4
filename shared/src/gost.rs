//! GOST configuration objects, the part that panel and agent exchange.
//!
//! Field names are GOST's, so that an agent of a peer panel understands them. Unknown keys are errors: a key that is
//! silently ignored is a wish that is silently not fulfilled.

mod selection;

pub use selection::{ChainGroupConfig, ChainGroupEntry, ProbeConfig, SelectorConfig};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::time::Duration;

/// Free-form options of an object.
pub type Metadata = BTreeMap<String, serde_json::Value>;

/// A duration as GOST writes it: an integer of nanoseconds or text such as `600s`, `1m30s`, `250ms`.
/// Always written as an integer, since chain payloads of peers accept nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct GoDuration(pub Duration);

impl GoDuration {
    /// Go's own limit, about 292 years. Whatever sums and multiples are made of it, none overflows.
    pub const LONGEST: Duration = Duration::from_nanos(i64::MAX as u64);

    /// Parses Go's duration text. A bare number without a unit is refused, as Go does (except `0`).
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is not a duration such as 600s, 1m30s or 250ms");
        if text == "0" {
            return Ok(Self(Duration::ZERO));
        }
        let mut rest = text;
        let mut total = 0f64;
        if rest.is_empty() {
            return Err(bad());
        }
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(bad)?;
            let number: f64 = rest[..digits].parse().map_err(|_| bad())?;
            rest = &rest[digits..];
            let unit_len = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            let nanos = match &rest[..unit_len] {
                "ns" => 1.0,
                "us" | "µs" | "μs" => 1e3,
                "ms" => 1e6,
                "s" => 1e9,
                "m" => 60e9,
                "h" => 3600e9,
                _ => return Err(bad()),
            };
            total += number * nanos;
            rest = &rest[unit_len..];
        }
        // As a number with a fraction, the longest is one nanosecond more.
        if total > Self::LONGEST.as_nanos() as f64 {
            return Err(bad());
        }
        Ok(Self(Duration::from_nanos(total as u64).min(Self::LONGEST)))
    }

    /// From a number that came from outside; `None` if it is longer than [`GoDuration::LONGEST`].
    pub fn bounded(duration: Duration) -> Option<Self> {
        (duration <= Self::LONGEST).then_some(Self(duration))
    }
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = GoDuration;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an integer of nanoseconds or a duration such as \"600s\"")
            }
            fn visit_u64<E: serde::de::Error>(self, nanos: u64) -> Result<GoDuration, E> {
                GoDuration::bounded(Duration::from_nanos(nanos))
                    .ok_or_else(|| E::custom("a duration must not be longer than 2^63 - 1 nanoseconds"))
            }
            fn visit_i64<E: serde::de::Error>(self, nanos: i64) -> Result<GoDuration, E> {
                u64::try_from(nanos)
                    .map(|n| GoDuration(Duration::from_nanos(n)))
                    .map_err(|_| E::custom("a duration must not be negative"))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<GoDuration, E> {
                GoDuration::parse(text).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Credentials of a relay listener and of the connector that dials it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Auth {
    /// Up to 255 bytes (a length byte on the wire).
    pub username: String,
    /// Up to 255 bytes (a length byte on the wire).
    #[serde(default)]
    pub password: String,
}

impl std::fmt::Debug for Auth {
    /// Never prints the password: configurations reach logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Auth").field("username", &self.username).field("password", &"***").finish()
    }
}

/// TLS options of a dialer or listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TlsConfig {
    /// Dialer: verify the peer's certificate, name included.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secure: bool,
    /// Dialer: name to verify and to send as SNI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// PEM file of the certificate authority. Dialer: verify the peer's certificate with it, without `secure` whatever
    /// name it has. Listener: require a client's certificate signed by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
    /// PEM file of the own certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_file: Option<String>,
    /// PEM file of the own key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<String>,
    /// What may be spoken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<TlsOptions>,
}

/// What TLS may speak; what is missing is not restricted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TlsOptions {
    /// `VersionTLS12` or `VersionTLS13`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_version: Option<String>,
    /// `VersionTLS12` or `VersionTLS13`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_version: Option<String>,
    /// By the names of IANA; those of a version are its only ones then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cipher_suites: Vec<String>,
    /// Protocols to agree upon (ALPN), in order of preference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alpn: Vec<String>,
}

/// A listening port and what is done with its connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServiceConfig {
    /// Unique on a node.
    pub name: String,
    /// `host:port` or `:port`.
    pub addr: String,
    /// What is done with a connection.
    pub handler: HandlerConfig,
    /// How connections arrive.
    pub listener: ListenerConfig,
    /// Fixed targets; without it a relay handler uses the client's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarder: Option<ForwarderConfig>,
    /// Comma-separated traffic limiter names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limiter: Option<String>,
    /// Comma-separated connection limiter names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub climiter: Option<String>,
    /// Comma-separated rate limiter names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rlimiter: Option<String>,
    /// Name of a traffic observer (peer panels send it; the agent reports traffic on its own).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observer: Option<String>,
    /// `interface`, `proxyProtocol`, `paused`, `dialTimeout`, …
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: Metadata,
}

/// What is done with a connection of a service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HandlerConfig {
    /// `tcp`, `udp` or `forward` (to fixed targets), `relay`, `socks5` (or `socks`), `http`, or `auto` (either of the
    /// last two).
    #[serde(rename = "type")]
    pub kind: String,
    /// Name of the chain to go through. With a name, the target is never dialled directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
    /// Further chains to choose from; `chain`, if there is one, stands in front of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain_group: Option<ChainGroupConfig>,
    /// Further candidates tried for one client connection; 0 = every candidate once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
    /// Required from clients of `relay`, `socks5`, `http` and `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// `nodelay`, `readTimeout`, `proxyProtocol`, …
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: Metadata,
}

/// How connections of a service arrive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListenerConfig {
    /// `tcp`, `udp`, `tls`, `ws`, `wss`, or, with many streams per connection, `mtcp`, `mtls`, `mws`, `mwss`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Certificates; without them a self-signed one is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsConfig>,
    /// Options of the listener.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: Metadata,
}

/// The fixed targets of a service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForwarderConfig {
    /// In order of preference.
    pub nodes: Vec<ForwardNodeConfig>,
    /// How one of them is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<SelectorConfig>,
}

/// One target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForwardNodeConfig {
    /// Unique in its forwarder.
    pub name: String,
    /// `host:port`.
    pub addr: String,
    /// How it is seen whether the target works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeConfig>,
    /// `weight`, `backup`, `maxFails`, `failTimeout`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: Metadata,
}

/// How to reach the next group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChainConfig {
    /// Unique on a node.
    pub name: String,
    /// Passed through one after another.
    pub hops: Vec<HopConfig>,
    /// `weight`, `backup`, `maxFails`, `failTimeout`: what groups of chains go by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: Metadata,
}

/// One stage of a chain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HopConfig {
    /// Unique in its chain.
    pub name: String,
    /// How one of the nodes is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<SelectorConfig>,
    /// In order of preference. A hop without this key stands for the document's hop of the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<ChainNodeConfig>>,
    /// Network interface to dial from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Options of the hop.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: Metadata,
}

impl HopConfig {
    /// The nodes; none for a hop that only names another.
    pub fn members(&self) -> &[ChainNodeConfig] {
        self.nodes.as_deref().unwrap_or_default()
    }
}

/// One node of a hop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChainNodeConfig {
    /// Unique in its hop.
    pub name: String,
    /// `host:port` of its service.
    pub addr: String,
    /// The protocol spoken to it; `http` when it is missing, as in GOST.
    #[serde(default)]
    pub connector: ConnectorConfig,
    /// The transport to it; `tcp` when it is missing, as in GOST.
    #[serde(default)]
    pub dialer: DialerConfig,
    /// How it is seen whether the node works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeConfig>,
    /// `weight`, `backup`, `maxFails`, `failTimeout`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: Metadata,
}

/// The protocol spoken to a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConnectorConfig {
    /// `relay`, `socks5` (or `socks`), `http`, or `tcp` or `forward` (nothing is said: the node knows where to go).
    #[serde(rename = "type")]
    pub kind: String,
    /// Sent to the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// `nodelay`, `connectTimeout`, …
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: Metadata,
}

impl Default for ConnectorConfig {
    fn default() -> Self {
        Self { kind: "http".to_owned(), auth: None, metadata: Metadata::new() }
    }
}

/// The transport to a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DialerConfig {
    /// `tcp`, `tls`, `ws`, `wss`, or, with many streams per connection, `mtcp`, `mtls`, `mws`, `mwss`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Verification and client certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsConfig>,
    /// Options of the dialer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: Metadata,
}

impl Default for DialerConfig {
    fn default() -> Self {
        Self { kind: "tcp".to_owned(), tls: None, metadata: Metadata::new() }
    }
}

/// A whole document: what an agent runs, in its state file, in the panel's runtime view and in the hello.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GostConfig {
    /// Listening ports.
    #[serde(default)]
    pub services: Vec<ServiceConfig>,
    /// Ways to the next group.
    #[serde(default)]
    pub chains: Vec<ChainConfig>,
    /// Hops that chains name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<HopConfig>,
    /// Limits of traffic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limiters: Vec<LimiterConfig>,
    /// Limits of open connections.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub climiters: Vec<LimiterConfig>,
    /// Limits of new connections per second.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rlimiters: Vec<LimiterConfig>,
}

/// A limiter of any kind; services name it in `limiter`, `climiter` or `rlimiter`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LimiterConfig {
    /// Unique among those of its kind.
    pub name: String,
    /// One line per scope: `$ 10MB 10MB`, `$$ 100`, `192.0.2.0/24 5`.
    #[serde(default)]
    pub limits: Vec<String>,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

fn is_zero_duration(d: &GoDuration) -> bool {
    d.0.is_zero()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_duration_is_longer_than_gos() {
        let longest = GoDuration(GoDuration::LONGEST);
        for text in ["9223372036854775807ns", "9223372036.854775807s", "2562047h47m16.854775807s"] {
            assert_eq!(GoDuration::parse(text), Ok(longest), "{text}");
        }
        let json = serde_json::to_string(&longest).unwrap();
        assert_eq!(serde_json::from_str::<GoDuration>(&json).unwrap(), longest);
        for longer in
            ["9223372036854775808", "18446744073709551615", "\"9223372037s\"", "\"2562048h\"", "\"9e9h\""]
        {
            assert!(serde_json::from_str::<GoDuration>(longer).is_err(), "{longer}");
        }
    }

    #[test]
    fn durations() {
        let ok = [
            ("0", 0),
            ("600s", 600_000_000_000),
            ("250ms", 250_000_000),
            ("1m30s", 90_000_000_000),
            ("1.5s", 1_500_000_000),
            ("10us", 10_000),
            ("2h", 7_200_000_000_000),
        ];
        for (text, nanos) in ok {
            assert_eq!(GoDuration::parse(text), Ok(GoDuration(Duration::from_nanos(nanos))), "{text}");
        }
        for text in ["", "10", "s", "-1s", "1x", "1 s", "9999999999h", "..s"] {
            assert!(GoDuration::parse(text).is_err(), "{text}");
        }
        assert_eq!(serde_json::to_string(&GoDuration(Duration::from_secs(30))).unwrap(), "30000000000");
        assert_eq!(
            serde_json::from_str::<GoDuration>("30000000000").unwrap(),
            serde_json::from_str::<GoDuration>("\"30s\"").unwrap()
        );
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_it() {
        let error =
            serde_json::from_str::<ChainConfig>(r#"{"name":"c","hops":[],"failover":true}"#).unwrap_err();
        assert!(error.to_string().contains("failover"), "{error}");
    }

    #[test]
    fn a_chain_of_the_peer_panel_reads_and_writes_back_the_same() {
        let text = r#"{"name":"chains_42","hops":[{"name":"hop_42","selector":{"strategy":"fifo","maxFails":1,"failTimeout":600000000000},"nodes":[{"name":"node_1","addr":"198.51.100.7:20443","connector":{"type":"relay","metadata":{"nodelay":true}},"dialer":{"type":"tls"}}]}]}"#;
        let chain: ChainConfig = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&chain).unwrap(), text);
    }

    #[test]
    fn a_password_is_not_printed() {
        let auth = Auth { username: "u".into(), password: "secret".into() };
        assert!(!format!("{auth:?}").contains("secret"));
    }
}
