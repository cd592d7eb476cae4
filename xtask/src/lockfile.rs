//! Versions that Cargo.lock has settled on.

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

#[derive(Deserialize)]
struct Lockfile {
    #[serde(default)]
    package: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
}

/// The one locked version of the package `name`.
///
/// Fails when the package is not locked, or locked in several versions (then "the" version means nothing).
pub(crate) fn locked_version(lock: &str, name: &str) -> Result<String> {
    let lock: Lockfile = toml::from_str(lock).context("Cargo.lock cannot be read")?;
    let mut versions = lock.package.into_iter().filter(|package| package.name == name);
    let Some(first) = versions.next() else { bail!("Cargo.lock has no package {name}") };
    if let Some(second) = versions.next() {
        bail!("Cargo.lock has {name} twice: {} and {}", first.version, second.version);
    }
    Ok(first.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = r#"
version = 4
[[package]]
name = "bitflags"
version = "1.3.2"
[[package]]
name = "bitflags"
version = "2.9.0"
[[package]]
name = "wasm-bindgen"
version = "0.2.130"
dependencies = ["wasm-bindgen-macro"]
[[package]]
name = "wasm-bindgen-macro"
version = "0.2.99"
"#;

    #[test]
    fn finds_the_exact_name() {
        assert_eq!(locked_version(LOCK, "wasm-bindgen").unwrap(), "0.2.130");
    }

    #[test]
    fn refuses_what_is_not_one_version() {
        assert_eq!(locked_version(LOCK, "tokio").unwrap_err().to_string(), "Cargo.lock has no package tokio");
        assert_eq!(
            locked_version(LOCK, "bitflags").unwrap_err().to_string(),
            "Cargo.lock has bitflags twice: 1.3.2 and 2.9.0"
        );
        assert!(locked_version("[[package", "x").is_err());
    }
}
