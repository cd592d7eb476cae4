//! The npm package `@exitpilot/shared` in a browser: its example in plain HTML, and the vectors that pass natively and in Node.js.

use crate::browser::Device;
use crate::dashboard_site;
use crate::page::{PATIENCE, Page};
use crate::run::{has_browser, in_browser};
use anyhow::{Result, ensure};
use std::fs;
use std::path::Path;
use tests::rig::eventually;

/// What the package asks of a page, and scripts in the examples' own HTML.
const POLICY: &str = "default-src 'self'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'";

#[tokio::test(flavor = "multi_thread")]
async fn the_npm_package_decides_in_a_browser_as_everywhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let package = root.join("target/dist/npm/shared");
    if !package.join("package.json").is_file() {
        println!("SKIPPED: the npm package is not built, run cargo xtask packages");
        return;
    }
    if !has_browser() {
        return;
    }
    let site = tempfile::tempdir().unwrap();
    copy(&package, site.path()).unwrap();
    copy(&root.join("shared/tests/vectors"), &site.path().join("vectors")).unwrap();
    for name in ["vectors.mjs", "vectors_in_browser.html"] {
        fs::copy(root.join("tests/tests/package").join(name), site.path().join(name)).unwrap();
    }
    let address = dashboard_site::serve(site.path().to_owned(), POLICY.to_owned()).await.unwrap();
    in_browser("package", Device::Desk, address, async |page| {
        page.open("/examples/index.html").await?;
        says(page, "read", "urltest(url=https://www.gstatic.com/generate_204, interval=3m, tolerance=20ms")
            .await?;
        page.script(
            "const input = document.getElementById('policy');
            input.value = 'urltest(tolerance=soon)';
            input.dispatchEvent(new Event('input'));",
        )
        .await?;
        says(page, "read", "strategy_syntax: at character 19").await?;
        says(page, "strategies", "主备").await?;

        page.open("/vectors_in_browser.html").await?;
        says(page, "outcome", " vectors").await?;
        // A page of its own has no icon here.
        page.only_complains_about("favicon.ico").await
    })
    .await;
}

/// Waits until an element holds the text.
pub(crate) async fn says(page: &Page, id: &str, text: &str) -> Result<()> {
    eventually(&format!("{id} says {text}"), PATIENCE, async || {
        let now = page.script(&format!("return document.getElementById('{id}')?.textContent ?? ''")).await?;
        ensure!(now.as_str().is_some_and(|now| now.contains(text)), "it says {now}");
        Ok(())
    })
    .await
}

pub(crate) fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let copied = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &copied)?;
        } else {
            fs::copy(entry.path(), copied)?;
        }
    }
    Ok(())
}
