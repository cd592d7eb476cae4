//! A panel as far as an agent can see it: accepts the websocket, seals, asks, reads answers.

use agent::clock::Clock;
use futures_util::{SinkExt as _, StreamExt as _};
use rustls_pki_types::PrivateKeyDer;
use shared::envelope::{NONCE_BYTES, Sealer};
use shared::link::{Command, Frame, PANEL_HEADER};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Callback, ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::HeaderValue;

pub(crate) const SECRET: &str = "0123456789abcdef0123456789abcdef";
/// Nothing in these tests takes so long unless it is broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Panel {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    /// Sends the header by which our panel is known.
    pub(crate) ours: bool,
}

pub(crate) struct Session {
    pub(crate) socket: WebSocketStream<Box<dyn Bytes>>,
    /// Path and query of the upgrade request.
    pub(crate) uri: String,
}

/// With or without TLS.
pub(crate) trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

static NEXT: AtomicU64 = AtomicU64::new(1);

impl Panel {
    pub(crate) async fn start(ours: bool) -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").await.unwrap(), tls: None, ours }
    }

    /// Our panel behind TLS, with a certificate of its own; its PEM text is the second value.
    pub(crate) async fn start_tls() -> (Self, String) {
        let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.cert.der().clone()], key)
            .unwrap();
        let tls = Some(TlsAcceptor::from(Arc::new(config)));
        (Self { tls, ..Self::start(true).await }, own.cert.pem())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    /// The next TCP connection, before anything is said.
    pub(crate) async fn connection(&self) -> TcpStream {
        patient("a connection", self.listener.accept()).await.unwrap().0
    }

    pub(crate) async fn accept(&self) -> Session {
        self.try_accept().await.expect("the agent gave up its connection")
    }

    /// `None` when the agent does not trust the certificate.
    pub(crate) async fn try_accept(&self) -> Option<Session> {
        let stream = self.connection().await;
        let stream: Box<dyn Bytes> = match &self.tls {
            Some(tls) => Box::new(patient("TLS", tls.accept(stream)).await.ok()?),
            None => Box::new(stream),
        };
        let (answer, uri) = Upgrade::new(self.ours.then_some("1"), 101);
        let upgraded = tokio_tungstenite::accept_hdr_async(stream, answer);
        let socket = patient("the upgrade", upgraded).await.ok()?;
        Some(Session { socket, uri: uri.await.unwrap() })
    }

    /// Answers the next upgrade with 403, as for an unknown secret.
    pub(crate) async fn refuse(&self) {
        let stream = self.connection().await;
        let (answer, _) = Upgrade::new(None, 403);
        let refused = patient("the upgrade", tokio_tungstenite::accept_hdr_async(stream, answer)).await;
        assert!(refused.is_err());
    }
}

struct Upgrade {
    header: Option<&'static str>,
    status: u16,
    uri: tokio::sync::oneshot::Sender<String>,
}

impl Upgrade {
    fn new(header: Option<&'static str>, status: u16) -> (Self, tokio::sync::oneshot::Receiver<String>) {
        let (uri, received) = tokio::sync::oneshot::channel();
        (Self { header, status, uri }, received)
    }
}

impl Callback for Upgrade {
    fn on_request(self, request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
        let _ = self.uri.send(request.uri().to_string());
        if self.status != 101 {
            let mut refusal = ErrorResponse::new(Some("forbidden".into()));
            *refusal.status_mut() = self.status.try_into().unwrap();
            return Err(refusal);
        }
        if let Some(header) = self.header {
            response.headers_mut().insert(PANEL_HEADER, HeaderValue::from_static(header));
        }
        Ok(response)
    }
}

impl Session {
    pub(crate) async fn send_text(&mut self, text: String) {
        patient("sending", self.socket.send(Message::text(text))).await.unwrap();
    }

    /// Sends a command and returns its request id.
    pub(crate) async fn send(&mut self, command: &Command) -> String {
        let id = format!("7_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.send_frame(&command.to_frame(id.clone())).await;
        id
    }

    pub(crate) async fn send_frame(&mut self, frame: &Frame) {
        self.send_sealed(&serde_json::to_string(frame).unwrap()).await;
    }

    pub(crate) async fn send_sealed(&mut self, plain: &str) {
        // Unique is all that a nonce must be.
        let mut nonce = [0; NONCE_BYTES];
        nonce[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        let text = Sealer::new(SECRET).seal(plain, nonce, 0);
        self.send_text(text).await;
    }

    /// The next message that is not a ping or pong; `None` when the agent has gone.
    pub(crate) async fn message(&mut self) -> Option<String> {
        loop {
            match patient("a message", self.socket.next()).await {
                Some(Ok(Message::Text(text))) => return Some(text.to_string()),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    /// The next frame, which must be sealed.
    pub(crate) async fn frame(&mut self) -> Frame {
        let text = self.message().await.expect("the agent closed the connection");
        serde_json::from_str(&Sealer::new(SECRET).open(&text).expect("not sealed")).unwrap()
    }

    /// The next frame of a kind, skipping others.
    pub(crate) async fn frame_of(&mut self, kind: &str) -> Frame {
        let wanted = async {
            loop {
                let frame = self.frame().await;
                if frame.kind == kind {
                    return frame;
                }
            }
        };
        patient(kind, wanted).await
    }

    /// The next answer to any command.
    pub(crate) async fn answer(&mut self) -> Frame {
        let wanted = async {
            loop {
                let frame = self.frame().await;
                if frame.success.is_some() {
                    return frame;
                }
            }
        };
        patient("an answer", wanted).await
    }

    /// Sends a command and waits for its answer.
    pub(crate) async fn ask(&mut self, command: &Command) -> Frame {
        let id = self.send(command).await;
        let answer = self.answer().await;
        assert_eq!(answer.request_id, Some(id));
        answer
    }

    /// A command of any name and content.
    pub(crate) async fn ask_raw(&mut self, kind: &str, data: serde_json::Value) -> Frame {
        let mut frame = Frame::message(kind, data);
        frame.request_id = Some("raw".into());
        self.send_frame(&frame).await;
        let answer = self.answer().await;
        assert_eq!(answer.request_id.as_deref(), Some("raw"));
        answer
    }
}

pub(crate) async fn patient<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {PATIENCE:?} for {what}"),
    }
}

/// Milliseconds since the first call in this test.
pub(crate) fn stopwatch() -> impl Fn() -> u64 {
    let clock = Clock::system();
    move || clock.now_ms()
}
