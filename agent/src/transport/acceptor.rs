//! The server's side: from an accepted connection to the streams that clients speak on.

use super::Kind;
use super::smux::{Accepting, MuxOptions};
use super::tls::TlsServer;
use super::ws::WsServer;
use crate::metadata::{ConfigError, MetadataReader};
use crate::net::within;
use crate::options::RuntimeOptions;
use crate::stream::Stream;
use crate::tasks::Tasks;
use shared::gost::ListenerConfig;
use std::io;
use std::time::Duration;

/// Keys of every type. TCP itself is always kept alive and never delayed, so most of these say nothing new.
const KEYS: [&str; 6] = ["keepAlive", "keepalive.", "ttl", "mux.", "nodelay", "handshakeTimeout"];

/// How the connections of one listener arrive.
pub struct Acceptor {
    tls: Option<TlsServer>,
    ws: Option<WsServer>,
    mux: Option<MuxOptions>,
    /// Replaces the general deadline of the handshake.
    timeout: Option<Duration>,
}

/// What an accepted connection carries.
pub enum Accepted {
    /// One client.
    One(Stream),
    /// As many as come.
    Many(Accepting),
}

impl Acceptor {
    /// `path` is the listener's, for errors. Reads the files that the TLS options name.
    pub fn build(path: &str, config: &ListenerConfig) -> Result<Self, ConfigError> {
        let wrong = |field: &str, reason: String| ConfigError::new(format!("{path}.{field}"), reason);
        let kind = Kind::of(path, &config.kind)?;
        let path_of_metadata = format!("{path}.metadata");
        let known = kind.keys(&KEYS, &WsServer::KEYS);
        let metadata = MetadataReader::new(&path_of_metadata, &config.metadata, &known)?;
        match &config.tls {
            Some(_) if !kind.tls => return Err(wrong("tls", format!("{} has no tls options", config.kind))),
            Some(tls) if tls.secure || tls.server_name.is_some() => {
                return Err(wrong("tls", "secure and serverName are options of dialers".to_owned()));
            }
            Some(_) | None => {}
        }
        let tls = kind.tls.then(|| TlsServer::new(config.tls.as_ref()));
        let ws = kind.ws.then(|| WsServer::read(&path_of_metadata, &metadata));
        let mux = kind.mux.then(|| MuxOptions::read(&path_of_metadata, &metadata));
        Ok(Self {
            tls: tls.transpose().map_err(|reason| wrong("tls", reason))?,
            ws: ws.transpose()?,
            mux: mux.transpose()?,
            timeout: metadata.duration("handshakeTimeout")?.filter(|timeout| !timeout.is_zero()),
        })
    }

    /// Whether a connection carries many streams.
    pub fn is_shared(&self) -> bool {
        self.mux.is_some()
    }

    /// Does the handshakes of the layers. `tasks` counts and ends what carries many streams.
    pub async fn accept(
        &self,
        stream: Stream,
        options: &RuntimeOptions,
        tasks: &Tasks,
    ) -> io::Result<Accepted> {
        let stream = if self.tls.is_none() && self.ws.is_none() {
            stream
        } else {
            let deadline = self.timeout.unwrap_or(options.deadlines.handshake);
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
            within(deadline, layers).await?
        };
        Ok(match self.mux {
            None => Accepted::One(stream),
            Some(mux) => Accepted::Many(Accepting::start(stream, mux, &options.clock, tasks)),
        })
    }
}
