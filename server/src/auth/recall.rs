//! Tells answers that go on that somebody may have lost the right to them.

use std::sync::Arc;
use tokio::sync::watch;

/// Tells that sessions ended or roles changed, not whose: who hears it looks at what is stored. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Recall(Arc<watch::Sender<()>>);

/// Hears a [`Recall`].
pub struct Recalled(watch::Receiver<()>);

impl Recall {
    /// Nobody has lost anything yet.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(())))
    }

    /// To be called after the change is stored.
    pub fn tell(&self) {
        self.0.send_replace(());
    }

    /// Hears everything that is told from now on.
    pub fn hear(&self) -> Recalled {
        Recalled(self.0.subscribe())
    }
}

impl Default for Recall {
    fn default() -> Self {
        Self::new()
    }
}

impl Recalled {
    /// Until something is told that has not been heard yet. Dropping it loses nothing.
    pub async fn told(&mut self) {
        if self.0.changed().await.is_err() {
            // Whoever could tell is gone, and with him whoever could end a session.
            std::future::pending::<()>().await;
        }
    }
}
