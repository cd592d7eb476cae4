//! The last accepted configuration on disk, so that traffic flows again after a restart without the panel.
//!
//! A command is answered `success:true` only after its effect is in the file: what was acknowledged survives a kill.
//! When the file cannot be written (disk full, read-only), the command has already been applied and keeps serving; it
//! is answered `success:false` with `applied but not saved: …`, so that the panel sends it again, and the next save
//! that works writes everything.

use anyhow::Context as _;
use shared::gost::GostConfig;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const FILE: &str = "config.json";
const SET_ASIDE: &str = "config.json.corrupt";
const LOCK: &str = "lock";
/// Saves waiting for the disk; each waiting command holds one, and there are fewer commands than this.
const WAITING_SAVES: usize = 1024;

/// The folder of one agent.
#[derive(Debug)]
pub struct StateFolder {
    folder: PathBuf,
    /// Held as long as the agent lives.
    _lock: Option<File>,
}

/// What was found at start.
#[derive(Debug)]
pub enum Loaded {
    /// A new agent.
    Nothing,
    /// The last accepted configuration.
    Config(GostConfig),
    /// The file is not a configuration; it was moved to `to`, or is still there when that failed too.
    SetAside {
        /// What is wrong with it.
        reason: String,
        /// Where it is now.
        to: PathBuf,
    },
}

impl StateFolder {
    /// Makes the folder (readable by its owner only: configurations contain passwords) and takes its lock.
    ///
    /// Fails only when another agent uses the folder. One that cannot be written is reported by each save.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        let opened = made.and_then(|()| private().create(true).truncate(false).open(folder.join(LOCK)));
        let lock = match opened {
            Ok(file) => match file.try_lock() {
                Ok(()) => Some(file),
                Err(TryLockError::WouldBlock) => {
                    anyhow::bail!("{} is used by another running agent", folder.display())
                }
                Err(TryLockError::Error(error)) => {
                    tracing::warn!("cannot lock {}: {error}", folder.display());
                    None
                }
            },
            Err(error) => {
                tracing::error!(
                    "cannot write to {}: {error}; what the panel sends will not survive a restart",
                    folder.display()
                );
                None
            }
        };
        Ok(Self { folder: folder.to_owned(), _lock: lock })
    }

    /// Reads the file. One that is not understood is moved aside, never deleted.
    pub fn load(&self) -> Loaded {
        let path = self.folder.join(FILE);
        let reason = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Loaded::Nothing,
            Err(error) => error.to_string(),
            Ok(bytes) => match serde_json::from_slice(&bytes) {
                Ok(config) => return Loaded::Config(config),
                Err(error) => error.to_string(),
            },
        };
        self.set_aside(reason)
    }

    /// Moves the file away because its content cannot be used.
    pub fn set_aside(&self, reason: String) -> Loaded {
        let (path, aside) = (self.folder.join(FILE), self.folder.join(SET_ASIDE));
        let to = match fs::rename(&path, &aside) {
            Ok(()) => aside,
            Err(_) => path,
        };
        Loaded::SetAside { reason, to }
    }

    fn write(&self, json: &[u8]) -> io::Result<()> {
        replace_file(&self.folder, FILE, json)
    }
}

/// Replaces a file of a state folder as a whole: after a crash at any moment there is the old or the new one. Makes the
/// folder if it is not there.
pub(crate) fn replace_file(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let temporary = folder.join(format!("{name}.new"));
    let mut file = private().create(true).truncate(true).open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    drop(file);
    fs::rename(&temporary, folder.join(name))?;
    File::open(folder)?.sync_all()
}

fn private() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

/// Asks for the current configuration to be on disk. One task writes; requests that arrive meanwhile share the next
/// write, so a thousand commands cost a few writes and not a thousand.
#[derive(Clone, Debug)]
pub struct Saver {
    requests: mpsc::Sender<oneshot::Sender<Result<(), String>>>,
}

impl Saver {
    /// Starts the writing task. `current` gives the configuration as it is now; it is asked after a request has
    /// arrived, so the file is never older than what the request was made for. `saved` is what the file contains.
    pub fn start(
        folder: StateFolder,
        saved: Option<&GostConfig>,
        current: impl Fn() -> GostConfig + Send + 'static,
        tasks: &TaskTracker,
        stop: CancellationToken,
    ) -> Self {
        let (requests, mut waiting) = mpsc::channel::<oneshot::Sender<Result<(), String>>>(WAITING_SAVES);
        let mut folder = Some(folder);
        let mut last = saved.and_then(|config| serde_json::to_vec(config).ok());
        tasks.spawn(async move {
            loop {
                let first = tokio::select! {
                    request = waiting.recv() => request,
                    () = stop.cancelled() => None,
                };
                let Some(first) = first else { return };
                let mut asked = vec![first];
                while let Ok(another) = waiting.try_recv() {
                    asked.push(another);
                }
                let outcome = save(&mut folder, &mut last, &current()).await;
                let outcome = outcome.map_err(|error| format!("{error:#}"));
                if let Err(reason) = &outcome {
                    tracing::error!("the configuration was applied but not saved: {reason}");
                }
                for request in asked {
                    // Whoever asked may be gone; the file is written all the same.
                    let _ = request.send(outcome.clone());
                }
            }
        });
        Self { requests }
    }

