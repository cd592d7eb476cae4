//! Handlers for the proxy protocols that others speak: what they are configured with, and which one a client speaks.

use super::build::{HASH, positive};
use super::http::Http;
use super::plane::Plane;
use super::refused::RefusedBy;
use super::socks5::Socks5;
use super::{Service, associate, http, socks5};
use crate::chain::connector::{check_auth, check_basic_auth};
use crate::metadata::{ConfigError, MetadataReader};
use crate::proxy::socks5::wire;
use crate::relay::pump::Client;
use shared::address::HostPort;
use shared::gost::{HandlerConfig, ServiceConfig};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout_at;
use tokio_util::sync::CancellationToken;

/// What a proxy says that its credentials are for, unless it is configured.
const REALM: &str = "proxy";

/// A handler to which clients say where they want to go.
pub(super) struct Proxy {
    protocols: Protocols,
    /// Replaces the general deadline of the request.
    request_timeout: Option<Duration>,
}

enum Protocols {
    Socks5(Socks5),
    Http(Http),
    /// The client's first byte decides.
    Auto(Socks5, Http),
}

impl Proxy {
    /// `path` is the service's; `None` if the handler is of another kind.
    pub(super) fn build(path: &str, config: &ServiceConfig) -> Result<Option<Self>, ConfigError> {
        let HandlerConfig { kind, auth, metadata, .. } = &config.handler;
        let (socks5, http) = match kind.as_str() {
            "socks5" | "socks" => (true, false),
            "http" => (false, true),
            "auto" => (true, true),
            _ => return Ok(None),
        };
        if config.forwarder.is_some() {
            let reason = format!("clients of {kind} say themselves where they want to go");
            return Err(ConfigError::new(format!("{path}: forwarder"), reason));
        }
        let mut known = vec!["nodelay", "readTimeout", "keepalive", "keepalive.", HASH];
        if socks5 {
            known.extend(["notls", "bind", "udp", "ttl"]);
        }
        if http {
            known.push("authBasicRealm");
        }
        let place = format!("{path}: handler.metadata");
        let metadata = MetadataReader::new(place.as_str(), metadata, &known)?;
        // `notls` forbids what is never done: GOST's own methods with TLS inside.
        metadata.flag("notls")?;
        metadata.refuse("bind")?;
        let datagrams = metadata.flag("udp")?.then_some(metadata.duration("ttl")?).map(associate::options);
        if let Some(auth) = auth {
            let path = format!("{path}: handler.auth");
            if http { check_basic_auth(&path, auth)? } else { check_auth(&path, auth)? }
        }
        let realm = metadata.text("authBasicRealm")?.unwrap_or(REALM);
        if realm.contains(|c: char| c == '"' || c == '\\' || !(c == ' ' || c.is_ascii_graphic())) {
            let reason = format!("`{realm}` has characters that HTTP cannot quote");
            return Err(ConfigError::new(format!("{place}.authBasicRealm"), reason));
        }
        let (auth, realm) = (auth.clone(), realm.to_owned());
        let protocols = match (socks5, http) {
            (true, true) => Protocols::Auto(Socks5 { auth: auth.clone(), datagrams }, Http { auth, realm }),
            (true, false) => Protocols::Socks5(Socks5 { auth, datagrams }),
            (false, _) => Protocols::Http(Http { auth, realm }),
        };
        Ok(Some(Self { protocols, request_timeout: positive(metadata.duration("readTimeout")?) }))
    }
}

/// Serves one client.
pub(super) async fn serve(
    service: &Arc<Service>,
    proxy: &Proxy,
    mut client: Client,
    plane: &Arc<Plane>,
    stop: &CancellationToken,
) -> io::Result<()> {
    let timeout = proxy.request_timeout.unwrap_or(plane.options.deadlines.relay_request);
    let deadline = plane.options.clock.instant() + timeout;
    match &proxy.protocols {
        Protocols::Socks5(handler) => {
            socks5::serve(service, handler, (client, None), deadline, plane, stop).await
        }
        Protocols::Http(handler) => {
            http::serve(service, handler, (client, None), deadline, plane, stop).await
        }
        Protocols::Auto(on_socks5, on_http) => {
            let ip = client.key.ip();
            let first = timeout_at(deadline, client.stream().read_u8()).await;
            let first =
                first.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).inspect_err(|error| {
                    service.refuse(RefusedBy::of_request(error), ip, error, plane);
                })?;
            let client = (client, Some(first));
            if first == wire::VERSION {
                socks5::serve(service, on_socks5, client, deadline, plane, stop).await
            } else {
                http::serve(service, on_http, client, deadline, plane, stop).await
            }
        }
    }
}

