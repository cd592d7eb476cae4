//! The panel, and what is known of it.

use crate::api::http::Method;
use crate::api::{Access, ApiError, Feed};
use crate::module::guest::{Options, Told};
use leptos::prelude::*;
use shared::api::{Node, SettingsAnswer, SettingsInput};
use shared::ids::{NodeId, TunnelId};
use std::sync::Arc;

/// The surroundings of the screen, provided above all its parts.
#[derive(Clone, Copy)]
pub struct Desk {
    /// The tunnel.
    pub id: TunnelId,
    /// Whether settings may be changed.
    pub may_write: bool,
    /// All nodes, for the colours of exits.
    pub nodes: Feed<Vec<Arc<Node>>>,
    /// The settings in force.
    pub settings: Feed<SettingsAnswer>,
    line: StoredValue<Line, LocalStorage>,
}

impl Desk {
    /// From the options of the page: `tunnelId`, `mayWrite` (1 or 0) and `onUsed()`.
    pub fn new(options: &Options) -> Self {
        let line = Line { access: options.access(), used: options.callback("onUsed") };
        let (for_nodes, for_settings) = (line.access.clone(), line.access.clone());
        Self {
            id: TunnelId(options.number("tunnelId").unwrap_or_default()),
            may_write: options.number("mayWrite") == Some(1),
            nodes: Feed::list(move || {
                let access = for_nodes.clone();
                async move { access.call(Method::Get, "/nodes").await }
            }),
            settings: Feed::new(move || {
                let access = for_settings.clone();
                async move { access.call(Method::Get, "/settings").await }
            }),
            line: StoredValue::new_local(line),
        }
    }

    /// The panel; to be asked for before anything is waited for.
    pub fn line(self) -> Line {
        self.line.try_get_value().unwrap_or_default()
    }

    /// The node of an exit, which histories know by its name only.
    pub fn exit(self, name: &str) -> NodeId {
        let nodes = self.nodes.get();
        let node = nodes.as_ref().and_then(|nodes| nodes.iter().find(|node| node.name == name));
        node.map_or_else(
            || NodeId(name.strip_prefix("node ").and_then(|id| id.parse().ok()).unwrap_or_default()),
            |node| node.id,
        )
    }
}

/// The panel and whoever shows the screen.
#[derive(Clone, Default)]
pub struct Line {
    access: Access,
    used: Told,
}

impl Line {
    /// Puts settings in force.
    pub async fn adopt(&self, input: &SettingsInput) -> Result<SettingsAnswer, ApiError> {
        let answer = self.access.call_with(Method::Put, "/settings", input).await?;
        self.used.tell();
        Ok(answer)
    }

    /// Lets the page find out that the session is over, where a worker was told so.
    pub async fn look(&self) {
        let _ = self.access.call::<serde_json::Value>(Method::Get, "/auth/me").await;
    }
}
