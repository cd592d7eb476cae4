//! Sums the history up, and forgets what is older than the retention.

use super::Inner;
use crate::store;
use std::sync::Arc;
use std::time::Duration;

/// As long as the shortest roll-up; the first one comes when the start is over.
const EVERY: Duration = Duration::from_secs(60);
/// How often old history is deleted.
const PRUNE_EVERY_MS: u64 = 24 * 3600 * 1000;

/// Works until cancelled.
pub(super) async fn keep_forever(inner: Arc<Inner>) {
    let mut prune_at = inner.mono_ms();
    loop {
        tokio::select! {
            () = inner.cancel.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        // In this order: what is not summed up yet must not be forgotten.
        let due = inner.mono_ms() >= prune_at;
        match keep(&inner, due).await {
            Ok(()) if due => prune_at = inner.mono_ms() + PRUNE_EVERY_MS,
            Ok(()) => {}
            Err(error) => {
                tracing::error!(%error, "the history could not be summed up or pruned; tried again soon")
            }
        }
    }
}

async fn keep(inner: &Inner, prune: bool) -> store::Result<()> {
    inner.db.roll_up(inner.clock.wall_ms()).await?;
    if prune {
        let (_, settings) = inner.db.settings().await?;
        inner.db.prune(inner.clock.wall_ms(), settings.retention_days).await?;
    }
    Ok(())
}
