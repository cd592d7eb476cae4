//! What happens, for whoever watches: the event stream of the page, and tests.

use shared::api::Event;
use tokio::sync::broadcast;

/// Events a slow reader may fall behind before it loses some. It then hears [`Event::Lagged`] and looks at everything
/// again, so this only trades memory (some 100 bytes each) against such full looks.
const CAPACITY: usize = 1024;

/// Spreads events to all subscribers. Cheap to clone; never waits.
#[derive(Clone, Debug)]
pub struct Bus(broadcast::Sender<Event>);

impl Bus {
    /// A bus without subscribers.
    pub fn new() -> Self {
        Self(broadcast::channel(CAPACITY).0)
    }

    /// Tells everybody who listens now.
    pub fn send(&self, event: Event) {
        // An error only says that nobody listens.
        let _ = self.0.send(event);
    }

    /// Hears everything from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.0.subscribe()
    }
}

impl Default for Bus {
    fn default() -> Self {
        Self::new()
    }
}
