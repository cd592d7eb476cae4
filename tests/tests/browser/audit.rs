//! What was changed, in words, and found again; what needs somebody.

use crate::browser::Device;
use crate::page::{PATIENCE, Page};
use crate::run::{logged_in, nothing_wrong, with_panel};
use anyhow::{Result, ensure};
use shared::api::NodeInput;
use shared::testid;
use tests::rig::eventually;

async fn says_all(page: &Page, texts: &[&str]) -> Result<()> {
    eventually("the log says it", PATIENCE, async || {
        let text = page.script("return document.querySelector('main').innerText").await?;
        let text = text.as_str().unwrap_or_default();
        for expected in texts {
            ensure!(text.contains(expected), "{expected} is not in: {text}");
        }
        Ok(())
    })
    .await
}

/// Rows of the log that are seen.
async fn has_rows(page: &Page, count: usize) -> Result<()> {
    eventually("the log is searched", PATIENCE, async || {
        let rows = page.all_of(testid::AUDIT_ROW).await?.len();
        ensure!(rows == count, "{rows} rows");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_told_in_words_and_found_by_user_and_object() {
    with_panel("audit", Device::Desk, async |page, panel| {
        let api = panel.api().await?;
        for (name, address) in [("tokyo", "192.0.2.1"), ("seoul", "192.0.2.2")] {
            let node = NodeInput {
                name: name.to_owned(),
                server_ip: address.to_owned(),
                port_range: "10000-60000".to_owned(),
                ..NodeInput::default()
            };
            api.create_node(&node).await?;
        }
        logged_in(page, panel.password()).await?;
        // Their agents were never installed.
        page.says(testid::ATTENTION, "tokyo 从未连接").await?;
        page.says(testid::ATTENTION, "seoul 从未连接").await?;
        page.open("/settings").await?;
        page.fill(&testid::with(testid::SETTINGS_FIELD, "cooldownMs"), "31000").await?;
        page.click(testid::SETTINGS_SAVE).await?;

        eventually("the change is stored", PATIENCE, async || {
            ensure!(api.settings().await?.settings.cooldown_ms == 31_000, "not yet");
            Ok(())
        })
        .await?;
        page.open("/audit").await?;
        has_rows(page, 3).await?;
        says_all(page, &["创建节点", "tokyo (1)", "修改设置", "切换冷却: 30000 → 31000"]).await?;
        page.fill(testid::AUDIT_SEARCH, "Tokyo").await?;
        has_rows(page, 1).await?;
        says_all(page, &["tokyo (1)"]).await?;
        page.fill(testid::AUDIT_SEARCH, "nobody").await?;
        has_rows(page, 0).await?;
        page.shows(testid::EMPTY).await?;
        page.fill(testid::AUDIT_SEARCH, "admin").await?;
        has_rows(page, 3).await?;

        page.open("/settings").await?;
        page.click("language:en").await?;
        page.open("/audit").await?;
        says_all(page, &["Node created", "Settings changed", "Cooldown: 30000 → 31000"]).await?;
        nothing_wrong(page).await
    })
    .await;
}
