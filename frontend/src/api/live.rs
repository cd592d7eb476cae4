//! The panel's events, and the lists that they keep fresh.

use super::json::parse;
use super::{Feed, client, session};
use crate::lasting::Lasting;
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde_json::Value;
use shared::api::{Forward, Node, Tunnel};
use std::sync::Arc;
use std::time::Duration;
use wasm_bindgen::JsCast as _;
use wasm_bindgen::closure::Closure;

/// Before the first try to reconnect; doubles with every failure.
const FIRST_RETRY_MS: u64 = 1000;
/// Longest wait between two tries: a panel that comes back is noticed within half a minute.
const LAST_RETRY_MS: u64 = 30_000;
/// Names under which the events may come.
const EVENT_NAMES: [&str; 8] =
    ["message", "node", "decision", "switch", "round", "deployment", "changed", "lagged"];

/// How the event stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// Not connected yet.
    Connecting,
    /// Events come.
    Open,
    /// Lost; being tried again.
    Lost,
}

struct Source {
    events: web_sys::EventSource,
    // Kept because the browser calls them.
    _on_event: Closure<dyn FnMut(web_sys::MessageEvent)>,
    _on_open: Closure<dyn FnMut()>,
    _on_error: Closure<dyn FnMut()>,
}

impl Drop for Source {
    fn drop(&mut self) {
        self.events.set_onopen(None);
        self.events.set_onerror(None);
        self.events.close();
    }
}

#[derive(Default)]
struct Wire {
    source: Option<Source>,
    failures: u32,
    /// Tells a timer that was set for an earlier connection that it came too late.
    attempt: u64,
}

/// Lists that every screen shares, and what the event stream says. One per page, provided above all screens.
#[derive(Clone, Copy)]
pub struct Live {
    /// All nodes.
    pub nodes: Feed<Vec<Arc<Node>>>,
    /// All tunnels.
    pub tunnels: Feed<Vec<Arc<Tunnel>>>,
    /// All forwards.
    pub forwards: Feed<Vec<Arc<Forward>>>,
    /// How the event stream is.
    pub connection: &'static Lasting<Connection>,
    /// Counts what may have changed decisions: rounds, switches, pins.
    pub decisions: &'static Lasting<u64>,
    /// Counts changes of the settings.
    pub settings: &'static Lasting<u64>,
    /// Counts what may have changed nodes or tunnels, for screens that keep lists of their own.
    pub lists: &'static Lasting<u64>,
    wire: StoredValue<Wire, LocalStorage>,
}

/// There is one page, and it never ends.
fn page_long<T: Send + Sync + 'static>(value: T) -> &'static Lasting<T> {
    Box::leak(Box::new(Lasting::new(value)))
}

/// The page's [`Live`].
pub fn use_live() -> Live {
    expect_context()
}

impl Live {
    /// For the root of the page; nothing is fetched or opened yet.
    pub fn unopened() -> Self {
        Self {
            nodes: Feed::list(client::nodes),
            tunnels: Feed::list(client::tunnels),
            forwards: Feed::list(client::forwards),
            connection: page_long(Connection::Connecting),
            decisions: page_long(0),
            settings: page_long(0),
            lists: page_long(0),
            wire: StoredValue::new_local(Wire::default()),
        }
    }

    /// Opens the event stream, a new one if there is one already.
    pub fn connect(self) {
        let attempt = self.wire.try_update_value(|wire| {
            wire.source = None;
            wire.attempt += 1;
            wire.attempt
        });
        let Some(attempt) = attempt else { return };
        match self.open(attempt) {
            Some(source) => self.wire.update_value(|wire| wire.source = Some(source)),
            None => self.failed(attempt),
        }
    }

    /// Rests while nobody looks, and catches up when somebody does again. Browsers allow a page's server six connections
    /// in all tabs together (HTTP/1.1), pages kept for the back button included: streams that nobody looks at would
    /// leave none for requests.
    pub fn follow_visibility(self) {
        let follow = move |shown: bool| {
            if !shown {
                self.disconnect();
            } else if session::is_active() {
                self.connect();
                self.refresh_all();
            }
        };
        let listeners = [
            window_event_listener_untyped("visibilitychange", move |_| follow(!document().hidden())),
            window_event_listener_untyped("pagehide", move |_| follow(false)),
            window_event_listener_untyped("pageshow", move |event| {
                let kept = event.unchecked_into::<web_sys::PageTransitionEvent>().persisted();
                if kept {
                    follow(true);
                }
            }),
        ];
        on_cleanup(move || listeners.into_iter().for_each(|listener| listener.remove()));
    }

    /// Closes the event stream.
    pub fn disconnect(self) {
        self.wire.update_value(|wire| {
            wire.source = None;
            wire.attempt += 1;
            wire.failures = 0;
        });
        self.connection.set(Connection::Connecting);
    }

