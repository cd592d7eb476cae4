//! What nodes are called.

use crate::api::Feed;
use crate::i18n::{editor, lang};
use crate::reactive::Memo;
use leptos::prelude::*;
use shared::api::Node;
use shared::ids::NodeId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All nodes by id, as far as they are known.
#[derive(Clone, Copy)]
pub struct Names {
    feed: Feed<Vec<Arc<Node>>>,
    nodes: Memo<Arc<BTreeMap<NodeId, Arc<Node>>>>,
    /// Changes only when a name does, and not whenever a node goes online.
    names: Memo<Arc<BTreeMap<NodeId, String>>>,
}

/// Makes [`use_names`] possible on every screen.
pub fn provide(feed: Feed<Vec<Arc<Node>>>) {
    let nodes = Memo::new(move |_| {
        let nodes = feed.get().unwrap_or_default();
        let mut index = BTreeMap::new();
        for node in nodes.iter() {
            index.insert(node.id, node.clone());
        }
        Arc::new(index)
    });
    let names = Memo::new(move |_| {
        let mut names = BTreeMap::new();
        for (id, node) in nodes.get().iter() {
            names.insert(*id, node.name.clone());
        }
        Arc::new(names)
    });
    provide_context(Names { feed, nodes, names });
}

/// The [`Names`]; fetches the nodes if nobody has yet.
pub fn use_names() -> Names {
    let names: Names = expect_context();
    names.feed.want();
    names
}

impl Names {
    /// The name; for a node that is gone, words that say so.
    pub fn of(self, id: NodeId) -> String {
        self.names.with(|names| names.get(&id).cloned()).unwrap_or_else(|| missing(id))
    }

    /// The node.
    pub fn node(self, id: NodeId) -> Option<Arc<Node>> {
        self.nodes.with(|nodes| nodes.get(&id).cloned())
    }

    /// All nodes by id.
    pub fn all(self) -> Arc<BTreeMap<NodeId, Arc<Node>>> {
        self.nodes.get()
    }

    /// For event handlers.
    pub fn now(self, id: NodeId) -> String {
        self.names.with_untracked(|names| names.get(&id).cloned()).unwrap_or_else(|| format!("#{id}"))
    }
}

fn missing(id: NodeId) -> String {
    editor::MISSING_NODE.with(lang(), &[("id", &id.to_string())])
}
