//! React and a bundler, for a page of somebody who uses our npm packages with them.

use super::npm::{Package, Set};
use super::{Found, Setup};
use crate::cache::Cache;
use anyhow::Result;
use std::path::PathBuf;

#[cfg(target_arch = "aarch64")]
const BUNDLER: Package = (
    "@esbuild/linux-arm64",
    "0.25.9",
    "sha512-BlB7bIcLT3G26urh5Dmse7fiLmLXnRlopw4s8DalgZ8ef79Jj4aUcYbk90g8iCa2467HX8SAIidbL7gsqXHdRw==",
);
#[cfg(not(target_arch = "aarch64"))]
const BUNDLER: Package = (
    "@esbuild/linux-x64",
    "0.25.9",
    "sha512-iSwByxzRe48YVkmpbgoxVzn76BXjlYFXC7NvLYq+b+kDjyyk30J0JY47DIn8z1MO3K0oSl9fZoRmZPQI4Hklzg==",
);

pub(super) const SET: Set = Set {
    name: "react",
    version: "19.1.1",
    packages: &[
        (
            "react",
            "19.1.1",
            "sha512-w8nqGImo45dmMIfljjMwOGtbmC/mk4CMYhWIicdSflH91J9TyCyczcPFXJzrZ/ZXcgGRFeP6BU0BEJTw6tZdfQ==",
        ),
        (
            "react-dom",
            "19.1.1",
            "sha512-Dlq/5LAZgF0Gaz6yiqZCf6VCcZs1ghAJyrsu84Q/GT0gV+mCxbfmKNoGRKBYMJ8IEdGPqu49YWXD02GCknEDkw==",
        ),
        (
            "scheduler",
            "0.26.0",
            "sha512-NlHwttCI/l5gCPR3D1nNXtWABUmBwvZpEQiD4IXSbIDq8BzLIK/7Ir5gTFSGZDUu37K5cMNp0hFtzO38sC7gWA==",
        ),
        BUNDLER,
    ],
    needs: &[("react-dom", "scheduler", "^0.26.0")],
    proof: "react-dom/client.js",
    without: "our npm packages are not tried in React",
};

/// The folder whose `node_modules` they are in.
pub(crate) fn folder(cache: &Cache) -> PathBuf {
    SET.folder(cache)
}

pub(super) fn install(setup: &Setup<'_>) -> Result<Found> {
    SET.install(setup)
}
