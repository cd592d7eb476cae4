//! Which protocols are blocked on this node: what the panel said last, kept over restarts.

use super::recognise::Protocol;
use crate::state::replace_file;
use serde_json::{Map, Value};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

const FILE: &str = "protocols.json";

/// A set of protocols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocked {
    /// HTTP.
    pub http: bool,
    /// TLS.
    pub tls: bool,
    /// SOCKS 4 and 5.
    pub socks: bool,
}

impl Blocked {
    /// Whether a protocol is in it.
    pub fn has(self, protocol: Protocol) -> bool {
        match protocol {
            Protocol::Http => self.http,
            Protocol::Tls => self.tls,
            Protocol::Socks => self.socks,
        }
    }

    /// Whether none is.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Reads the command of a panel: `{"http":0,"tls":1,"socks":0}`. What is left out is not blocked; the text says what
    /// is wrong.
    pub fn from_command(data: &Value) -> Result<Self, String> {
        let empty = Map::new();
        let flags = match data {
            Value::Null => &empty,
            Value::Object(flags) => flags,
            _ => return Err("not an object such as {\"http\":1,\"tls\":0,\"socks\":0}".to_owned()),
        };
        let mut blocked = Self::default();
        for (key, value) in flags {
            let flag = match key.as_str() {
                "http" => &mut blocked.http,
                "tls" => &mut blocked.tls,
                "socks" => &mut blocked.socks,
                _ => return Err(format!("{key}: is no protocol that can be blocked")),
            };
            *flag = match value {
                Value::Null => false,
                value if value.as_u64() == Some(0) => false,
                value if value.as_u64() == Some(1) => true,
                _ => return Err(format!("{key}: must be 0 or 1")),
            };
        }
        Ok(blocked)
    }

    /// As [`Blocked::from_command`] reads it.
    pub fn to_command(self) -> Value {
        let flag = |protocol: Protocol| (protocol.as_str().to_owned(), u8::from(self.has(protocol)).into());
        Value::Object(Protocol::ALL.map(flag).into_iter().collect())
    }

    fn bits(self) -> u8 {
        u8::from(self.http) | u8::from(self.tls) << 1 | u8::from(self.socks) << 2
    }

    fn of_bits(bits: u8) -> Self {
        Self { http: bits & 1 != 0, tls: bits & 2 != 0, socks: bits & 4 != 0 }
    }
}

/// What is blocked now, cheap to clone and to look at. Without a folder it lasts as long as the process.
#[derive(Clone, Debug, Default)]
pub struct BlockedProtocols(Arc<Kept>);

#[derive(Debug, Default)]
struct Kept {
    folder: Option<PathBuf>,
    now: AtomicU8,
    /// One write at a time.
    writing: Mutex<()>,
}

impl BlockedProtocols {
    /// Reads what was blocked. A file that is not understood blocks nothing and is left until the next command; why it is
    /// not understood goes to the log.
    pub fn open(folder: &Path) -> Self {
        let path = folder.join(FILE);
        let blocked = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| error.to_string())
                .and_then(|value| Blocked::from_command(&value)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Blocked::default()),
            Err(error) => Err(error.to_string()),
        };
        let blocked = blocked.unwrap_or_else(|reason| {
            tracing::error!("the blocked protocols in {} are unusable: {reason}", path.display());
            Blocked::default()
        });
        let now = AtomicU8::new(blocked.bits());
        Self(Arc::new(Kept { folder: Some(folder.to_owned()), now, writing: Mutex::default() }))
    }

    /// What is blocked for connections that begin now.
    pub fn get(&self) -> Blocked {
        Blocked::of_bits(self.0.now.load(Ordering::Relaxed))
    }

    /// Blocks this and nothing else from now on; returns when it is on disk. After an error it is blocked all the same.
    pub async fn set(&self, blocked: Blocked) -> io::Result<()> {
        self.0.now.store(blocked.bits(), Ordering::Relaxed);
        if self.0.folder.is_none() {
            return Ok(());
        }
        let this = self.clone();
        tokio::task::spawn_blocking(move || this.write()).await.map_err(io::Error::other)?
    }

    fn write(&self) -> io::Result<()> {
        let Some(folder) = &self.0.folder else { return Ok(()) };
        let _one = self.0.writing.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock of the writer, so that the last to write writes the newest.
        replace_file(folder, FILE, self.get().to_command().to_string().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn commands() {
        let read = |value: Value| Blocked::from_command(&value);
        let http = Blocked { http: true, ..Blocked::default() };
        assert_eq!(read(json!({"http": 1, "tls": 0})), Ok(http));
        assert_eq!(read(json!({"http": 1, "tls": null, "socks": 0})), Ok(http));
        assert_eq!(read(json!({})), Ok(Blocked::default()));
        assert_eq!(read(Value::Null), Ok(Blocked::default()));
        for (wrong, reason) in [
            (json!({"http": 2}), "http: must be 0 or 1"),
            (json!({"tls": true}), "tls: must be 0 or 1"),
            (json!({"socks": "1"}), "socks: must be 0 or 1"),
            (json!({"quic": 1}), "quic: is no protocol that can be blocked"),
            (json!([1]), "not an object"),
        ] {
            let error = read(wrong).unwrap_err();
            assert!(error.starts_with(reason), "{error}");
        }
        for bits in 0..8 {
            let blocked = Blocked::of_bits(bits);
            assert_eq!((blocked.bits(), read(blocked.to_command())), (bits, Ok(blocked)));
        }
    }

    #[tokio::test]
    async fn what_is_blocked_outlives_the_process() {
        let place = tempfile::tempdir().unwrap();
        let blocked = BlockedProtocols::open(place.path());
        assert!(blocked.get().is_empty());
        let tls = Blocked { tls: true, ..Blocked::default() };
        blocked.set(tls).await.unwrap();
        assert_eq!(BlockedProtocols::open(place.path()).get(), tls);
        fs::write(place.path().join(FILE), "{\"tls\":").unwrap();
        assert!(BlockedProtocols::open(place.path()).get().is_empty());
    }
}
