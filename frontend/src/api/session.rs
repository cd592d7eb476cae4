//! Who is logged in. The cookie is out of this code's reach (`HttpOnly`); what the panel answers is the truth.

use super::http::ApiError;
use crate::lasting::Lasting;
use shared::api::{Role, User};
use std::sync::{Arc, LazyLock};

/// What is known about the session.
#[derive(Clone, Debug, PartialEq)]
pub enum Session {
    /// Not asked yet.
    Checking,
    /// The panel does not answer.
    Unreachable(ApiError),
    /// Nobody is logged in.
    Anonymous,
    /// Somebody is.
    Active(Arc<User>),
    /// It ended while the page was in use: what was typed stays on the screen behind a new login.
    Expired(Arc<User>),
}

static CURRENT: LazyLock<Lasting<Session>> = LazyLock::new(|| Lasting::new(Session::Checking));

/// The session; whoever asks is run again when it changes.
pub fn current() -> Session {
    CURRENT.get()
}

/// Whether somebody is logged in at this moment.
pub fn is_active() -> bool {
    CURRENT.with_untracked(|session| matches!(session, Session::Active(_)))
}

/// What to offer as the user's name at a new login.
pub fn username_now() -> String {
    CURRENT.with_untracked(|session| match session {
        Session::Active(user) | Session::Expired(user) => user.username.clone(),
        Session::Checking | Session::Unreachable(_) | Session::Anonymous => String::new(),
    })
}

/// The user, also of a session that has just ended.
pub fn user() -> Option<Arc<User>> {
    match CURRENT.get() {
        Session::Active(user) | Session::Expired(user) => Some(user),
        Session::Checking | Session::Unreachable(_) | Session::Anonymous => None,
    }
}

/// Whether the user may change anything. The panel decides; this only hides buttons that would be refused.
pub fn may_write() -> bool {
    user().is_some_and(|user| user.role == Role::Admin)
}

/// Records an answer about the session.
pub fn set(session: Session) {
    CURRENT.set(session);
}

/// A request was refused because there is no session.
pub fn lost() {
    let next = match CURRENT.get_untracked() {
        Session::Active(user) | Session::Expired(user) => Session::Expired(user),
        Session::Checking | Session::Unreachable(_) | Session::Anonymous => Session::Anonymous,
    };
    if CURRENT.with_untracked(|now| *now != next) {
        CURRENT.set(next);
    }
}
