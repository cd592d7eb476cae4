//! Strategies with options in the editor, and a person's choice on the monitor.

use crate::browser::Device;
use crate::monitor::options;
use crate::page::{PATIENCE, Page};
use crate::run::{in_browser, lab, logged_in, nothing_wrong};
use anyhow::{Context as _, Result, ensure};
use shared::ids::NodeId;
use shared::testid;

const SELECTOR: &str = "editor-strategy-option:exit:selector";

/// Waits until the entry's connections use this exit, and its row says so.
async fn used(page: &Page, owner: NodeId, exit: NodeId, why: &str) -> Result<()> {
    let line = testid::of(testid::GROUP_IN_USE, owner, "tcp4");
    page.has(&line, "data-node", &exit.to_string(), PATIENCE).await?;
    page.says(&line, why).await?;
    page.says(&testid::of(testid::GROUP_MEMBER, owner, exit), "TCP · UDP").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_chooses_sees_it_and_takes_it_back() {
    let Some(lab) = lab(options("choosing")).await else { return };
    let stage = &lab.stage;
    in_browser("choosing", Device::Desk, lab.address, async |page| {
        let [owner, a, b] = [stage.node("entry-1")?, stage.node("exit-a")?, stage.node("exit-b")?];
        logged_in(page, stage.panel.password()).await?;
        page.open("/tunnels/new").await?;
        page.fill(testid::EDITOR_NAME, "手动").await?;
        page.choose("editor-add-node:entry", &owner.to_string()).await?;
        for exit in [a, b] {
            page.choose("editor-add-node:exit", &exit.to_string()).await?;
        }
        page.click(&testid::with(testid::EDITOR_STRATEGY_MORE, "exit")).await?;
        page.click(SELECTOR).await?;
        // An option, first with a mistake.
        let text = testid::with(testid::EDITOR_STRATEGY_TEXT, "exit");
        page.fill(&text, "selector(default=exit-b, drain=soon)").await?;
        ensure!(page.is_on(SELECTOR).await?, "typing options chose another strategy");
        page.click(testid::EDITOR_SAVE).await?;
        page.says(&testid::with(testid::FIELD_ERROR, "exit.strategy"), "第 32 个字符处应为时长").await?;
        page.screenshot("zh-light-editor-strategy").await?;
        page.fill(&text, "selector(default=exit-b)").await?;
        page.click(testid::EDITOR_SAVE).await?;
        page.comes_to("/tunnels").await?;
        let tunnels = stage.panel.api().await?.tunnels().await?;
        let tunnel = tunnels.first().context("it was not saved")?;
        let exit = tunnel.exit.as_ref().context("no exits")?;
        ensure!(exit.strategy.as_str() == "selector(default=exit-b)", "{exit:?}");

        page.click(&testid::with(testid::TUNNEL_MONITOR, tunnel.id)).await?;
        used(page, owner, b, "默认").await?;
        page.click(&testid::of(testid::GROUP_USE, owner, a)).await?;
        page.shows(testid::CONFIRM).await?;
        page.screenshot("zh-light-choosing-asked").await?;
        page.click(testid::CONFIRM).await?;
        used(page, owner, a, "手动选择").await?;
        page.says(&testid::with(testid::GROUP_CHOICE, owner), "admin").await?;
        page.screenshot("zh-light-choosing").await?;
        page.open("/settings").await?;
        page.click("language:en").await?;
        page.click("theme:dark").await?;
        page.open(&format!("/tunnels/{}/monitor", tunnel.id)).await?;
        used(page, owner, a, "chosen by hand").await?;
        page.screenshot("en-dark-choosing").await?;

        page.click(&testid::with(testid::GROUP_CLEAR, owner)).await?;
        page.click(testid::CONFIRM).await?;
        used(page, owner, b, "the default").await?;
        page.hides(&testid::with(testid::GROUP_CHOICE, owner)).await?;
        page.open(&format!("/tunnels/{}/edit", tunnel.id)).await?;
        page.shows(&testid::with(testid::EDITOR_STRATEGY_TEXT, "exit")).await?;
        page.screenshot("en-dark-editor-strategy").await?;
        nothing_wrong(page).await
    })
    .await;
    lab.stage.close().await;
}
