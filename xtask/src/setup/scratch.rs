//! Folders for the time of one step.

use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// A folder that is gone when the value is.
pub(super) struct ScratchDir(PathBuf);

impl ScratchDir {
    /// Makes a folder among the temporary ones of the system.
    pub(super) fn new(purpose: &str) -> Result<Self> {
        Self::inside(&env::temp_dir(), purpose)
    }

    /// Makes a folder inside another, for what is later renamed out of it: that works on one file system only.
    pub(super) fn inside(parent: &Path, purpose: &str) -> Result<Self> {
        let dir = parent.join(format!("exitpilot-{purpose}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        Ok(Self(dir))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
