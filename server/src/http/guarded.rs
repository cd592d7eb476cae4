//! Answers that go on end with the session that asked for them.

use crate::auth::CurrentUser;
use crate::state::AppState;
use futures_util::{Stream, StreamExt as _, stream};
use shared::api::Role;
use std::pin::pin;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// How often a session is looked at without having been told of a change: it may have run out, or its user got a new
/// password on the command line. Short beside what a stream tells, long beside the look.
const RECHECK: Duration = Duration::from_secs(2);

/// Passes on what `items` gives while the session of `current` lasts and its user has the role `least`. Nothing is passed
/// on between the news that sessions ended and the look whether this one did.
pub(crate) fn while_allowed<T: Send + 'static>(
    state: &AppState,
    current: CurrentUser,
    least: Role,
    items: impl Stream<Item = T> + Send + 'static,
) -> impl Stream<Item = T> + Send + 'static {
    let mut looks = tokio::time::interval(RECHECK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let begin = (state.clone(), current, state.recall.hear(), looks, Box::pin(items));
    stream::unfold(begin, move |(state, current, mut recalled, mut looks, mut items)| async move {
        loop {
            tokio::select! {
                biased;
                () = recalled.told() => {}
                // Its first tick comes at once: the session may have ended since it was looked up for this request.
                _ = looks.tick() => {}
                item = items.next() => return item.map(|item| (item, (state, current, recalled, looks, items))),
            }
            // Meanwhile the items go on: what they wait for may be what the look waits for. The next one is kept back.
            let mut kept = None;
            let is_allowed = {
                let mut look = pin!(is_allowed(&state, &current, least));
                loop {
                    tokio::select! {
                        biased;
                        is_allowed = &mut look => break is_allowed,
                        item = items.next(), if kept.is_none() => kept = Some(item),
                    }
                }
            };
            if !is_allowed {
                return None;
            }
            if let Some(item) = kept {
                return item.map(|item| (item, (state, current, recalled, looks, items)));
            }
        }
    })
}

async fn is_allowed(state: &AppState, current: &CurrentUser, least: Role) -> bool {
    match state.db.session_user(&current.token_hash, state.clock.wall_ms()).await {
        Ok(user) => user.is_some_and(|user| user.role == Role::Admin || user.role == least),
        // Whoever may go on asks again.
        Err(error) => {
            tracing::error!(%error, "a session could not be looked up; its stream ends");
            false
        }
    }
}
