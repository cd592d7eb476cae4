//! What is told again and again over a websocket.

use super::{Served, message};
use axum::Json;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

/// Clash's.
const INTERVAL: Duration = Duration::from_secs(1);
/// More often is of no use to anybody who looks.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(3600);
/// Until a message is taken by who asked for it.
const SEND: Duration = Duration::from_secs(10);
/// Dashboards say nothing.
const MOST_INCOMING: usize = 4096;

/// How often something is told; the first time at once.
pub(super) struct Ticks(Duration);

#[derive(Deserialize)]
struct Interval {
    /// Milliseconds.
    interval: Option<u32>,
}

impl Ticks {
    /// `None` if the interval is no number.
    pub(super) fn read(query: Option<&str>) -> Option<Self> {
        let uri = format!("/?{}", query.unwrap_or_default()).parse().ok()?;
        let axum::extract::Query(Interval { interval }) = axum::extract::Query::try_from_uri(&uri).ok()?;
        let interval = interval.map_or(INTERVAL, |ms| Duration::from_millis(ms.into()));
        Some(Self(interval.clamp(SHORTEST, LONGEST)))
    }
}

type Upgrade = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;

/// Bytes of the last second. Without a websocket, of the next.
pub(super) async fn traffic(State(served): State<Arc<Served>>, upgrade: Upgrade) -> Response {
    let watch = served.runtime.watch().clone();
    let mut before = watch.carried();
    let mut since = move || {
        let now = watch.carried();
        let (up, down) = (now.up.saturating_sub(before.up), now.down.saturating_sub(before.down));
        before = now;
        json!({"up": up, "down": down})
    };
    match upgrade {
        Ok(upgrade) => over(upgrade, &served, Ticks(INTERVAL), since),
        Err(_) => {
            tokio::time::sleep(INTERVAL).await;
            Json(since()).into_response()
        }
    }
}

pub(super) async fn memory(State(served): State<Arc<Served>>, upgrade: Upgrade) -> Response {
    let now = || json!({"inuse": resident_bytes(), "oslimit": 0});
    match upgrade {
        Ok(upgrade) => over(upgrade, &served, Ticks(INTERVAL), now),
        Err(_) => Json(now()).into_response(),
    }
}

/// Nothing but the word where the log is.
pub(super) async fn logs(
    State(served): State<Arc<Served>>,
    RawQuery(_): RawQuery,
    upgrade: Upgrade,
) -> Response {
    let line = || json!({"type": "info", "payload": "the agent's log is on its standard error"});
    match upgrade {
        Ok(upgrade) => over(upgrade, &served, Ticks(LONGEST), line),
        Err(_) => Json(line()).into_response(),
    }
}

/// Memory of this process, as far as the system tells.
pub(super) fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}

/// Tells what `next` says until the other side or the agent ends it.
pub(super) fn over(
    upgrade: WebSocketUpgrade,
    served: &Served,
    ticks: Ticks,
    next: impl FnMut() -> Value + Send + 'static,
) -> Response {
    let Ok(slot) = served.streams.clone().try_acquire_owned() else {
        return message(StatusCode::SERVICE_UNAVAILABLE, "too many streams at once");
    };
    // The task is the framework's; this lets its end be waited for.
    let (tracked, stop) = (served.tasks.token(), served.stop.clone());
    upgrade.max_message_size(MOST_INCOMING).max_frame_size(MOST_INCOMING).on_upgrade(
        move |socket| async move {
            tell(socket, ticks, next, stop).await;
            drop((slot, tracked));
        },
    )
}

async fn tell(
    socket: WebSocket,
    Ticks(interval): Ticks,
    mut next: impl FnMut() -> Value,
    stop: CancellationToken,
) {
    let (mut sender, mut receiver) = socket.split();
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            received = receiver.next() => match received {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {}
            },
            _ = ticks.tick() => {
                let told = sender.send(Message::text(next().to_string()));
                tokio::select! {
                    () = stop.cancelled() => return,
                    told = tokio::time::timeout(SEND, told) => if !matches!(told, Ok(Ok(()))) { return },
                }
            }
        }
    }
}
