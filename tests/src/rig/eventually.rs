//! Patience: what is true after a while.

use crate::clock;
use anyhow::{Result, bail};
use std::time::Duration;

/// Between two looks. Short against what is waited for, long against what a look costs.
const PACE: Duration = Duration::from_millis(50);

/// Looks until the answer is `Ok`, for at most `limit`.
///
/// # Errors
/// After `limit`: what was waited for and the last answer.
pub async fn eventually<T>(
    what: &str,
    limit: Duration,
    mut look: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    let start = clock::now();
    loop {
        let left = limit.saturating_sub(start.elapsed());
        // A look that hangs is an answer too.
        let answer = match tokio::time::timeout(left.max(PACE), look()).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(not_yet)) => format!("{not_yet:#}"),
            Err(_) => "no answer".to_owned(),
        };
        if start.elapsed() >= limit {
            bail!("not within {:.1} s: {what}; at last: {answer}", limit.as_secs_f64());
        }
        tokio::time::sleep(PACE).await;
    }
}

/// Looks for the whole of `time` and fails as soon as an answer is not `Ok`: for what must not happen.
///
/// # Errors
/// What was to stay true, and the first answer that was none.
pub async fn settled(what: &str, time: Duration, mut look: impl AsyncFnMut() -> Result<()>) -> Result<()> {
    let start = clock::now();
    while start.elapsed() < time {
        if let Err(error) = look().await {
            bail!("after {:.1} s no longer: {what}; {error:#}", start.elapsed().as_secs_f64());
        }
        tokio::time::sleep(PACE).await;
    }
    Ok(())
}
