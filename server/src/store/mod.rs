//! All SQL. Nobody outside this module sees the driver, so that a second database is an addition here and nowhere else.
//!
//! One file per noun. Reads and writes run in a [`Tx`]: several reads in one see one state of the world, and a write
//! is there completely or not at all.

mod audit;
mod choice;
mod decision;
mod error;
mod forward;
mod intent;
mod node;
mod pin;
mod port;
mod prune;
mod rollup;
mod sample;
mod setting;
mod tunnel;
mod user;

pub use audit::NewAuditEntry;
pub use decision::{DecisionLogQuery, DecisionWrite, NewLogEntry, StoredDecision};
pub use error::{BoxError, StoreError, Taken, Unavailability};
pub use forward::{ForwardRow, NewForward};
pub use node::NewNode;
pub use port::{PortUse, Reservation};
pub use sample::{LegHistoryQuery, LegKey, LegSample};
pub use tunnel::{NewTunnel, TunnelRow};
pub use user::StoredUser;

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::str::FromStr as _;
use std::time::Duration;

/// The result of a store operation.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// SQLite waits this long for somebody else's lock before it says so.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// A request waits this long for a connection before it is told to come back.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// Rows that the thread of a connection reads ahead. With the driver's own 50 the threads wait for each other most of the
/// time where a plan reads everything.
const ROWS_AHEAD: usize = 2048;
/// Readers never wait for the writer in WAL mode; more of them than cores gains little.
const READERS: u32 = 8;

/// The database. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Db {
    writer: SqlitePool,
    reader: SqlitePool,
}

/// Why a database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// PostgreSQL or something else.
    #[error("this version keeps its data in SQLite only; write sqlite://PATH instead of `{scheme}://…`")]
    NotSqlite {
        /// What the address starts with.
        scheme: String,
    },
    /// The address cannot be understood.
    #[error("the database address is malformed; write sqlite://PATH")]
    Malformed(#[source] BoxError),
    /// The file cannot be opened or created.
    #[error("the database cannot be opened")]
    Open(#[source] BoxError),
    /// The tables cannot be brought to this version.
    #[error("the database cannot be brought to the form of this version")]
    Migrate(#[source] BoxError),
}

/// Makes the file where it is missing, for its owner alone: the tunnels' credentials are in it. SQLite gives the files beside it
/// the same rights. Why it cannot be made is told by opening it.
fn create_private(file: &Path) {
    let _ = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
}

impl Db {
    /// Opens `sqlite://PATH`, creating the file where it is missing, and brings its tables to this version.
    pub async fn open(url: &str) -> Result<Self, OpenError> {
        match url.split_once(':') {
            Some(("sqlite", _)) => {}
            // The rest of an address may hold a password, so only its scheme is repeated.
            Some((scheme, _)) => return Err(OpenError::NotSqlite { scheme: scheme.to_owned() }),
            None => return Err(OpenError::NotSqlite { scheme: String::new() }),
        }
        let options = SqliteConnectOptions::from_str(url).map_err(|e| OpenError::Malformed(Box::new(e)))?;
        let options = options
            .create_if_missing(true)
            .foreign_keys(true)
            .journal_mode(SqliteJournalMode::Wal)
            // What was answered must survive a power cut, not only a crash of the process.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY_TIMEOUT)
            .row_buffer_size(ROWS_AHEAD)
            .optimize_on_close(true, None);
        let in_memory = url.contains("mode=memory") || options.get_filename().starts_with("file:");
        if !in_memory {
            create_private(options.get_filename());
        }
        // One writer: SQLite has one anyway, and waiting for a connection is fairer than polling for a lock.
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_with(options.clone())
            .await
            .map_err(|e| OpenError::Open(Box::new(e)))?;
        migrate(&writer).await?;
        let reader = SqlitePoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_with(options.read_only(true).create_if_missing(false))
            .await
            .map_err(|e| OpenError::Open(Box::new(e)))?;
        Ok(Self { writer, reader })
    }

    /// A database in memory that ends with the last clone.
    pub async fn memory() -> Result<Self, OpenError> {
        let options = SqliteConnectOptions::new().in_memory(true).foreign_keys(true);
        // The connection is the database: one only, and it never goes.
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .min_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_with(options)
            .await
            .map_err(|e| OpenError::Open(Box::new(e)))?;
        migrate(&pool).await?;
        Ok(Self { writer: pool.clone(), reader: pool })
    }

    /// A transaction that only reads: all its reads see the same state.
    pub async fn read(&self) -> Result<Tx> {
        Ok(Tx(self.reader.begin().await?))
    }

    /// A transaction that writes. There is one at a time, so what it reads stays true until it commits.
    pub async fn write(&self) -> Result<Tx> {
        Ok(Tx(self.writer.begin_with("BEGIN IMMEDIATE").await?))
    }

    /// Whether the database answers and can be written to.
    pub async fn ping(&self) -> Result<()> {
        let mut tx = self.write().await?;
        sqlx::query("UPDATE setting SET version = version").execute(&mut *tx.0).await?;
        tx.commit().await
    }

    /// Writes everything to the file and closes it.
    pub async fn close(&self) {
        self.reader.close().await;
        self.writer.close().await;
    }
}

async fn migrate(pool: &SqlitePool) -> Result<(), OpenError> {
    sqlx::migrate!("migrations/sqlite").run(pool).await.map_err(|e| OpenError::Migrate(Box::new(e)))
}

/// A transaction; dropped without [`Tx::commit`] it leaves no trace.
#[derive(Debug)]
pub struct Tx(sqlx::Transaction<'static, sqlx::Sqlite>);

impl Tx {
    /// Makes the writes durable.
    pub async fn commit(self) -> Result<()> {
        Ok(self.0.commit().await?)
    }
}

/// A part of a list, ascending by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Behind this id.
    pub after: i64,
    /// At most so many.
    pub limit: u32,
}

impl Page {
    /// Everything.
    pub const ALL: Page = Page { after: i64::MIN, limit: u32::MAX };
}

/// Reads a JSON column.
fn from_json<T: serde::de::DeserializeOwned>(table: &'static str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|e| StoreError::Unreadable { table, reason: e.to_string() })
}

/// Writes a JSON column. Our types have text keys and finite numbers, so this fails only for a defect.
fn to_json<T: serde::Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|e| StoreError::Failed(Box::new(e)))
}

/// Reads a port column.
fn to_port(table: &'static str, port: i64) -> Result<u16> {
    u16::try_from(port).map_err(|_| StoreError::Unreadable { table, reason: format!("{port} is no port") })
}
