//! What other ways of choosing would have made of what a tunnel measured.

use super::quality::{self, Points};
use super::span::{Asked, DAY_MS, Span};
use super::{Result, tunnels};
use crate::error::AppError;
use crate::state::AppState;
use crate::store::{Db, Page};
use anyhow::anyhow;
use shared::api::ReplayInput;
use shared::ids::TunnelId;
use shared::replay::history::History;
use shared::replay::question::Replayable;
use shared::replay::report::Report;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Replays at the same time. Each takes a core, and the panel measures and decides meanwhile.
const PARALLEL: usize = 2;
/// Histories that are read at the same time; each takes memory.
const READING: usize = 2;
/// Measurements in one history, over all legs: a week of five exits in rounds of 5 s has 1.2 million.
const MOST_MEASUREMENTS: usize = 2_000_000;
/// Steps times exits of one replay: a week of five exits has 0.6 million.
const MOST_STEPS: u64 = 5_000_000;

/// Bounds how many replays there are at once. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Replays {
    running: Arc<Semaphore>,
    reading: Arc<Semaphore>,
}

impl Default for Replays {
    fn default() -> Self {
        Self { running: Arc::new(Semaphore::new(PARALLEL)), reading: Arc::new(Semaphore::new(READING)) }
    }
}

impl Replays {
    /// Room for a replay, until it is given back; `None`: there is none now.
    pub fn take(&self) -> Option<OwnedSemaphorePermit> {
        self.running.clone().try_acquire_owned().ok()
    }
}

/// What was measured for a tunnel, as `exitpilot replay`, the page and the npm package read it. Usually in the last day.
pub async fn history(state: &AppState, id: TunnelId, asked: Asked) -> Result<History> {
    let span = asked.span(state.clock.wall_ms(), DAY_MS)?;
    let reading = state.replays.reading.clone().acquire_owned();
    let _slot = reading.await.map_err(|error| AppError::Internal(error.into()))?;
    read(&state.db, id, span, Points::All(MOST_MEASUREMENTS)).await
}

/// The same from a database. Nothing is said about whether it can be replayed.
pub(crate) async fn read(db: &Db, id: TunnelId, span: Span, points: Points) -> Result<History> {
    let mut tx = db.read().await?;
    let name = tunnels::find(&mut tx, id).await?.tunnel.name;
    let settings = tx.settings().await?.1;
    let nodes = tx.nodes(Page::ALL).await?;
    drop(tx);
    let legs = quality::legs(db, id, span, points).await?;
    let together = move || {
        let name_of = |id| {
            let node = nodes.iter().find(|node| node.id == id);
            node.map_or_else(|| format!("node {id}"), |node| node.name.clone())
        };
        History::of_legs(&name, &settings, &legs, &name_of)
    };
    off_thread(together).await
}

/// Replays what was measured for a tunnel.
pub async fn replay(state: &AppState, id: TunnelId, input: ReplayInput) -> Result<Report> {
    let room = state.replays.take().ok_or(AppError::Busy)?;
    let history = history(state, id, Asked { from: input.from, to: input.to, step_ms: 0 }).await?;
    // When nobody waits for the answer any longer, or the panel stops, the thread does.
    let given_up = CancellationToken::new();
    let _guard = given_up.clone().drop_guard();
    let stopping = state.shutdown.clone();
    let question = input.into_question();
    let work = move || {
        let _room = room;
        // Of what was stored only the length can be wrong.
        let replayable = Replayable::new(&history, MOST_STEPS).map_err(history_error)?;
        drop(history);
        let proceed = || !given_up.is_cancelled() && !stopping.is_cancelled();
        replayable.answer(&question, &proceed).map_err(|error| match error.code.as_str() {
            "stopped" => AppError::TimedOut,
            "internal" => AppError::Internal(anyhow!("{error}")),
            _ => AppError::Invalid(vec![error]),
        })
    };
    off_thread(work).await?
}

/// The time that was asked for is what is wrong with a history that nobody wrote.
fn history_error(mut error: shared::field::FieldError) -> AppError {
    if error.code == "history_empty" {
        error.message =
            "nothing was measured in this time that could be replayed: there is no round with two exits"
                .to_owned();
    }
    error.field = "from".to_owned();
    AppError::Invalid(vec![error])
}

/// Runs what takes long beside the threads that serve requests.
pub(crate) async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|error| AppError::Internal(error.into()))
}
