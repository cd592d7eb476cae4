//! Handlers for the proxy protocols that others speak: what they are configured with, and which one a client speaks.

use super::build::{HASH, positive};
use super::http::Http;
use super::plane::Plane;
use super::socks5::Socks5;
use super::{Service, http, socks5};
use crate::chain::connector::{check_auth, check_basic_auth};
use crate::metadata::{ConfigError, MetadataReader};
use crate::proxy::socks5::wire;
use crate::relay::pump::Client;
use shared::address::HostPort;
use shared::gost::{HandlerConfig, ServiceConfig};
use std::io;
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
        let mut known = vec!["nodelay", "readTimeout", "keepalive", "keepalive.", "ttl", HASH];
        if socks5 {
            known.extend(["notls", "bind", "udp"]);
        }
        if http {
            known.push("authBasicRealm");
        }
        let place = format!("{path}: handler.metadata");
        let metadata = MetadataReader::new(place.as_str(), metadata, &known)?;
        // `notls` forbids what is never done: GOST's own methods with TLS inside.
        metadata.flag("notls")?;
        metadata.refuse("bind")?;
        metadata.refuse("udp")?;
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
            (true, true) => Protocols::Auto(Socks5 { auth: auth.clone() }, Http { auth, realm }),
            (true, false) => Protocols::Socks5(Socks5 { auth }),
            (false, _) => Protocols::Http(Http { auth, realm }),
        };
        Ok(Some(Self { protocols, request_timeout: positive(metadata.duration("readTimeout")?) }))
    }
}

/// Serves one client.
pub(super) async fn serve(
    service: &Service,
    proxy: &Proxy,
    mut client: Client,
    plane: &Plane,
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
            let first = match timeout_at(deadline, client.stream().read_u8()).await {
                Ok(first) => first?,
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            };
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
