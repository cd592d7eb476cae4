//! A panel that does only what a test tells it: accepts one agent, seals commands, reads answers.

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::{SinkExt as _, StreamExt as _};
use shared::envelope::{NONCE_BYTES, Sealer};
use shared::link::{Command, Frame, PANEL_HEADER};
use std::net::SocketAddr;
use std::time::Duration;
use tests::rig::Place;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::HeaderValue;

/// For an agent to connect or to answer, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct FakePanel {
    listener: TcpListener,
    secret: String,
}

pub(crate) struct FakeSession {
    socket: WebSocketStream<TcpStream>,
    sealer: Sealer,
    sent: u64,
}

impl FakePanel {
    pub(crate) fn start(secret: &str) -> Result<Self> {
        Ok(Self { listener: Place::Loopback.listen(0)?, secret: secret.to_owned() })
    }

    pub(crate) fn address(&self) -> Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// The next connection of an agent.
    pub(crate) async fn accept(&self) -> Result<FakeSession> {
        let (stream, _) = timeout(PATIENCE, self.listener.accept()).await.context("no agent came")??;
        #[expect(clippy::result_large_err, reason = "the library's type")]
        let ours = |_: &Request, mut response: Response| -> Result<Response, ErrorResponse> {
            response.headers_mut().insert(PANEL_HEADER, HeaderValue::from_static("1"));
            Ok(response)
        };
        let socket = timeout(PATIENCE, tokio_tungstenite::accept_hdr_async(stream, ours)).await??;
        Ok(FakeSession { socket, sealer: Sealer::new(&self.secret), sent: 0 })
    }
}

impl FakeSession {
    /// Sends a command and waits until the agent has done it.
    pub(crate) async fn command(&mut self, command: &Command) -> Result<()> {
        self.sent += 1;
        let id = format!("1_{}", self.sent);
        let text = serde_json::to_string(&command.to_frame(id.clone()))?;
        let mut nonce = [0; NONCE_BYTES];
        nonce[..8].copy_from_slice(&self.sent.to_le_bytes());
        self.socket.send(Message::text(self.sealer.seal(&text, nonce, 0))).await?;
        let answer = timeout(PATIENCE, self.answer(&id)).await.context("the agent did not answer")??;
        ensure!(answer.success == Some(true), "{}: {:?}", answer.kind, answer.message);
        Ok(())
    }

    async fn answer(&mut self, id: &str) -> Result<Frame> {
        while let Some(message) = self.socket.next().await {
            let Message::Text(text) = message? else { continue };
            let frame: Frame = serde_json::from_str(&self.sealer.open(&text)?)?;
            if frame.request_id.as_deref() == Some(id) {
                return Ok(frame);
            }
        }
        bail!("the agent closed the link")
    }
}
