//! Who somebody is and what he may do.
//!
//! - [`password`]: hashes, off the async threads
//! - [`token`]: session tokens and node secrets
//! - [`recall`]: the news that sessions ended
//! - [`throttle`]: how often somebody may try
//! - [`origin`]: whether a request comes from the panel's own page

pub mod origin;
pub mod password;
pub mod recall;
pub mod throttle;
pub mod token;

use shared::api::User;

/// Somebody with a session.
#[derive(Clone, Debug)]
pub struct CurrentUser {
    /// Who.
    pub user: User,
    /// Hash of the session's token.
    pub token_hash: String,
}
