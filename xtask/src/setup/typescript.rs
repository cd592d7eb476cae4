//! TypeScript, and the types of React, for projects that use our npm packages.

use super::npm::Set;
use super::{Found, Setup};
use crate::cache::Cache;
use anyhow::Result;
use std::path::PathBuf;

pub(super) const SET: Set = Set {
    name: "typescript",
    version: "5.9.3",
    packages: &[
        (
            "typescript",
            "5.9.3",
            "sha512-jl1vZzPDinLr9eUt3J/t7V6FgNEw9QjvBPdysz9KfQDD41fQrC2Y4vKQdiaUpFT4bXlb1RHhLpp8wtm6M5TgSw==",
        ),
        (
            "@types/react",
            "19.1.13",
            "sha512-hHkbU/eoO3EG5/MZkuFSKmYqPbSVk5byPFa3e7y/8TybHiLMACgI8seVYlicwk7H5K/rI2px9xrQp/C+AUDTiQ==",
        ),
        (
            "csstype",
            "3.1.3",
            "sha512-M1uQkMl8rQK/szD0LNhtqxIPLpimGm8sOBwU7lLnCpSbTyY3yeU1Vc7l4KT5zT4s/yOxHH5O7tIuuLOCnLADRw==",
        ),
    ],
    needs: &[("@types/react", "csstype", "^3.0.2")],
    proof: "typescript/bin/tsc",
    without: "projects in TypeScript are not compiled",
};

/// The folder whose `node_modules` they are in.
pub(crate) fn folder(cache: &Cache) -> PathBuf {
    SET.folder(cache)
}

pub(super) fn install(setup: &Setup<'_>) -> Result<Found> {
    SET.install(setup)
}
