//! What can go wrong with a lab.

use std::io;

use thiserror::Error;

use super::impairment::ImpairmentError;

/// Why the lab cannot do what was asked.
#[derive(Debug, Error)]
pub enum LabError {
    /// This machine or this user cannot have network namespaces with TUN devices.
    #[error(
        "network namespaces are not available: {reason}; run as root, or in `unshare --user --map-root-user --mount` \
         with a tmpfs on /run"
    )]
    Unavailable {
        /// The first thing that failed, in one line.
        reason: String,
    },
    /// Names become file names and host names.
    #[error("name {name:?}: 1 to 32 of a-z, 0-9 and -")]
    Name {
        /// The name as given.
        name: String,
    },
    /// No host of this name was made.
    #[error("no host {name:?} in this lab")]
    UnknownHost {
        /// The name as given.
        name: String,
    },
    /// All addresses are taken.
    #[error("a lab holds at most {limit} hosts")]
    Full {
        /// [`super::HOST_LIMIT`].
        limit: usize,
    },
    /// A value no link can have.
    #[error(transparent)]
    Impairment(#[from] ImpairmentError),
    /// A command of the system failed.
    #[error("`{command}`: {message}")]
    Command {
        /// As it was called.
        command: String,
        /// What it said, or its exit status.
        message: String,
    },
    /// The lab was dropped, or its thread ended.
    #[error("the lab has stopped")]
    Stopped,
    /// Publishing needs a runtime to relay in.
    #[error("publishing needs a tokio runtime")]
    NoRuntime,
    /// A call of the system failed.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl LabError {
    /// Names what was tried.
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}
