//! The page's files as a browser loads and keeps them, and what it refuses to run.

use crate::browser::Device;
use crate::page::Page;
use crate::run::{logged_in, nothing_wrong, with_panel};
use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use shared::testid;

/// A file that the page consists of, as the browser loaded it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Loaded {
    name: String,
    transferred: u64,
    encoded: u64,
    decoded: u64,
}

async fn loaded(page: &Page) -> Result<Vec<Loaded>> {
    let script = "return performance.getEntriesByType('resource')
        .filter((e) => /\\.(js|css|wasm|svg)$/.test(e.name))
        .map((e) => ({ name: e.name, transferred: e.transferSize, encoded: e.encodedBodySize, decoded: e.decodedBodySize }));";
    Ok(serde_json::from_value(page.script(script).await?)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn files_come_compressed_and_are_not_loaded_twice() {
    with_panel("assets", Device::Desk, async |page, panel| {
        logged_in(page, panel.password()).await?;
        let first = loaded(page).await?;
        let wasm = first.iter().find(|file| file.name.ends_with(".wasm")).context("no WebAssembly")?;
        ensure!(wasm.transferred > 0, "already there on the first visit: {wasm:?}");
        // A browser asks for Brotli only where it is safe, and it takes loopback for that.
        ensure!(wasm.encoded * 2 < wasm.decoded, "not compressed: {wasm:?}");

        page.open("/nodes").await?;
        page.shows(testid::EMPTY).await?;
        let again = loaded(page).await?;
        ensure!(again.iter().any(|file| file.name == wasm.name), "no WebAssembly: {again:?}");
        let twice: Vec<&Loaded> = again.iter().filter(|file| file.transferred > 0).collect();
        ensure!(twice.is_empty(), "loaded a second time: {twice:?}");
        nothing_wrong(page).await
    })
    .await;
}

/// Tries to run what is not the panel's, as somebody would who found a way to write into the page. Answers with what ran
/// and what the browser says that it has blocked.
const ATTACKS: &str = "
    const [done] = arguments;
    window.ran = [];
    const blocked = [];
    addEventListener('securitypolicyviolation', (e) => blocked.push(e.effectiveDirective + ' ' + e.blockedURI));
    const inline = document.createElement('script');
    inline.textContent = 'ran.push(\"inline\")';
    document.body.append(inline);
    const button = document.createElement('button');
    button.setAttribute('onclick', 'ran.push(\"attribute\")');
    document.body.append(button);
    button.click();
    const data = document.createElement('script');
    data.src = 'data:text/javascript,ran.push(\"data\")';
    document.body.append(data);
    const foreign = document.createElement('script');
    foreign.src = 'http://localhost:9/foreign.js';
    document.body.append(foreign);
    fetch('http://localhost:9/told').then(() => ran.push('fetch'), () => {});
    // From a task of the page's own: what the driver runs is not held to the policy.
    setTimeout(() => {
        try { (0, eval)('ran.push(\"eval\")'); } catch {}
        let calls = 0;
        const look = () => {
            const all = ['script-src-elem inline', 'script-src-attr inline', 'script-src-elem data',
                         'script-src-elem http://localhost:9', 'connect-src http://localhost:9', 'script-src eval']
                .every((wanted) => blocked.some((it) => it.startsWith(wanted)));
            if (all || ++calls > 100) done([window.ran, blocked]); else setTimeout(look, 50);
        };
        look();
    });";

#[tokio::test(flavor = "multi_thread")]
async fn nothing_runs_that_is_not_the_panels() {
    with_panel("policy", Device::Desk, async |page, panel| {
        logged_in(page, panel.password()).await?;
        let found = page.answer(ATTACKS).await?;
        let (ran, blocked): (Vec<String>, Vec<String>) = serde_json::from_value(found)?;
        ensure!(ran.is_empty(), "{ran:?} ran");
        for wanted in [
            "script-src-elem inline",
            "script-src-attr inline",
            "script-src-elem data",
            "script-src-elem http://localhost:9",
            "connect-src http://localhost:9",
            "script-src eval",
        ] {
            ensure!(blocked.iter().any(|it| it.starts_with(wanted)), "no {wanted} among {blocked:?}");
        }
        page.only_complains_about("Content Security Policy").await?;
        // The page itself still works.
        page.click("nav:nodes").await?;
        page.shows(testid::EMPTY).await?;
        Ok(())
    })
    .await;
}
