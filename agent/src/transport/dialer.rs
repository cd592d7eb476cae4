//! The client's side: from a connection to a node to one that its connector can use.

use super::Kind;
use super::pool::Pool;
use super::smux::{MuxOptions, OpenError, Session};
use super::tls::TlsClient;
use super::ws::WsClient;
use crate::metadata::{ConfigError, MetadataReader};
use crate::net::within;
use crate::options::RuntimeOptions;
use crate::stream::Stream;
use shared::address::HostPort;
use shared::gost::DialerConfig;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Keys of every type. TCP itself is always kept alive and never delayed, so these say nothing new.
const KEYS: [&str; 5] = ["handshakeTimeout", "keepalive", "keepalive.", "nodelay", "mux."];

/// How one node is dialled.
pub struct Dialer {
    tls: Option<TlsClient>,
    ws: Option<WsClient>,
    mux: Option<Mux>,
    /// Replaces the general deadline of the handshake.
    timeout: Option<Duration>,
}

/// How streams share connections to one node.
pub struct Mux {
    options: MuxOptions,
    /// The sessions that are open now.
    pub pool: Arc<Pool>,
}

impl Dialer {
    /// `path` is the dialer's, for errors; `addr` the node's address. Reads the files that the TLS options name.
    pub fn build(path: &str, config: &DialerConfig, addr: &HostPort) -> Result<Self, ConfigError> {
        let wrong = |field: &str, reason: String| ConfigError::new(format!("{path}.{field}"), reason);
        let kind = Kind::of(path, &config.kind)?;
        let path_of_metadata = format!("{path}.metadata");
        let known = kind.keys(&KEYS, &WsClient::KEYS);
        let metadata = MetadataReader::new(&path_of_metadata, &config.metadata, &known)?;
        if !kind.tls && config.tls.is_some() {
            return Err(wrong("tls", format!("{} has no tls options", config.kind)));
        }
        let tls = kind.tls.then(|| TlsClient::new(config.tls.as_ref(), &addr.host));
        let ws = kind.ws.then(|| WsClient::read(&path_of_metadata, &metadata, addr));
        let mux = kind.mux.then(|| MuxOptions::read(&path_of_metadata, &metadata));
        let mut mux = mux.transpose()?;
        if let Some(options) = &mut mux {
            // As GOST 3.2 does; servers of our own take both.
            options.version.get_or_insert(if kind.tls || kind.ws { 1 } else { 2 });
        }
        Ok(Self {
            tls: tls.transpose().map_err(|reason| wrong("tls", reason))?,
            ws: ws.transpose()?,
            mux: mux.map(|options| Mux { options, pool: Arc::default() }),
            timeout: metadata.duration("handshakeTimeout")?.filter(|timeout| !timeout.is_zero()),
        })
    }

    /// Does the handshakes of the layers below the multiplexer, within what is `left`.
    pub async fn handshake(
        &self,
        stream: Stream,
        options: &RuntimeOptions,
        left: Duration,
    ) -> io::Result<Stream> {
        if self.tls.is_none() && self.ws.is_none() {
            return Ok(stream);
        }
        let deadline = self.timeout.unwrap_or(options.deadlines.handshake).min(left);
        // Handshakes are large and short; whoever waits for them is held in memory much longer.
        let layers = Box::pin(async {
            let mut stream = stream;
            if let Some(tls) = &self.tls {
                stream = tls.handshake(stream, deadline).await?;
            }
            if let Some(ws) = &self.ws {
                stream = ws.handshake(stream, &options.random, deadline).await?;
            }
            Ok(stream)
        });
        // One deadline for all of them.
        within(deadline, layers).await
    }

    /// How streams share connections, if they do.
    pub fn mux(&self) -> Option<&Mux> {
        self.mux.as_ref()
    }

    /// Goes on with the sessions that another dialer of the same node has.
    pub fn share_sessions(&mut self, other: &Dialer) {
        if let (Some(mine), Some(theirs)) = (&mut self.mux, &other.mux) {
            mine.pool = theirs.pool.clone();
        }
    }
}

impl Mux {
    /// Begins a session over a connection that is up. Must be called inside a Tokio runtime.
    pub fn start(&self, conn: Stream, options: &RuntimeOptions) -> Session {
        Session::start(conn, self.options, &options.clock, &options.tasks)
    }

    /// The only stream of a session that ends with it. Must be called inside a Tokio runtime.
    pub fn alone(&self, conn: Stream, options: &RuntimeOptions) -> Result<Stream, OpenError> {
        let session = self.start(conn, options);
        let stream = session.open();
        session.drain();
        stream
    }
}
