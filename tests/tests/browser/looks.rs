//! Every screen in every look: nothing to complain about, nothing that does not fit.

use crate::browser::Device;
use crate::monitor::{lay_links, options};
use crate::page::Page;
use crate::run::{in_browser, lab, logged_in, nothing_wrong};
use anyhow::{Result, ensure};
use shared::api::Tunnel;
use shared::testid;
use std::time::Duration;
use tests::rig::Stage;

/// For the first decision.
const DECISION: Duration = Duration::from_secs(60);

/// A screen: its address, its name in file names, and what shows that it is there.
pub(crate) type Screen = (String, &'static str, String);

/// All screens that an address leads to.
pub(crate) fn screens(stage: &Stage, tunnel: &Tunnel) -> Result<Vec<Screen>> {
    let id = tunnel.id;
    let owner = testid::with(testid::OWNER_APPLIED, stage.node("entry-1")?);
    let row = testid::with(testid::NODE_ROW, stage.node("exit-c")?);
    Ok(vec![
        ("/".to_owned(), "overview", testid::PAGE_TITLE.to_owned()),
        ("/tunnels".to_owned(), "tunnels", testid::with(testid::TUNNEL_CHIP, id)),
        ("/tunnels/new".to_owned(), "editor-new", testid::EDITOR.to_owned()),
        (format!("/tunnels/{id}/edit"), "editor", testid::EDITOR.to_owned()),
        (format!("/tunnels/{id}/monitor"), "monitor", owner),
        (format!("/tunnels/{id}/what-if"), "what-if", testid::WHAT_IF_RESULT.to_owned()),
        ("/forwards".to_owned(), "forwards", testid::FORWARD_ROW.to_owned()),
        ("/nodes".to_owned(), "nodes", row),
        ("/settings".to_owned(), "settings", testid::SETTINGS_SAVE.to_owned()),
        ("/audit".to_owned(), "audit", testid::AUDIT_ROW.to_owned()),
        ("/no/such/screen".to_owned(), "not-found", testid::EMPTY.to_owned()),
    ])
}

/// Waits for a screen. Some marks are those of one of several; then any of them will do.
pub(crate) async fn is_there(page: &Page, mark: &str) -> Result<()> {
    if mark.ends_with(':') {
        return tests::rig::eventually(mark, crate::page::PATIENCE, async || {
            ensure!(!page.all_of(mark).await?.is_empty(), "it is not there");
            Ok(())
        })
        .await;
    }
    page.shows(mark).await.map(|_| ())
}

/// Twice through all screens, the first time with pictures.
async fn walk(page: &Page, look: &str, screens: &[Screen]) -> Result<()> {
    for round in 0..2 {
        for (path, name, mark) in screens {
            page.open(path).await?;
            is_there(page, mark).await?;
            page.is_still().await?;
            ensure!(page.all(testid::LOAD_ERROR).await?.is_empty(), "{path}: something could not be loaded");
            let wide = page.script("return [document.documentElement.scrollWidth, innerWidth]").await?;
            ensure!(wide[0].as_i64() <= wide[1].as_i64(), "{path}: {wide} does not fit");
            let nameless = nameless(page).await?;
            ensure!(nameless.is_empty(), "{path}: without a name for screen readers: {nameless:#?}");
            if round == 0 {
                page.screenshot(&format!("{look}-{name}")).await?;
            }
            nothing_wrong(page).await?;
        }
    }
    Ok(())
}

/// Controls that a screen reader could only call by their kind.
async fn nameless(page: &Page) -> Result<Vec<String>> {
    let found = page
        .script(
            "const named = (e) =>
                 e.getAttribute('aria-label') || e.getAttribute('title') || (e.labels && e.labels.length) ||
                 e.getAttribute('aria-labelledby') || (e.tagName !== 'INPUT' && e.tagName !== 'SELECT' &&
                 e.tagName !== 'TEXTAREA' && e.textContent.trim());
             return [...document.querySelectorAll('button, a, input, select, textarea, summary')]
                 .filter((e) => e.offsetParent !== null && !e.closest('[aria-hidden=true]') && !named(e))
                 .map((e) => e.outerHTML.slice(0, 200));",
        )
        .await?;
    Ok(serde_json::from_value(found)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_screen_is_whole_in_every_look() {
    let Some(lab) = lab(options("looks")).await else { return };
    lay_links(&lab.stage).unwrap();
    let stage = &lab.stage;
    let input = stage.best("hk-best", &["entry-1"], &[], &["exit-a", "exit-b", "exit-c"]).unwrap();
    let (tunnel, _, _) = stage.open(&input).await.unwrap();
    stage.switched(tunnel.id, "exit-a", DECISION).await.unwrap();
    let screens = screens(stage, &tunnel).unwrap();
    let password = stage.panel.password();

    in_browser("looks-zh-light", Device::Desk, lab.address, async |page| {
        logged_in(page, password).await?;
        walk(page, "zh-light", &screens).await?;
        dialogs(page, "zh-light", stage, &tunnel).await
    })
    .await;
    in_browser("looks-en-dark", Device::Desk, lab.address, async |page| {
        page.open("/").await?;
        page.click("language:en").await?;
        page.screenshot("en-light-login").await?;
        logged_in(page, password).await?;
        page.open("/settings").await?;
        page.click("theme:dark").await?;
        walk(page, "en-dark", &screens).await?;
        dialogs(page, "en-dark", stage, &tunnel).await
    })
    .await;
    in_browser("looks-narrow", Device::Phone, lab.address, async |page| {
        logged_in(page, password).await?;
        walk(page, "narrow", &screens).await?;
        page.open("/tunnels").await?;
        page.click(testid::NAV_TOGGLE).await?;
        page.shows("nav:nodes").await?;
        page.screenshot("narrow-menu").await?;
        page.click("nav:nodes").await?;
        page.comes_to("/nodes").await?;
        dialogs(page, "narrow", stage, &tunnel).await
    })
    .await;
    lab.stage.close().await;
}

/// The dialogs that no address leads to.
async fn dialogs(page: &Page, look: &str, stage: &Stage, tunnel: &Tunnel) -> Result<()> {
    let exit = stage.node("exit-b")?;
    page.open("/nodes").await?;
    for (open, shown, name) in [
        (testid::with(testid::NODE_EDIT, exit), testid::NODE_SAVE, "dialog-node"),
        (testid::with(testid::NODE_INSTALL, exit), testid::INSTALL_COMMAND, "dialog-install"),
        (testid::with(testid::NODE_DELETE, exit), testid::DELETE_PREVIEW, "dialog-node-delete"),
    ] {
        dialog(page, &open, shown, &format!("{look}-{name}")).await?;
    }
    page.open("/tunnels").await?;
    let delete = testid::with(testid::TUNNEL_DELETE, tunnel.id);
    dialog(page, &delete, testid::DELETE_PREVIEW, &format!("{look}-dialog-tunnel-delete")).await?;
    page.open(&format!("/tunnels/{}/monitor", tunnel.id)).await?;
    dialog(page, testid::PIN_OPEN, testid::PIN_SAVE, &format!("{look}-dialog-pin")).await?;
    page.open("/forwards").await?;
    dialog(page, testid::FORWARD_NEW, testid::FORWARD_SAVE, &format!("{look}-dialog-forward")).await?;
    nothing_wrong(page).await
}

async fn dialog(page: &Page, open: &str, shown: &str, name: &str) -> Result<()> {
    page.click(open).await?;
    page.shows(shown).await?;
    page.is_still().await?;
    page.screenshot(name).await?;
    page.click(testid::CANCEL).await?;
    page.hides(shown).await
}
