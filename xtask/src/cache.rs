//! The folder outside the clone where tools and the wasm32 standard library are kept, so that the next clean
//! clone finds them.

use anyhow::{Context as _, Result};
use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// `${XDG_CACHE_HOME:-~/.cache}/exitpilot`.
pub(crate) struct Cache {
    dir: PathBuf,
}

impl Cache {
    /// Opens the cache and creates its folder when it is not there.
    pub(crate) fn open() -> Result<Self> {
        let base = match env::var_os("XDG_CACHE_HOME").map(PathBuf::from) {
            Some(dir) if dir.is_absolute() => dir,
            _ => env::home_dir().context("neither XDG_CACHE_HOME nor HOME is set")?.join(".cache"),
        };
        let dir = base.join("exitpilot");
        fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        Ok(Self { dir })
    }

    /// The folder itself.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where one version of one tool is installed. Versions lie side by side: two clones may want two of them.
    pub(crate) fn tool(&self, name: &str, version: &str) -> PathBuf {
        self.dir.join("tools").join(format!("{name}-{version}"))
    }

    /// Executables of other products that tests and benchmarks compare with.
    pub(crate) fn peers(&self) -> PathBuf {
        self.dir.join("peers").join("bin")
    }

    /// Where the output of a long step goes; shown only when the step fails.
    pub(crate) fn log(&self, step: &str) -> PathBuf {
        self.dir.join("log").join(format!("{step}.log"))
    }

    /// Holds off every other setup on this machine until the returned guard is dropped.
    pub(crate) fn lock(&self) -> Result<FileLock> {
        FileLock::take(&self.dir.join("lock"), "another setup")
    }
}

/// An exclusive lock on a file; the operating system gives it back even when the process is killed.
pub(crate) struct FileLock {
    _file: File,
}

impl FileLock {
    /// Waits for the lock, and says for whom when it has to wait.
    pub(crate) fn take(path: &Path, holder: &str) -> Result<Self> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let file = File::options()
            .create(true)
            .append(true)
            .open(path)
            .with_context(|| format!("cannot open the lock {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                println!("waiting for {holder} to finish");
                file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
            }
            Err(TryLockError::Error(error)) => return Err(error).context("cannot lock"),
        }
        Ok(Self { _file: file })
    }
}

/// `PATH` with `first` in front of what is there.
pub(crate) fn path_with(first: &[PathBuf]) -> Result<OsString> {
    let old = env::var_os("PATH").unwrap_or_default();
    let all = first.iter().cloned().chain(env::split_paths(&old));
    env::join_paths(all).context("a folder of the search path holds a colon")
}

/// The first executable of that name on `PATH`, or in the folders for administrators, which a plain user's `PATH`
/// often lacks.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin", "/usr/local/sbin"].map(PathBuf::from))
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}
