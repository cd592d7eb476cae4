//! Why a path, and with all of them a chain, gave no connection.

use super::failure::FailureKind;
use super::fault::{AskError, TargetFault};
use std::io;

/// Why no node of a chain gave a connection.
#[derive(Debug, thiserror::Error)]
pub enum ChainFailure {
    /// The chain has no hop, or a hop without nodes.
    #[error("the chain has no nodes")]
    Empty,
    /// Every node that was tried says that it is the target. Nothing is held against the nodes then.
    #[error("the target cannot be reached through any node (last: {0})")]
    Target(TargetFault),
    /// The nodes failed.
    #[error("no node could be used (last: {last})")]
    Nodes {
        /// The last one that was tried, and how it failed.
        last: String,
        /// In what way.
        kind: FailureKind,
    },
    /// The time for the whole connection is over.
    #[error("no node could be used in time (last: {0})")]
    Time(String),
    /// The client did not wait.
    #[error("the client is gone")]
    ClientGone,
}

impl ChainFailure {
    /// The word by which it is counted; nothing has failed when the client is gone.
    pub fn kind(&self) -> Option<FailureKind> {
        match self {
            ChainFailure::Empty => Some(FailureKind::NoNodes),
            ChainFailure::Target(fault) => Some((*fault).into()),
            ChainFailure::Nodes { kind, .. } => Some(*kind),
            ChainFailure::Time(_) => Some(FailureKind::OutOfTime),
            ChainFailure::ClientGone => None,
        }
    }
}

/// Why one path gave no connection.
pub(super) struct PathFailure {
    pub(super) hop: usize,
    pub(super) cause: Cause,
}

impl PathFailure {
    /// Whether it is one that a dead connection causes too.
    pub(super) fn is_silence(&self) -> bool {
        match &self.cause {
            Cause::Node { .. } | Cause::Hurried { .. } => true,
            Cause::Target(_) | Cause::ClientGone => false,
        }
    }
}

pub(super) enum Cause {
    /// Connect or handshake, or an answer that blames the node. Another way to the node may work.
    Node {
        error: String,
        kind: FailureKind,
        everywhere: bool,
    },
    /// As before, but the attempt had less time than its stage should have: not held against the node.
    Hurried {
        error: String,
        kind: FailureKind,
    },
    /// The last node's answer blames the target.
    Target(TargetFault),
    ClientGone,
}

impl Cause {
    /// A node that was asked gave no connection. `hurried` says that it had too little time to be blamed for taking longer.
    pub(super) fn of(hurried: bool, stage: &str, error: &AskError) -> Self {
        let timed_out = matches!(error, AskError::Io(error) if error.kind() == io::ErrorKind::TimedOut);
        let kind = if hurried && timed_out { FailureKind::OutOfTime } else { error.kind() };
        let error = format!("{stage}: {error}");
        if hurried && timed_out {
            Cause::Hurried { error, kind }
        } else {
            Cause::Node { error, kind, everywhere: false }
        }
    }

    /// The word by which it is counted; nothing has failed when the client is gone.
    pub(super) fn kind(&self) -> Option<FailureKind> {
        match self {
            Cause::Node { kind, .. } | Cause::Hurried { kind, .. } => Some(*kind),
            Cause::Target(fault) => Some((*fault).into()),
            Cause::ClientGone => None,
        }
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cause::Node { error, .. } | Cause::Hurried { error, .. } => f.write_str(error),
            Cause::Target(fault) => write!(f, "answered: {fault}"),
            Cause::ClientGone => f.write_str("the client is gone"),
        }
    }
}