    /// Returns when the file holds at least what runs now; the text says why it does not.
    pub async fn save(&self) -> Result<(), String> {
        let stopping = || "the agent is stopping".to_owned();
        let (reply, answer) = oneshot::channel();
        self.requests.send(reply).await.map_err(|_| stopping())?;
        answer.await.map_err(|_| stopping())?
    }
}

async fn save(
    folder: &mut Option<StateFolder>,
    last: &mut Option<Vec<u8>>,
    config: &GostConfig,
) -> anyhow::Result<()> {
    let json = serde_json::to_vec(config)?;
    if last.as_ref() == Some(&json) {
        return Ok(());
    }
    let own = folder.take().context("an earlier write was broken off")?;
    let (own, json, written) = tokio::task::spawn_blocking(move || {
        let written = own.write(&json);
        (own, json, written)
    })
    .await?;
    let path = own.folder.join(FILE);
    *folder = Some(own);
    // After a failed write the content of the file is not known any more.
    *last = None;
    written.with_context(|| path.display().to_string())?;
    *last = Some(json);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::{Arc, Mutex};

    const TEMPORARY: &str = "config.json.new";

    fn config(name: &str) -> GostConfig {
        serde_json::from_value(json!({"chains": [{"name": name, "hops": []}]})).unwrap()
    }

    fn saver(folder: StateFolder, saved: Option<&GostConfig>, now: &Arc<Mutex<GostConfig>>) -> Saver {
        let now = now.clone();
        let current = move || now.lock().unwrap().clone();
        Saver::start(folder, saved, current, &TaskTracker::new(), CancellationToken::new())
    }

    #[tokio::test]
    async fn what_was_saved_is_loaded_and_private() {
        use std::os::unix::fs::MetadataExt as _;
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state");
        let folder = StateFolder::open(&path).unwrap();
        assert!(matches!(folder.load(), Loaded::Nothing));
        let now = Arc::new(Mutex::new(config("a")));
        let saver = saver(folder, None, &now);
        let all = (0..50).map(|_| saver.save());
        for outcome in futures_util::future::join_all(all).await {
            outcome.unwrap();
        }
        let again = StateFolder { folder: path.clone(), _lock: None };
        assert!(matches!(again.load(), Loaded::Config(loaded) if loaded == config("a")));
        *now.lock().unwrap() = config("b");
        saver.save().await.unwrap();
        assert!(matches!(again.load(), Loaded::Config(loaded) if loaded == config("b")));
        assert_eq!(fs::metadata(path.join(FILE)).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
    }

    #[tokio::test]
    async fn an_unchanged_configuration_is_not_written_again() {
        let place = tempfile::tempdir().unwrap();
        let folder = StateFolder::open(place.path()).unwrap();
        let now = Arc::new(Mutex::new(config("a")));
        saver(folder, Some(&config("a")), &now).save().await.unwrap();
        assert!(!place.path().join(FILE).exists());
    }

    #[tokio::test]
    async fn a_failed_write_is_reported_and_the_next_one_recovers() {
        let place = tempfile::tempdir().unwrap();
        let folder = StateFolder::open(place.path()).unwrap();
        let now = Arc::new(Mutex::new(config("a")));
        let saver = saver(folder, None, &now);
        // Works for root too, unlike permissions: a folder where the temporary file should go.
        fs::create_dir(place.path().join(TEMPORARY)).unwrap();
        assert!(saver.save().await.unwrap_err().contains(FILE));
        fs::remove_dir(place.path().join(TEMPORARY)).unwrap();
        saver.save().await.unwrap();
        assert!(place.path().join(FILE).exists());
    }

    #[test]
    fn a_corrupt_file_is_moved_aside_and_a_second_agent_is_kept_out() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join(FILE), "{\"chains\":[{]").unwrap();
        let folder = StateFolder::open(place.path()).unwrap();
        let Loaded::SetAside { reason, to } = folder.load() else { panic!("not set aside") };
        assert!(!reason.is_empty());
        assert_eq!(fs::read_to_string(to).unwrap(), "{\"chains\":[{]");
        assert!(matches!(folder.load(), Loaded::Nothing));
        assert!(StateFolder::open(place.path()).unwrap_err().to_string().contains("another running agent"));
        drop(folder);
        StateFolder::open(place.path()).unwrap();
    }
}