/// By what the hash strategies know a client. As in GOST, a user is the same client wherever it comes from.
pub(super) fn name_client(client: &mut Client, service: &Service, user: Option<&str>, target: &HostPort) {
    match user {
        Some(user) => client.key = client.key.named(user),
        None if service.hash_by_target => client.key = client.key.named(&target.to_string()),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn build(handler: Value, more: Value) -> Result<Service, ConfigError> {
        let mut config = json!({"name": "p", "addr": ":0", "handler": handler, "listener": {"type": "tcp"}});
        for (key, value) in more.as_object().unwrap() {
            config[key] = value.clone();
        }
        Service::build(&serde_json::from_value(config).unwrap(), None)
    }

    #[test]
    fn what_gost_files_say_is_understood() {
        let auth = json!({"username": "u", "password": "p:q"});
        let metadata = json!({"readTimeout": "5s", "notls": true, "bind": false, "udp": true, "ttl": "1m", "hash": "host"});
        build(json!({"type": "socks5", "auth": auth, "metadata": metadata}), json!({})).unwrap();
        build(json!({"type": "socks"}), json!({})).unwrap();
        let metadata = json!({"readTimeout": 5, "authBasicRealm": "my proxy", "keepalive": true});
        build(json!({"type": "http", "auth": auth, "metadata": metadata}), json!({})).unwrap();
        build(json!({"type": "auto", "auth": auth}), json!({})).unwrap();
    }

    #[test]
    fn errors_name_the_place() {
        let forwarder = json!({"forwarder": {"nodes": [{"name": "n", "addr": "a.example:1"}]}});
        let colon = json!({"username": "a:b"});
        let cases = [
            (json!({"type": "socks5"}), forwarder.clone(), "forwarder: clients of socks5 say themselves"),
            (json!({"type": "http"}), forwarder, "forwarder: clients of http say themselves"),
            (json!({"type": "socks4"}), json!({}), "handler.type: socks4 is not supported"),
            (
                json!({"type": "socks5", "metadata": {"bind": true}}),
                json!({}),
                "handler.metadata.bind: is not",
            ),
            (
                json!({"type": "http", "metadata": {"bind": false}}),
                json!({}),
                "handler.metadata.bind: is not",
            ),
            (
                json!({"type": "http", "metadata": {"probeResistance": "code:404"}}),
                json!({}),
                "handler.metadata.probeResistance: is not supported",
            ),
            (
                json!({"type": "http", "metadata": {"authBasicRealm": "a\"b"}}),
                json!({}),
                "handler.metadata.authBasicRealm: `a\"b`",
            ),
            (json!({"type": "http", "auth": colon}), json!({}), "handler.auth.username: must have no colon"),
            (json!({"type": "auto", "auth": colon}), json!({}), "handler.auth.username: must have no colon"),
            (
                json!({"type": "socks5", "auth": {"username": "u".repeat(256)}}),
                json!({}),
                "handler.auth.username: must not be longer",
            ),
        ];
        for (handler, more, expected) in cases {
            let error = build(handler, more).err().unwrap().to_string();
            assert!(error.starts_with(&format!("service p: {expected}")), "{error} instead of {expected}");
        }
        // References to lists of users, which do not exist here.
        for field in ["auther", "authers"] {
            let handler = json!({"type": "http", field: "x"});
            let error = serde_json::from_value::<HandlerConfig>(handler).unwrap_err().to_string();
            assert!(error.contains(&format!("unknown field `{field}`")), "{error}");
        }
    }
}
