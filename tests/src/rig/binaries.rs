//! Where the programs under test are.

use anyhow::{Context as _, Result, ensure};
use std::env;
use std::path::PathBuf;

/// The panel's executable.
pub const PANEL: &str = "exitpilot";
/// The agent's executable.
pub const AGENT: &str = "exitpilot-agent";

/// A program of this project: in `EXITPILOT_BIN_DIR`, else where cargo put the running one.
///
/// # Errors
/// When it is not there; says how to build it.
pub fn find(name: &str) -> Result<PathBuf> {
    let folder = match env::var_os("EXITPILOT_BIN_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => {
            let own = env::current_exe().context("the path of the running program")?;
            let folder = own.parent().context("the running program is in no folder")?;
            // Tests are one folder deeper than programs.
            if folder.ends_with("deps") { folder.join("..") } else { folder.to_owned() }
        }
    };
    let path = folder.join(name);
    ensure!(
        path.is_file(),
        "there is no {}: run `cargo build -p server -p agent` or set EXITPILOT_BIN_DIR",
        path.display()
    );
    Ok(path)
}
