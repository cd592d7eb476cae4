//! Where tasks are counted and told to end.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Counts tasks and ends them; clones share both.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    /// Counts them.
    pub tracker: TaskTracker,
    /// Ends them.
    pub stop: CancellationToken,
}
