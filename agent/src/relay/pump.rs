//! Carries payload between two connections until both directions have ended.

use super::carry::carry;
use super::traffic::Traffic;
use crate::chain::hash::ClientKey;
use crate::proxy_protocol::Ends;
use crate::service::watch::{Watched, WatchedConnection};
use crate::stream::Stream;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::io::AsyncReadExt as _;
use tokio_util::sync::CancellationToken;

/// What a client may send before its connection is through.
const EARLY_BYTES: usize = 16 * 1024;

/// A client's connection, with what it has sent already.
pub struct Client {
    stream: Stream,
    /// What the hash strategies know it by: its address, unless something better is known.
    pub key: ClientKey,
    /// Both ends of its connection, for the target that wants to know.
    pub ends: Option<Ends>,
    early: Vec<u8>,
    ended: bool,
    /// Nothing of its payload is read before it is through.
    waits: bool,
    traffic: Option<Arc<Traffic>>,
    watched: Option<Arc<WatchedConnection>>,
}

impl Client {
    /// A connection from which nothing was read yet.
    pub fn new(stream: Stream, ip: IpAddr) -> Self {
        Self {
            stream,
            key: ip.into(),
            ends: None,
            early: Vec::new(),
            ended: false,
            waits: false,
            traffic: None,
            watched: None,
        }
    }

    /// The connection, for the messages that come before payload.
    pub fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }

    /// The client speaks only when it is told that it is through, or what it has sent is left for others to read. Then
    /// [`Client::has_spoken`] is true at once, so that it does not wait for a node that waits for it.
    pub fn await_answer(&mut self) {
        self.waits = true;
    }

    /// Waits until the client has sent something or has ended its direction. What was sent is kept. An error means that
    /// the client is gone. Cancelling loses nothing.
    pub async fn has_spoken(&mut self) -> io::Result<()> {
        if !self.waits && !self.ended && self.early.is_empty() {
            self.early.reserve_exact(EARLY_BYTES);
            let mut limited = (&mut self.stream).take(EARLY_BYTES as u64);
            self.ended = limited.read_buf(&mut self.early).await? == 0;
        }
        Ok(())
    }

    /// What was read from it and not carried yet.
    pub fn early(&self) -> &[u8] {
        &self.early
    }

    /// What was read early is on its way already.
    pub fn forget_early(&mut self) {
        self.early.clear();
    }

    /// The connection and what was read from it.
    pub fn into_parts(self) -> (Stream, Vec<u8>) {
        (self.stream, self.early)
    }

    /// Refuses the client: it sees a reset, not an empty answer.
    pub fn refuse(self) {
        self.stream.abort();
    }

    /// Counts from now on what this connection carries.
    pub fn count(&mut self, traffic: Arc<Traffic>) {
        self.traffic = Some(traffic);
    }

    /// Where what it carries is counted.
    pub fn traffic(&self) -> Option<&Arc<Traffic>> {
        self.traffic.as_ref()
    }

    /// Counts from now on for those who watch connections too, and lets them know what comes of this one.
    pub(crate) fn watched_by(&mut self, watched: &Watched) {
        self.traffic = Some(watched.connection().traffic.clone());
        self.watched = Some(watched.connection().clone());
    }

    /// What those see of it who watch connections.
    pub(crate) fn watched(&self) -> Option<&Arc<WatchedConnection>> {
        self.watched.as_ref()
    }

    /// Carries payload until both directions have ended; the end of one is passed on while the other goes on. An error
    /// on one side, or `stop`, resets the other: what was cut off must not look complete.
    ///
    /// Between two plain TCP connections the kernel moves large payload by itself, unseen by this process. Who wants to
    /// shape what passes puts a [`crate::stream::Layer`] around one of the streams: then every byte goes through it.
    pub async fn pump(self, mut upstream: Stream, stop: &CancellationToken) -> io::Result<()> {
        let Client { mut stream, early, traffic, .. } = self;
        let outcome = tokio::select! {
            outcome = carry(&mut stream, &mut upstream, early, traffic.as_deref()) => outcome,
            () = stop.cancelled() => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "stopped")),
        };
        if outcome.is_err() {
            stream.abort();
            upstream.abort();
        }
        outcome
    }
}
