//! Screens whose code is loaded when they are first opened, by the example of the tunnel editor.

use crate::browser::Device;
use crate::page::Page;
use crate::run::{logged_in, nothing_wrong, with_panel};
use anyhow::{Result, ensure};
use shared::api::NodeInput;
use shared::testid;

/// The files of such screens that were asked for since the page was loaded, and how many bytes came over the wire.
async fn asked_for(page: &Page) -> Result<Vec<(String, u64)>> {
    let script = "return performance.getEntriesByType('resource')
        .filter((e) => new URL(e.name).pathname.startsWith('/modules/'))
        .map((e) => [e.name, e.transferSize])";
    Ok(serde_json::from_value(page.script(script).await?)?)
}

async fn go_to_editor(page: &Page) -> Result<()> {
    page.click("nav:tunnels").await?;
    page.click(testid::TUNNEL_NEW).await?;
    page.comes_to("/tunnels/new").await
}

#[tokio::test(flavor = "multi_thread")]
async fn code_comes_with_its_screen_and_stays() {
    with_panel("on-demand", Device::Desk, async |page, panel| {
        logged_in(page, panel.password()).await?;
        page.click("nav:tunnels").await?;
        page.shows(testid::EMPTY).await?;
        ensure!(asked_for(page).await?.is_empty(), "loaded before it is needed: {:?}", asked_for(page).await?);

        page.click(testid::TUNNEL_NEW).await?;
        page.shows(testid::EDITOR).await?;
        let first = asked_for(page).await?;
        ensure!(first.len() == 2 && first.iter().all(|(_, bytes)| *bytes > 0), "a script and its code: {first:?}");
        let caching = page
            .answer(&format!(
                "fetch('{}', {{ method: 'HEAD' }}).then((it) => arguments[0](it.headers.get('cache-control')))",
                first[0].0
            ))
            .await?;
        ensure!(caching == "public, max-age=31536000, immutable", "{caching}");

        // Away and back: the code is there, so nobody waits for it.
        page.click(testid::EDITOR_CANCEL).await?;
        page.comes_to("/tunnels").await?;
        page.hides(testid::EDITOR).await?;
        let before = asked_for(page).await?.len();
        page.script(
            "window.waited = 0;
            const look = () => {
                if (location.pathname === '/tunnels/new' && document.querySelector('main > .loading')) waited++;
                requestAnimationFrame(look);
            };
            look();",
        )
        .await?;
        go_to_editor(page).await?;
        page.shows(testid::EDITOR).await?;
        ensure!(asked_for(page).await?.len() == before, "loaded a second time");
        ensure!(page.script("return waited").await? == 0, "it was waited for, though it was there");

        page.reload().await?;
        page.shows(testid::EDITOR).await?;
        let again = asked_for(page).await?;
        ensure!(again.iter().all(|(_, bytes)| *bytes == 0), "not kept by the browser: {again:?}");
        nothing_wrong(page).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panel_that_is_away_or_has_other_code_is_told() {
    with_panel("on-demand-away", Device::Desk, async |page, panel| {
        logged_in(page, panel.password()).await?;
        page.click("nav:tunnels").await?;
        page.shows(testid::EMPTY).await?;
        page.mark().await?;
        panel.kill().await?;
        page.click(testid::TUNNEL_NEW).await?;
        page.shows(testid::LOAD_ERROR).await?;
        page.screenshot("zh-light-screen-unreachable").await?;
        panel.start_again().await?;
        page.press(&format!("//*[@data-testid='{}']//button", testid::LOAD_ERROR)).await?;
        page.shows(testid::EDITOR).await?;
        page.was_not_reloaded().await?;
        page.complaints().await?;

        // Another panel is at this address now, and its files have other names.
        page.open("/tunnels").await?;
        page.shows(testid::EMPTY).await?;
        page.script(
            "document.querySelector('meta[name=\"exitpilot-modules\"]').content =
                 'tunnel-editor=tunnel-editor-0123456789abcdef.js'",
        )
        .await?;
        page.click(testid::TUNNEL_NEW).await?;
        page.shows(testid::SCREEN_GONE).await?;
        page.screenshot("zh-light-screen-gone").await?;
        page.only_complains_about("404").await?;
        page.click(testid::SCREEN_RELOAD).await?;
        page.shows(testid::EDITOR).await?;
        nothing_wrong(page).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_ends_in_the_editor_loses_nothing() {
    with_panel("on-demand-session", Device::Desk, async |page, panel| {
        let api = panel.api().await?;
        let mut nodes = Vec::new();
        for name in ["entry-1", "exit-a", "exit-b"] {
            let node = NodeInput { name: name.into(), server_ip: "192.0.2.1".into(), ..NodeInput::default() };
            nodes.push(api.create_node(&node).await?.id.to_string());
        }
        logged_in(page, panel.password()).await?;
        go_to_editor(page).await?;
        page.fill(testid::EDITOR_NAME, "kept").await?;
        page.choose("editor-add-node:entry", &nodes[0]).await?;
        for exit in &nodes[1..] {
            page.choose("editor-add-node:exit", exit).await?;
        }
        page.answer("fetch('/api/v1/auth/logout', { method: 'POST' }).then((it) => arguments[0](it.status))")
            .await?;
        // The event stream ends with the session, so the page knows before anything is saved.
        page.shows(testid::SESSION_DIALOG).await?;
        page.fill(testid::LOGIN_PASSWORD, panel.password()).await?;
        page.click(testid::LOGIN_SUBMIT).await?;
        page.hides(testid::SESSION_DIALOG).await?;
        page.only_complains_about("401").await?;
        ensure!(page.value(testid::EDITOR_NAME).await? == "kept", "the name was lost");

        // Nodes that are made meanwhile are on offer.
        let late = NodeInput { name: "late".into(), server_ip: "192.0.2.1".into(), ..NodeInput::default() };
        let late = api.create_node(&late).await?.id.to_string();
        page.choose("editor-add-node:exit", &late).await?;
        page.click(testid::EDITOR_SAVE).await?;
        page.comes_to("/tunnels").await?;
        page.shows(testid::TOAST).await?;
        let tunnels = api.tunnels().await?;
        ensure!(tunnels.len() == 1 && tunnels[0].name == "kept", "{tunnels:?}");
        nothing_wrong(page).await
    })
    .await;
}