    fn open(self, attempt: u64) -> Option<Source> {
        let events = web_sys::EventSource::new("/api/v1/events").ok()?;
        let on_event =
            Closure::<dyn FnMut(web_sys::MessageEvent)>::new(move |message: web_sys::MessageEvent| {
                if let Some(text) = message.data().as_string()
                    && let Some(event) = parse(&text)
                {
                    self.heard(&event);
                }
            });
        for name in EVENT_NAMES {
            events.add_event_listener_with_callback(name, on_event.as_ref().unchecked_ref()).ok()?;
        }
        let on_open = Closure::<dyn FnMut()>::new(move || self.opened());
        events.set_onopen(Some(on_open.as_ref().unchecked_ref()));
        // From a timer, because it drops the closure that is running.
        let on_error = Closure::<dyn FnMut()>::new(move || {
            set_timeout(move || self.failed(attempt), Duration::ZERO);
        });
        events.set_onerror(Some(on_error.as_ref().unchecked_ref()));
        Some(Source { events, _on_event: on_event, _on_open: on_open, _on_error: on_error })
    }

    fn opened(self) {
        let again = self.wire.try_update_value(|wire| std::mem::take(&mut wire.failures) > 0);
        self.connection.set(Connection::Open);
        // Nobody told us what happened meanwhile.
        if again == Some(true) {
            self.refresh_all();
        }
    }

    fn failed(self, attempt: u64) {
        let wait_ms = self.wire.try_update_value(|wire| {
            if wire.attempt != attempt {
                return None;
            }
            wire.source = None;
            wire.attempt += 1;
            let wait = FIRST_RETRY_MS << wire.failures.min(5);
            wire.failures += 1;
            Some(wait.min(LAST_RETRY_MS))
        });
        let Some(Some(wait_ms)) = wait_ms else { return };
        self.connection.set(Connection::Lost);
        // Spread, so that a restarted panel is not met by all pages at once.
        let wait_ms = wait_ms as f64 * (0.75 + js_sys::Math::random() / 2.0);
        let expected = attempt + 1;
        let retry = move || {
            let current = self.wire.try_with_value(|wire| wire.attempt) == Some(expected);
            if current && session::is_active() {
                self.connect();
            }
        };
        set_timeout(retry, Duration::from_millis(wait_ms as u64));
        // The stream does not say why it ended; a session that is over is found out this way.
        spawn_local(async {
            let _ = client::me().await;
        });
    }

    /// Fetches everything again that any screen ever wanted.
    pub fn refresh_all(self) {
        self.nodes.refresh_if_wanted();
        self.tunnels.refresh_if_wanted();
        self.forwards.refresh_if_wanted();
        self.decisions.update(|count| *count += 1);
        self.settings.update(|count| *count += 1);
        self.lists.update(|count| *count += 1);
    }

    /// An event is a hint to look again, so its kind is all that is read of [`shared::api::Event`].
    fn heard(self, event: &Value) {
        match event["type"].as_str().unwrap_or_default() {
            "node" => {
                self.nodes.refresh_if_wanted();
                self.deployments_changed();
                self.lists.update(|count| *count += 1);
                self.decisions.update(|count| *count += 1);
            }
            "decision" | "switch" => {
                self.tunnels.refresh_if_wanted();
                self.decisions.update(|count| *count += 1);
            }
            "round" => self.decisions.update(|count| *count += 1),
            "deployment" => self.deployments_changed(),
            "changed" => self.changed(event["what"].as_str().unwrap_or_default()),
            // Events were lost, or are of a kind that this page does not know.
            _ => self.refresh_all(),
        }
    }

    fn deployments_changed(self) {
        self.tunnels.refresh_if_wanted();
        self.forwards.refresh_if_wanted();
    }

    fn changed(self, what: &str) {
        match what {
            "forward" => self.forwards.refresh_if_wanted(),
            "tunnel" => {
                self.deployments_changed();
                self.lists.update(|count| *count += 1);
            }
            "pin" | "choice" => {
                self.tunnels.refresh_if_wanted();
                self.decisions.update(|count| *count += 1);
            }
            _ => self.refresh_all(),
        }
    }
}

#[cfg(test)]
mod tests {
    use shared::api::Event;
    use shared::ids::{NodeId, TunnelId};

    #[test]
    fn events_have_the_kinds_that_are_read() {
        let kind = |event: &Event| serde_json::to_value(event).unwrap()["type"].clone();
        let (tunnel_id, node_id) = (TunnelId(1), NodeId(1));
        let decision = Event::Decision { tunnel_id, owner_node_id: node_id, reason: "cooldown".into() };
        let switch = Event::Switch { tunnel_id, owner_node_id: node_id, from: None, to: node_id, at: 0 };
        assert_eq!(kind(&Event::Node { node_id, online: true }), "node");
        assert_eq!(kind(&decision), "decision");
        assert_eq!(kind(&switch), "switch");
        assert_eq!(kind(&Event::Round { at: 0 }), "round");
        assert_eq!(kind(&Event::Deployment { node_id }), "deployment");
        assert_eq!(kind(&Event::Lagged), "lagged");
        let changed = serde_json::to_value(Event::Changed { what: "pin".into() }).unwrap();
        assert_eq!((&changed["type"], &changed["what"]), (&"changed".into(), &"pin".into()));
    }
}
