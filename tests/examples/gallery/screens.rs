//! From screen to screen, and through the dialogs that no address leads to.

use super::Camera;
use super::scene::Scene;
use anyhow::{Result, ensure};
use shared::testid;
use std::time::Duration;

/// The last item of a diagnosis has come.
const DIAGNOSIS: Duration = Duration::from_secs(60);

/// All pictures in one look.
pub(crate) async fn all(camera: &Camera<'_>, scene: &Scene) -> Result<()> {
    let page = camera.page;
    page.open("/").await?;
    page.click(&testid::with(testid::LANGUAGE, camera.look.language)).await?;
    page.shows(testid::LOGIN_SUBMIT).await?;
    // Where nobody is logged in there is no switch for it.
    page.script(&format!("localStorage.setItem('exitpilot.theme', '{}')", camera.look.theme)).await?;
    page.reload().await?;
    page.shows(testid::LOGIN_SUBMIT).await?;
    if !camera.is_phone() {
        camera.take("login").await?;
    }
    page.log_in(scene.stage.panel.password()).await?;
    addresses(camera, scene).await?;
    dialogs(camera, scene).await
}

/// Every screen that has an address of its own.
async fn addresses(camera: &Camera<'_>, scene: &Scene) -> Result<()> {
    let page = camera.page;
    let id = scene.tunnel.id;
    let owner = testid::with(testid::OWNER_APPLIED, scene.owner()?);
    let screens = [
        ("/".to_owned(), "overview", testid::ATTENTION.to_owned()),
        ("/tunnels".to_owned(), "tunnels", testid::with(testid::TUNNEL_CHIP, id)),
        (format!("/tunnels/{id}/edit"), "editor", testid::EDITOR.to_owned()),
        (format!("/tunnels/{id}/monitor"), "monitor", owner),
        (format!("/tunnels/{id}/what-if"), "what-if", testid::WHAT_IF_TABLE.to_owned()),
        ("/forwards".to_owned(), "forwards", testid::FORWARD_ROW.to_owned()),
        ("/nodes".to_owned(), "nodes", testid::with(testid::NODE_ROW, scene.unused)),
        ("/settings".to_owned(), "settings", testid::SETTINGS_SAVE.to_owned()),
        ("/audit".to_owned(), "audit", testid::AUDIT_SEARCH.to_owned()),
    ];
    for (path, name, mark) in screens {
        // Five of them say how it fits.
        if camera.is_phone() && !["overview", "tunnels", "monitor", "nodes", "what-if"].contains(&name) {
            continue;
        }
        page.open(&path).await?;
        if mark.ends_with(':') {
            tests::rig::eventually(&mark, crate::page::PATIENCE, async || {
                ensure!(!page.all_of(&mark).await?.is_empty(), "it is not there");
                Ok(())
            })
            .await?;
        } else {
            page.shows(&mark).await?;
        }
        camera.take(name).await?;
        below(camera, name).await?;
    }
    Ok(())
}

/// What a screen shows further down.
async fn below(camera: &Camera<'_>, name: &str) -> Result<()> {
    let long: &[_] = if camera.is_phone() { &["what-if"] } else { &["monitor", "settings", "what-if"] };
    if !long.contains(&name) {
        return Ok(());
    }
    camera.page.script("window.scrollTo(0, document.documentElement.scrollHeight)").await?;
    camera.page.rests().await?;
    camera.take(&format!("{name}-below")).await
}

async fn dialogs(camera: &Camera<'_>, scene: &Scene) -> Result<()> {
    if camera.is_phone() {
        return Ok(());
    }
    let page = camera.page;
    let entry = scene.owner()?;
    page.open("/nodes").await?;
    let unused = scene.unused;
    dialog(camera, &testid::with(testid::NODE_INSTALL, unused), testid::INSTALL_COMMAND, "install").await?;
    dialog(camera, &testid::with(testid::NODE_DELETE, entry), testid::DELETE_PREVIEW, "node-delete").await?;
    page.open("/forwards").await?;
    dialog(camera, testid::FORWARD_NEW, testid::FORWARD_SAVE, "forward").await?;
    page.open("/tunnels").await?;
    page.click(&testid::with(testid::TUNNEL_DIAGNOSE, scene.tunnel.id)).await?;
    tests::rig::eventually("the diagnosis ends", DIAGNOSIS, async || {
        let items = page.all_of("diagnose-item:").await?;
        ensure!(!items.is_empty(), "it has not begun");
        let waiting = page.script("return document.querySelectorAll('[data-state=waiting]').length").await?;
        ensure!(waiting == 0, "{waiting} items are under way");
        Ok(())
    })
    .await?;
    camera.take("diagnose").await
}

async fn dialog(camera: &Camera<'_>, open: &str, shown: &str, name: &str) -> Result<()> {
    camera.page.click(open).await?;
    camera.page.shows(shown).await?;
    camera.take(name).await?;
    camera.page.click(testid::CANCEL).await?;
    camera.page.hides(shown).await
}
