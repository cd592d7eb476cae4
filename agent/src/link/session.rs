//! One connection to a panel, from the first frame to its end.

use super::address::Scheme;
use super::codec::{Codec, Unreadable};
use super::dial::{Connected, Transport};
use super::flow::Flow;
use super::metric::Machine;
use super::{AGENT_NAME, Link, VERSION};
use crate::commands::{Replies, capabilities};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use shared::envelope::{NONCE_BYTES, Sealer};
use shared::link::{Frame, Hello, Report, chain_key, digest, service_key};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::CancellationToken;

/// Frames waiting for the writer. Commands wait for room, periodic messages are left out when there is none.
const OUTGOING: usize = 256;
/// For the close frame when the agent stops.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

type Socket = WebSocketStream<Box<dyn Transport>>;

/// Serves the connection and returns why it ended.
pub(super) async fn serve(
    link: &Link,
    scheme: Scheme,
    connected: Connected,
    flow: &mut Flow,
    stop: &CancellationToken,
) -> String {
    let Connected { socket, ours } = connected;
    let codec = Codec::new(Sealer::new(link.options.secret.reveal()), !ours);
    let (sink, stream) = socket.split();
    let (outgoing, frames) = mpsc::channel(OUTGOING);
    let replies = Replies(outgoing.clone());
    // One task for all: when one part ends, the others end with it. In this order, so that the hello is the first frame.
    tokio::select! {
        biased;
        reason = tell(link, ours, &outgoing) => reason,
        reason = write(link, &codec, sink, frames, stop) => reason,
        reason = read(link, &codec, stream, &replies) => reason,
        reason = flow.report(link, scheme, ours) => reason,
    }
}

async fn read(link: &Link, codec: &Codec, mut stream: SplitStream<Socket>, replies: &Replies) -> String {
    loop {
        // Everything that arrives counts as a sign of life, pings and pongs too.
        let message = match tokio::time::timeout(link.options.timings.read, stream.next()).await {
            Err(_) => return format!("nothing received for {} s", link.options.timings.read.as_secs_f64()),
            Ok(None) => return "the panel closed the connection".to_owned(),
            Ok(Some(Err(error))) => return format!("reading failed: {error}"),
            Ok(Some(Ok(Message::Close(Some(close))))) => {
                return format!("the panel closed the connection: {} {}", close.code, close.reason);
            }
            Ok(Some(Ok(message))) => message,
        };
        let Message::Text(text) = message else { continue };
        match codec.open(&text) {
            Ok(frame) => link.commands.handle(frame, replies),
            Err(Unreadable::Sealed(error)) => {
                tracing::warn!("a frame of the panel could not be opened: {error}");
                let frame = Frame {
                    kind: "DecryptError".to_owned(),
                    data: Value::Null,
                    success: Some(false),
                    message: Some(error.to_string()),
                    request_id: None,
                };
                // Without room the panel does not read anyway.
                let _ = replies.0.try_send(frame);
            }
            Err(Unreadable::NotAFrame(reason)) => {
                tracing::warn!("a frame of the panel was ignored: {reason}")
            }
        }
    }
}

async fn write(
    link: &Link,
    codec: &Codec,
    mut sink: SplitSink<Socket, Message>,
    mut frames: mpsc::Receiver<Frame>,
    stop: &CancellationToken,
) -> String {
    let timings = &link.options.timings;
    let mut pings = tokio::time::interval(timings.ping);
    pings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // The first tick is immediate, and the connection is fresh.
    pings.tick().await;
    loop {
        let message = tokio::select! {
            () = stop.cancelled() => {
                let _ = tokio::time::timeout(CLOSE_TIMEOUT, sink.close()).await;
                return "the agent is stopping".to_owned();
            }
            frame = frames.recv() => match frame {
                Some(frame) => match seal(link, codec, &frame) {
                    Some(text) => Message::text(text),
                    None => {
                        tracing::error!(kind = frame.kind, "a frame was too long and was not sent");
                        continue;
                    }
                },
                None => return "nobody sends any more".to_owned(),
            },
            _ = pings.tick() => Message::Ping(Vec::new().into()),
        };
        match tokio::time::timeout(timings.write, sink.send(message)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return format!("writing failed: {error}"),
            Err(_) => return format!("the panel took nothing for {} s", timings.write.as_secs_f64()),
        }
    }
}

fn seal(link: &Link, codec: &Codec, frame: &Frame) -> Option<String> {
    let (nonce, seconds) = nonce_and_time(link);
    codec.seal(frame, nonce, seconds)
}

/// A text in an envelope, outside of the websocket.
pub(super) fn sealed(link: &Link, text: &str) -> String {
    let (nonce, seconds) = nonce_and_time(link);
    Sealer::new(link.options.secret.reveal()).seal(text, nonce, seconds)
}

fn nonce_and_time(link: &Link) -> ([u8; NONCE_BYTES], i64) {
    let options = &link.options;
    let mut nonce = [0; NONCE_BYTES];
    nonce[..8].copy_from_slice(&options.random.next().to_le_bytes());
    nonce[8..].copy_from_slice(&options.random.next().to_le_bytes()[..4]);
    // The peer's agents send seconds, its panel milliseconds; nobody checks either.
    (nonce, i64::try_from(options.clock.unix_time().as_secs()).unwrap_or(0))
}

/// Hello first, then what changed, and the numbers of the machine.
async fn tell(link: &Link, ours: bool, outgoing: &mpsc::Sender<Frame>) -> String {
    let mut machine = Machine::default();
    let mut last_metric = link.options.clock.instant();
    machine.read(Duration::ZERO);
    let mut told_failed = BTreeMap::new();
    let mut told_report: Option<Report> = None;
    if ours {
        told_failed = link.runtime.failed();
        offer(outgoing, "hello", &hello(link, told_failed.clone()));
    }
    let mut ticks = tokio::time::interval(link.options.timings.report);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ticks.tick().await;
    loop {
        if ours {
            let failed = link.runtime.failed();
            if failed != told_failed && offer(outgoing, "hello", &hello(link, failed.clone())) {
                told_failed = failed;
            }
            let report = link.runtime.report();
            if told_report.as_ref() != Some(&report) && offer(outgoing, "report", &report) {
                told_report = Some(report);
            }
        }
        ticks.tick().await;
        let now = link.options.clock.instant();
        let metric = machine.read(now.saturating_duration_since(last_metric));
        last_metric = now;
        offer(outgoing, "metric", &metric);
        if outgoing.is_closed() {
            return "the writer ended".to_owned();
        }
    }
}

/// Whether there was room.
fn offer<T: serde::Serialize>(outgoing: &mpsc::Sender<Frame>, kind: &str, data: &T) -> bool {
    match serde_json::to_value(data) {
        Ok(data) => outgoing.try_send(Frame::message(kind, data)).is_ok(),
        Err(error) => {
            tracing::error!(kind, "a message was not sent: {error}");
            false
        }
    }
}

fn hello(link: &Link, failed: BTreeMap<String, String>) -> Hello {
    let config = link.runtime.config();
    let services = config.services.iter().map(|service| (service_key(&service.name), digest(service)));
    let chains = config.chains.iter().map(|chain| (chain_key(&chain.name), digest(chain)));
    Hello {
        agent: AGENT_NAME.to_owned(),
        version: VERSION.to_owned(),
        capabilities: capabilities(),
        digests: services.chain(chains).collect(),
        failed,
    }
}
