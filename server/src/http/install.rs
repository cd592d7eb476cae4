//! What a new node fetches: the script that installs the agent, and the agent. Nothing here is secret, so nobody logs in.

use crate::error::AppError;
use crate::state::AppState;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use sha2::{Digest as _, Sha256};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

const SCRIPT: &str = include_str!("../../../packaging/install.sh");
const UNIT: &str = include_str!("../../../packaging/exitpilot-agent.service");
/// Line of the script that gets the panel's address.
const ADDRESS_LINE: &str = "PANEL_URL=''";
/// Line of the script that gets the unit.
const UNIT_LINE: &str = "@UNIT@";
/// No agent is that large; whatever else the path names stays out of memory.
const MAX_AGENT_BYTES: u64 = 256 * 1024 * 1024;

/// The agent's executable, read when first asked for and again when the file has changed.
#[derive(Clone, Debug, Default)]
pub struct AgentBinary {
    path: Option<PathBuf>,
    read: Arc<Mutex<Option<Read>>>,
}

#[derive(Clone, Debug)]
struct Read {
    modified: Option<SystemTime>,
    content: Bytes,
    sha256: String,
}

impl AgentBinary {
    /// The executable at this path; `None` = there is none to hand out.
    pub fn at(path: Option<PathBuf>) -> Self {
        Self { path, read: Arc::default() }
    }

    async fn read(&self) -> Result<Read, AppError> {
        let missing = || {
            let what = "an agent to hand out (put exitpilot-agent beside the panel, or set agent_binary)";
            AppError::NotFound(what.to_owned())
        };
        let path = self.path.as_ref().ok_or_else(missing)?;
        let about = tokio::fs::metadata(path).await.map_err(|_| missing())?;
        if !about.is_file() || about.len() > MAX_AGENT_BYTES {
            return Err(missing());
        }
        let modified = about.modified().ok();
        let kept = self.read.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(kept) = kept.filter(|kept| kept.modified == modified) {
            return Ok(kept);
        }
        let content = tokio::fs::read(path).await.map_err(|_| missing())?;
        let hashed = move || (hex::encode(Sha256::digest(&content)), Bytes::from(content));
        let (sha256, content) =
            tokio::task::spawn_blocking(hashed).await.map_err(|e| AppError::Internal(e.into()))?;
        let read = Read { modified, content, sha256 };
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = Some(read.clone());
        Ok(read)
    }
}

/// The script, with this panel's address in it.
pub(crate) async fn script(State(state): State<AppState>, headers: HeaderMap) -> impl IntoResponse {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let address = state.config.address_for(host);
    let script = SCRIPT.replacen(ADDRESS_LINE, &format!("PANEL_URL='{address}'"), 1).replacen(
        UNIT_LINE,
        UNIT.trim_end(),
        1,
    );
    ([(header::CONTENT_TYPE, "text/x-shellscript; charset=utf-8")], script)
}

/// The agent for machines of this kind (`uname -m`), or with `.sha256` behind it its checksum.
pub(crate) async fn agent(
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> Result<impl IntoResponse, AppError> {
    let (arch, sum) = match name.strip_suffix(".sha256") {
        Some(arch) => (arch, true),
        None => (name.as_str(), false),
    };
    let own = std::env::consts::ARCH;
    if arch != own {
        return Err(AppError::NotFound(format!("an agent for {arch} (this panel has the one for {own})")));
    }
    let read = state.agent_binary.read().await?;
    Ok(if sum {
        let line = format!("{}  exitpilot-agent\n", read.sha256);
        ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], Bytes::from(line))
    } else {
        ([(header::CONTENT_TYPE, "application/octet-stream")], read.content)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_has_a_place_for_everything_that_is_filled_in() {
        for line in [ADDRESS_LINE, UNIT_LINE] {
            assert_eq!(SCRIPT.lines().filter(|found| *found == line).count(), 1, "{line}");
        }
        // The unit stands in a here-document of this end.
        assert!(!UNIT.lines().any(|line| line == "END"));
    }
}
