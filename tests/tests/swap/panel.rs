//! The panel as one agent sees it: accepts its link, asks, hands over answers and the newest report.

use futures_util::{SinkExt as _, StreamExt as _};
use shared::envelope::{NONCE_BYTES, Sealer};
use shared::link::{Command, Frame, LINK_VERSION, PANEL_HEADER, Report};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;
use tests::rig::{Agent, AgentOptions, Place};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Callback, ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::HeaderValue;

const SECRET: &str = "00112233445566778899aabbccddeeff";
/// Nothing on the link takes so long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(60);

type Ask = (Command, oneshot::Sender<Frame>);

/// An agent process and the link to it.
pub(crate) struct Obeying {
    // Before the agent, so that it is not surprised.
    link: JoinHandle<String>,
    asks: mpsc::Sender<Ask>,
    reports: watch::Receiver<Report>,
    _agent: Agent,
}

impl Obeying {
    /// Starts an agent and waits until it has connected. It gets one connection: losing it fails the test.
    pub(crate) async fn start(name: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let options = AgentOptions {
            name: name.to_owned(),
            panel: listener.local_addr().unwrap(),
            secret: SECRET.to_owned(),
            log: String::new(),
        };
        let agent = Agent::start(Place::Loopback, options).unwrap();
        let (stream, _) = patient("the agent's connection", listener.accept()).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let upgraded = tokio_tungstenite::accept_hdr_async(stream, Upgrade);
        let socket = patient("the upgrade", upgraded).await.unwrap();
        let (asks, asked) = mpsc::channel(1);
        let (report, reports) = watch::channel(Report::default());
        let link = tokio::spawn(serve(socket, asked, report));
        Self { link, asks, reports, _agent: agent }
    }

    /// Sends a command, which must be accepted.
    pub(crate) async fn obey(&self, command: Command) {
        let (answer, answered) = oneshot::channel();
        self.asks.send((command, answer)).await.expect("the link has ended");
        let answer = patient("an answer", answered).await.expect("the link has ended");
        assert_eq!((answer.success, answer.message.as_deref()), (Some(true), Some("OK")), "{answer:?}");
    }

    /// Waits for a report that is as wanted.
    pub(crate) async fn report(&mut self, what: &str, wanted: impl FnMut(&Report) -> bool) -> Report {
        let report = patient(what, self.reports.wait_for(wanted)).await;
        report.expect("the link has ended").clone()
    }

    /// Whether the first link still stands.
    pub(crate) fn is_linked(&self) -> bool {
        !self.link.is_finished()
    }
}

impl Drop for Obeying {
    fn drop(&mut self) {
        self.link.abort();
    }
}

/// Says that the panel is ours.
struct Upgrade;

impl Callback for Upgrade {
    fn on_request(self, request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
        let query = request.uri().query().unwrap_or_default();
        assert!(query.split('&').any(|pair| pair == format!("secret={SECRET}")), "another agent");
        response.headers_mut().insert(PANEL_HEADER, HeaderValue::from(LINK_VERSION));
        Ok(response)
    }
}

/// Serves the link and returns why it ended.
async fn serve(
    mut socket: WebSocketStream<TcpStream>,
    mut asked: mpsc::Receiver<Ask>,
    report: watch::Sender<Report>,
) -> String {
    let sealer = Sealer::new(SECRET);
    let mut waiting = BTreeMap::new();
    let mut number = 0_u64;
    loop {
        tokio::select! {
            ask = asked.recv() => {
                let Some((command, answer)) = ask else { return "nobody asks any more".to_owned() };
                number += 1;
                let id = format!("1_{number}");
                let frame = serde_json::to_string(&command.to_frame(id.clone())).unwrap();
                // Unique is all that a nonce must be.
                let mut nonce = [0; NONCE_BYTES];
                nonce[..8].copy_from_slice(&number.to_le_bytes());
                waiting.insert(id, answer);
                if let Err(error) = socket.send(Message::text(sealer.seal(&frame, nonce, 0))).await {
                    return error.to_string();
                }
            }
            // This also answers the agent's pings.
            message = socket.next() => {
                let text = match message {
                    Some(Ok(Message::Text(text))) => text,
                    Some(Ok(Message::Close(_))) | None => return "closed".to_owned(),
                    Some(Ok(_)) => continue,
                    Some(Err(error)) => return error.to_string(),
                };
                let frame: Frame = serde_json::from_str(&sealer.open(&text).unwrap()).unwrap();
                if let Some(answer) = frame.request_id.as_ref().and_then(|id| waiting.remove(id)) {
                    let _ = answer.send(frame);
                } else if frame.kind == "report" {
                    report.send_replace(serde_json::from_value(frame.data).unwrap());
                }
            }
        }
    }
}

async fn patient<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {PATIENCE:?} for {what}"),
    }
}

/// A port that is free now, on a loopback address that only this process uses: nobody else takes it meanwhile.
pub(crate) async fn free_address() -> SocketAddr {
    let [.., high, low] = std::process::id().to_be_bytes();
    let listener = TcpListener::bind((std::net::Ipv4Addr::new(127, 2, high, low), 0)).await.unwrap();
    listener.local_addr().unwrap()
}
