//! What nodes are called.

use crate::api::Live;
use crate::i18n::{editor, lang};
use crate::reactive::Memo;
use leptos::prelude::*;
use shared::api::Node;
use shared::ids::NodeId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All nodes by id, as far as they are known.
#[derive(Clone, Copy)]
pub struct Names(Memo<Arc<BTreeMap<NodeId, Arc<Node>>>>);

/// Makes [`use_names`] possible on every screen.
pub fn provide(live: Live) {
    let index = Memo::new(move |_| {
        let nodes = live.nodes.get().unwrap_or_default();
        Arc::new(nodes.iter().map(|node| (node.id, node.clone())).collect())
    });
    provide_context(Names(index));
}

/// The page's [`Names`]; fetches the nodes if nobody has yet.
pub fn use_names() -> Names {
    crate::api::live::use_live().nodes.want();
    expect_context()
}

impl Names {
    /// The name; for a node that is gone, words that say so.
    pub fn of(self, id: NodeId) -> String {
        self.0.with(|nodes| nodes.get(&id).map(|node| node.name.clone())).unwrap_or_else(|| missing(id))
    }

    /// The node.
    pub fn node(self, id: NodeId) -> Option<Arc<Node>> {
        self.0.with(|nodes| nodes.get(&id).cloned())
    }

    /// All nodes by id.
    pub fn all(self) -> Arc<BTreeMap<NodeId, Arc<Node>>> {
        self.0.get()
    }

    /// For event handlers.
    pub fn now(self, id: NodeId) -> String {
        self.0
            .with_untracked(|nodes| nodes.get(&id).map(|node| node.name.clone()))
            .unwrap_or_else(|| format!("#{id}"))
    }
}

fn missing(id: NodeId) -> String {
    editor::MISSING_NODE.with(lang(), &[("id", &id.to_string())])
}
