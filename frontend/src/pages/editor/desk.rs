//! What the editor is given and what it tells: it knows neither the page around it nor how that talks to the panel.

use crate::api::http::Method;
use crate::api::{Access, ApiError, Feed};
use crate::module::guest::{Options, Told};
use leptos::prelude::*;
use serde::de::DeserializeOwned;
use shared::api::{Node, Tunnel, TunnelInput};
use shared::ids::TunnelId;
use std::sync::Arc;
use wasm_bindgen::JsValue;

/// The surroundings of one editor, provided above all its parts.
#[derive(Clone, Copy)]
pub struct Desk {
    /// All nodes.
    pub nodes: Feed<Vec<Arc<Node>>>,
    /// All tunnels.
    pub tunnels: Feed<Vec<Arc<Tunnel>>>,
    line: StoredValue<Line, LocalStorage>,
}

impl Desk {
    /// From the options of whoever shows the editor: `onSaved(tunnel, stillShown)` and `onCancel()` are called.
    pub fn new(options: &Options) -> Self {
        let line = Line {
            access: options.access(),
            saved: options.callback("onSaved"),
            cancel: options.callback("onCancel"),
        };
        let (for_nodes, for_tunnels) = (line.access.clone(), line.access.clone());
        Self {
            nodes: Feed::list(move || fetched(for_nodes.clone(), "/nodes")),
            tunnels: Feed::list(move || fetched(for_tunnels.clone(), "/tunnels")),
            line: StoredValue::new_local(line),
        }
    }

    /// The panel and whoever shows the editor. To be asked for before anything is waited for: it may be needed for
    /// longer than the editor is shown.
    pub fn line(self) -> Line {
        self.line.try_get_value().unwrap_or_default()
    }

    /// Fetches both lists again.
    pub fn refresh(self) {
        self.nodes.refresh_if_wanted();
        self.tunnels.refresh_if_wanted();
    }
}

async fn fetched<T: DeserializeOwned>(access: Access, path: &str) -> Result<T, ApiError> {
    access.call(Method::Get, path).await
}

/// The panel and whoever shows the editor.
#[derive(Clone, Default)]
pub struct Line {
    access: Access,
    saved: Told,
    cancel: Told,
}

impl Line {
    /// One tunnel.
    pub async fn tunnel(&self, id: TunnelId) -> Result<Tunnel, ApiError> {
        self.access.call(Method::Get, &format!("/tunnels/{id}")).await
    }

    /// Creates a tunnel, or changes the one with that id.
    pub async fn save(&self, id: Option<TunnelId>, input: &TunnelInput) -> Result<Tunnel, ApiError> {
        match id {
            Some(id) => self.access.call_with(Method::Put, &format!("/tunnels/{id}"), input).await,
            None => self.access.call_with(Method::Post, "/tunnels", input).await,
        }
    }

    /// Tells that a tunnel was saved, and whether the editor is still looked at.
    pub fn saved(&self, tunnel: &Tunnel, shown: bool) {
        let tunnel = serde_json::to_string(tunnel).ok().and_then(|text| js_sys::JSON::parse(&text).ok());
        self.saved.tell_with(&tunnel.unwrap_or(JsValue::NULL), &JsValue::from_bool(shown));
    }

    /// Tells that nothing is to be saved.
    pub fn cancel(&self) {
        self.cancel.tell();
    }
}
