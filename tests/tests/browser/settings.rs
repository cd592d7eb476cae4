//! Settings of the panel, and of the page itself.

use crate::browser::Device;
use crate::page::{PATIENCE, Page};
use crate::run::{logged_in, nothing_wrong, with_panel};
use anyhow::{Result, ensure};
use shared::testid;
use tests::rig::eventually;

fn field(name: &str) -> String {
    testid::with(testid::SETTINGS_FIELD, name)
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_checked_saved_and_still_there() {
    with_panel("settings", Device::Desk, async |page, panel| {
        let api = panel.api().await?;
        let before = api.settings().await?.settings;
        logged_in(page, panel.password()).await?;
        page.click("nav:settings").await?;
        ensure!(
            page.value(&field("confirmations")).await? == before.confirmations.to_string(),
            "another number"
        );
        page.fill(&field("confirmations"), "0").await?;
        page.fill(&field("probeTarget"), "no port").await?;
        page.click(testid::SETTINGS_SAVE).await?;
        for name in ["confirmations", "probeTarget"] {
            page.shows(&testid::with(testid::FIELD_ERROR, name)).await?;
        }
        page.screenshot("zh-light-settings-wrong").await?;
        ensure!(api.settings().await?.settings == before, "saved although it is wrong");

        page.fill(&field("confirmations"), "5").await?;
        page.fill(&field("probeTarget"), "probe.example:8443").await?;
        page.click(testid::SETTINGS_SAVE).await?;
        eventually("the settings are saved", PATIENCE, async || {
            let now = api.settings().await?.settings;
            ensure!(now.confirmations == 5 && now.probe_target == "probe.example:8443", "{now:?}");
            Ok(())
        })
        .await?;
        page.reload().await?;
        ensure!(page.value(&field("confirmations")).await? == "5", "not there after a reload");
        let mut expected = before;
        expected.confirmations = 5;
        expected.probe_target = "probe.example:8443".to_owned();
        ensure!(api.settings().await?.settings == expected, "something else was changed too");
        nothing_wrong(page).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn language_and_theme_are_chosen_and_remembered() {
    with_panel("looks-chosen", Device::Desk, async |page, panel| {
        logged_in(page, panel.password()).await?;
        page.says("nav:tunnels", "隧道").await?;
        page.click("nav:settings").await?;
        let light = background(page).await?;
        page.click("language:en").await?;
        page.says("nav:tunnels", "Tunnels").await?;
        page.click("theme:dark").await?;
        let dark = background(page).await?;
        ensure!(light > 0.8 && dark < 0.2, "brightness {light} in light, {dark} in dark");

        page.reload().await?;
        page.says("nav:tunnels", "Tunnels").await?;
        ensure!(page.script("return document.documentElement.lang").await? == "en", "another lang");
        ensure!(background(page).await? < 0.2, "not dark any more");
        page.screenshot("en-dark-settings-chosen").await?;
        page.click("theme:light").await?;
        page.click("language:zh-CN").await?;
        page.says("nav:tunnels", "隧道").await?;
        ensure!(background(page).await? > 0.8, "not light again");
        nothing_wrong(page).await
    })
    .await;
}

/// How bright the page's background is, 0 to 1.
async fn background(page: &Page) -> Result<f64> {
    let drawn = "
        const canvas = document.createElement('canvas').getContext('2d');
        canvas.fillStyle = getComputedStyle(document.body).backgroundColor;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
        return (r + g + b) / 765;";
    let brightness = page.script(drawn).await?;
    brightness.as_f64().ok_or_else(|| anyhow::anyhow!("a brightness of {brightness}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_password_is_changed_on_the_page() {
    with_panel("password", Device::Desk, async |page, panel| {
        const NEW: &str = "quite another password";
        logged_in(page, panel.password()).await?;
        page.open("/settings").await?;
        page.fill("password-field:currentPassword", panel.password()).await?;
        page.fill("password-field:newPassword", NEW).await?;
        page.fill("password-field:repeat", "a typing error").await?;
        page.click(testid::PASSWORD_SAVE).await?;
        page.shows("field-error:repeat").await?;
        page.fill("password-field:repeat", NEW).await?;
        page.click(testid::PASSWORD_SAVE).await?;
        page.says(testid::TOAST, "密码已修改").await?;
        nothing_wrong(page).await?;

        page.click(testid::LOGOUT).await?;
        page.log_in(NEW).await?;
        Ok(())
    })
    .await;
}
