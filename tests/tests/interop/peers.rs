//! Where the other products are.

use std::env;
use std::path::PathBuf;

/// GOST version 3.
pub(crate) const GOST: &str = "gost";
/// sing-box.
pub(crate) const SING_BOX: &str = "sing-box";
/// schemathesis, which reads OpenAPI documents and asks.
pub(crate) const SCHEMATHESIS: &str = "schemathesis";
/// curl.
pub(crate) const CURL: &str = "curl";

/// Where a peer's program is: in `EXITPILOT_PEERS_DIR`, else in the folder that `cargo xtask setup --peers` fills, else
/// on the `PATH`. `None` when it is nowhere; then the skip is already announced and the test returns.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")));
    let folders = env::var_os("EXITPILOT_PEERS_DIR").map(PathBuf::from).into_iter();
    let folders = folders.chain(cache.map(|cache| cache.join("exitpilot/peers/bin")));
    let path = env::var_os("PATH").unwrap_or_default();
    let found =
        folders.chain(env::split_paths(&path)).map(|folder| folder.join(name)).find(|it| it.is_file());
    if found.is_none() {
        println!("SKIPPED: {name} not installed, run cargo xtask setup --peers");
    }
    found
}
