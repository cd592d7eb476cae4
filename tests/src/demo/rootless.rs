//! A network for those who are not root: the same program again, as root of a user namespace of its own.

use crate::netlab::{Lab, LabError};
use nix::unistd::geteuid;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Says that this is the second try.
const MARK: &str = "EXITPILOT_DEMO_IN_NAMESPACE";
/// `ip netns` keeps its names on /run, which a plain user cannot write.
const SCRIPT: &str = "mount -t tmpfs none /run && exec \"$@\"";

/// Returns when there can be a lab here. Otherwise becomes the same program where there can be one, or says in one
/// line why there is none.
///
/// # Errors
/// [`LabError::Unavailable`].
pub fn ensure_network() -> Result<(), LabError> {
    let Err(unavailable) = Lab::new("check") else { return Ok(()) };
    if geteuid().is_root() || std::env::var_os(MARK).is_some() {
        return Err(unavailable);
    }
    let own = std::env::current_exe().map_err(|source| LabError::Io { what: "finding itself", source })?;
    let mut again = Command::new("unshare");
    again.args(["--user", "--map-root-user", "--mount", "sh", "-c", SCRIPT, "sh"]).arg(own);
    again.args(std::env::args_os().skip(1)).env(MARK, "1");
    tracing::debug!(error = %again.exec(), "cannot start unshare");
    Err(unavailable)
}
