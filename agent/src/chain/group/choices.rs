//! What persons have chosen, kept over restarts.

use crate::state::replace_file;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const FILE: &str = "choices.json";

/// Group → member, cheap to clone. Without a folder it lasts as long as the process.
#[derive(Clone, Debug, Default)]
pub struct Choices(Arc<Kept>);

#[derive(Debug, Default)]
struct Kept {
    folder: Option<PathBuf>,
    /// Locked for moments by readers; while a choice is written, by a thread that may wait for the disk.
    choices: Mutex<BTreeMap<String, String>>,
    /// One write at a time.
    writing: Mutex<()>,
}

impl Choices {
    /// Reads what was chosen. A file that is not understood counts as empty and is left until the next choice; why it is
    /// not understood goes to the log.
    pub fn open(folder: &Path) -> Self {
        let path = folder.join(FILE);
        let choices = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| error.to_string()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(error.to_string()),
        };
        let choices = choices.unwrap_or_else(|reason| {
            tracing::error!("the choices in {} are unusable: {reason}", path.display());
            BTreeMap::new()
        });
        let kept =
            Kept { folder: Some(folder.to_owned()), choices: Mutex::new(choices), writing: Mutex::default() };
        Self(Arc::new(kept))
    }

    fn choices(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        // Always whole: entries are put in and taken out in one piece.
        self.0.choices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was chosen in a group.
    pub fn get(&self, group: &str) -> Option<String> {
        self.choices().get(group).cloned()
    }

    /// Notes a choice, or that there is none any more; returns when it is on disk.
    pub async fn note(&self, group: &str, member: Option<&str>) -> io::Result<()> {
        match member {
            Some(member) => self.choices().insert(group.to_owned(), member.to_owned()),
            None => self.choices().remove(group),
        };
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
        let json = serde_json::to_vec_pretty(&*self.choices())?;
        replace_file(folder, FILE, &json)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPORARY: &str = "choices.json.new";

    #[tokio::test]
    async fn choices_outlive_the_process() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("state");
        let choices = Choices::open(&folder);
        assert_eq!(choices.get("g"), None);
        choices.note("g", Some("a")).await.unwrap();
        choices.note("h", Some("b")).await.unwrap();
        choices.note("g", Some("c")).await.unwrap();
        choices.note("h", None).await.unwrap();
        let again = Choices::open(&folder);
        assert_eq!((again.get("g").as_deref(), again.get("h")), (Some("c"), None));
        assert!(!folder.join(TEMPORARY).exists());
    }

    #[tokio::test]
    async fn a_choice_that_cannot_be_written_is_reported_and_holds() {
        let place = tempfile::tempdir().unwrap();
        // Works for root too, unlike permissions: a folder where the temporary file should go.
        fs::create_dir(place.path().join(TEMPORARY)).unwrap();
        let choices = Choices::open(place.path());
        choices.note("g", Some("a")).await.unwrap_err();
        assert_eq!(choices.get("g").as_deref(), Some("a"));
        fs::remove_dir(place.path().join(TEMPORARY)).unwrap();
        choices.note("h", Some("b")).await.unwrap();
        assert_eq!(Choices::open(place.path()).get("g").as_deref(), Some("a"), "written with the next");
    }

    #[test]
    fn an_unusable_file_counts_as_empty() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join(FILE), "[").unwrap();
        assert_eq!(Choices::open(place.path()).get("g"), None);
    }
}
