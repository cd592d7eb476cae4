//! Whether the inputs of a build are those of the last one.

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

/// The hash of everything a build depends on.
pub(crate) struct Stamp {
    hash: Sha256,
}

impl Stamp {
    /// An empty stamp.
    pub(crate) fn new() -> Self {
        Self { hash: Sha256::new() }
    }

    /// Adds something that is not a file, such as the version of a tool.
    pub(crate) fn text(&mut self, name: &str, value: &str) {
        self.field(name.as_bytes());
        self.field(value.as_bytes());
    }

    /// Adds a file or everything below a folder, in the order of the names. What is not there counts as such: an input
    /// that appears later changes the stamp.
    pub(crate) fn path(&mut self, root: &Path, relative: &Path) -> Result<()> {
        let path = root.join(relative);
        if path.is_dir() {
            for name in sorted_names(&path)? {
                if name.to_str().is_some_and(is_input) {
                    self.path(root, &relative.join(name))?;
                }
            }
        } else {
            self.field(relative.as_os_str().as_encoded_bytes());
            match fs::read(&path) {
                Ok(content) => self.field(&content),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => self.field(b"absent"),
                Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
            }
        }
        Ok(())
    }

    /// The finished stamp, as text for a file.
    pub(crate) fn finish(self) -> String {
        hex::encode(self.hash.finalize())
    }

    /// Length first, so that the end of one field cannot be taken for the start of the next.
    fn field(&mut self, bytes: &[u8]) {
        self.hash.update((bytes.len() as u64).to_be_bytes());
        self.hash.update(bytes);
    }
}

/// What editors and other tools leave in a source folder is no input.
fn is_input(name: &str) -> bool {
    !(name.starts_with('.') || name.ends_with('~') || name == "target" || name == "node_modules")
}

fn sorted_names(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut names = entries.map(|entry| Ok(PathBuf::from(entry?.file_name()))).collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp_of(root: &Path) -> String {
        let mut stamp = Stamp::new();
        stamp.path(root, Path::new("src")).unwrap();
        stamp.path(root, Path::new("Cargo.lock")).unwrap();
        stamp.finish()
    }

    #[test]
    fn changes_with_content_names_and_presence_only() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("src/deep")).unwrap();
        fs::write(root.join("src/deep/a.rs"), "one").unwrap();
        let first = stamp_of(root);
        assert_eq!(stamp_of(root), first);

        fs::write(root.join("src/.a.rs.swp"), "x").unwrap();
        fs::create_dir(root.join("src/target")).unwrap();
        fs::write(root.join("src/target/built"), "x").unwrap();
        fs::write(root.join("other"), "x").unwrap();
        assert_eq!(stamp_of(root), first, "not inputs");

        fs::write(root.join("src/deep/a.rs"), "two").unwrap();
        let changed = stamp_of(root);
        assert_ne!(changed, first);
        fs::write(root.join("src/deep/a.rs"), "one").unwrap();
        assert_eq!(stamp_of(root), first);

        fs::rename(root.join("src/deep/a.rs"), root.join("src/deep/b.rs")).unwrap();
        assert_ne!(stamp_of(root), first);
        fs::rename(root.join("src/deep/b.rs"), root.join("src/deep/a.rs")).unwrap();

        fs::write(root.join("Cargo.lock"), "").unwrap();
        assert_ne!(stamp_of(root), first, "an empty file is not an absent one");
    }

    #[test]
    fn fields_do_not_run_into_each_other() {
        let of = |name, value| {
            let mut stamp = Stamp::new();
            stamp.text(name, value);
            stamp.finish()
        };
        assert_ne!(of("ab", "c"), of("a", "bc"));
    }
}
