//! What every node should be running: stored intent and applied orders in, complete configurations out.
//!
//! Pure and synchronous. Every choice is made here; carrying it out (`agents`) has none left.
//!
//! - [`intent`]: what a plan is made from
//! - [`names`]: what the objects are called
//! - [`dial`]: at which address one node reaches another
//! - [`render`]: intent → plans; `reuse`: what the plans before can give to the next ones
//! - [`mask`]: plans for human eyes

pub mod dial;
pub mod intent;
pub mod mask;
pub mod names;
mod render;
mod reuse;
mod selection;

#[cfg(test)]
mod lint;
#[cfg(test)]
mod render_tests;

pub use intent::{ForwardIntent, GroupIntent, Intent, MemberIntent, NodeIntent, TunnelIntent};
pub use render::{next_group, owner_chain, render, render_again};

use shared::gost::{ChainConfig, ServiceConfig};
use shared::ids::{ForwardId, NodeId, TunnelId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The plans of all nodes, with the intent they were made from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plans {
    /// What they were made from.
    pub intent: Arc<Intent>,
    /// One per node that exists, even if it has nothing to run.
    pub nodes: BTreeMap<NodeId, NodePlan>,
}

/// The complete desired configuration of one node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodePlan {
    /// By name.
    pub chains: BTreeMap<String, Planned<ChainConfig>>,
    /// By name.
    pub services: BTreeMap<String, Planned<ServiceConfig>>,
    /// What cannot be rendered, and why.
    pub problems: BTreeMap<Subject, String>,
}

/// An object of a plan. Plans that follow each other share those that stayed as they were.
#[derive(Debug)]
pub struct Planned<T> {
    /// What it is for.
    pub subject: Subject,
    /// As pushed.
    pub config: Arc<T>,
    /// [`shared::link::digest`] of it.
    pub digest: String,
}

impl<T> Clone for Planned<T> {
    fn clone(&self) -> Self {
        Self { subject: self.subject, config: self.config.clone(), digest: self.digest.clone() }
    }
}

/// Equal digests are equal configurations.
impl<T> PartialEq for Planned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.subject == other.subject && self.digest == other.digest
    }
}

/// What an object of a plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A chain or a relay service.
    Tunnel(TunnelId),
    /// A forward's service.
    Forward(ForwardId),
}

impl<T: serde::Serialize> Planned<T> {
    /// An object with its digest.
    pub fn new(subject: Subject, config: T) -> Self {
        let digest = shared::link::digest(&config);
        Self { subject, config: Arc::new(config), digest }
    }
}
