//! What can go wrong in the database, in words that callers decide by.

/// Why a store operation failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Something unique exists already.
    #[error("{0} is taken")]
    Taken(Taken),
    /// What a row refers to does not exist (any more), or what is to be deleted is still in use.
    #[error("a row refers to something that does not exist")]
    Reference,
    /// The database cannot be used at the moment; the same operation may work later.
    #[error("the database is not available: {reason}")]
    Unavailable {
        /// Why.
        reason: Unavailability,
        /// What the driver said.
        #[source]
        source: BoxError,
    },
    /// A row holds what this version cannot read.
    #[error("{table} holds what cannot be read: {reason}")]
    Unreadable {
        /// Where.
        table: &'static str,
        /// What.
        reason: String,
    },
    /// Anything else: a defect.
    #[error("a statement failed")]
    Failed(#[source] BoxError),
}

/// An error of the driver, which stays inside the store.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What is unique and exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Taken {
    /// Name of a node.
    #[error("the name of the node")]
    NodeName,
    /// Name of a tunnel.
    #[error("the name of the tunnel")]
    TunnelName,
    /// Port of a node.
    #[error("the port")]
    Port,
    /// Name of a user.
    #[error("the name of the user")]
    Username,
    /// Something that only a defect can make twice.
    #[error("the row")]
    Other,
}

/// Why the database cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailability {
    /// Somebody else holds it.
    #[error("it is locked")]
    Locked,
    /// No space left.
    #[error("the disk is full")]
    Full,
    /// File or file system are read-only.
    #[error("it is read-only")]
    ReadOnly,
    /// Reading or writing failed, or the file cannot be opened.
    #[error("reading or writing failed")]
    Io,
    /// All connections are busy.
    #[error("all connections are busy")]
    Busy,
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let unavailable = |reason, error| StoreError::Unavailable { reason, source: Box::new(error) };
        match &error {
            sqlx::Error::Database(database) => {
                let text = database.message().to_owned();
                // The low byte is SQLite's primary result code, https://sqlite.org/rescode.html.
                let code = database.code().and_then(|code| code.parse::<i64>().ok()).unwrap_or(0);
                match code & 0xff {
                    5 | 6 => unavailable(Unavailability::Locked, error),
                    8 => unavailable(Unavailability::ReadOnly, error),
                    10 | 14 => unavailable(Unavailability::Io, error),
                    13 => unavailable(Unavailability::Full, error),
                    19 if database.is_unique_violation() => StoreError::Taken(taken(&text)),
                    19 if database.is_foreign_key_violation() => StoreError::Reference,
                    _ => StoreError::Failed(Box::new(error)),
                }
            }
            sqlx::Error::PoolTimedOut => unavailable(Unavailability::Busy, error),
            sqlx::Error::Io(_) => unavailable(Unavailability::Io, error),
            _ => StoreError::Failed(Box::new(error)),
        }
    }
}

/// SQLite names the columns: `UNIQUE constraint failed: tunnel.name`.
fn taken(message: &str) -> Taken {
    let known = [
        ("node.name", Taken::NodeName),
        ("tunnel.name", Taken::TunnelName),
        ("node_port.", Taken::Port),
        ("user.username", Taken::Username),
    ];
    known.into_iter().find(|(column, _)| message.contains(column)).map_or(Taken::Other, |(_, taken)| taken)
}
