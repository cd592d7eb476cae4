//! Getting in, and out.

use crate::browser::Device;
use crate::run::with_panel;
use anyhow::ensure;
use shared::testid;
use std::time::Duration;
use tests::rig::eventually;

/// More than the panel lets one user fail in a row.
const TOO_MANY: usize = 30;

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_told_and_the_right_one_leads_where_one_wanted_to_go() {
    with_panel("login", Device::Desk, async |page, panel| {
        page.open("/tunnels").await?;
        page.shows(testid::LOGIN_SUBMIT).await?;
        let language = page.script("return document.documentElement.lang").await?;
        ensure!(language == "zh-CN", "a Chinese browser gets {language}");
        page.screenshot("zh-light-login").await?;

        page.click(testid::LOGIN_SUBMIT).await?;
        page.says(testid::LOGIN_ERROR, "请输入用户名和密码").await?;
        page.fill(testid::LOGIN_USERNAME, "admin").await?;
        page.fill(testid::LOGIN_PASSWORD, "not the password").await?;
        page.click(testid::LOGIN_SUBMIT).await?;
        page.says(testid::LOGIN_ERROR, "用户名或密码不正确").await?;
        page.screenshot("zh-light-login-wrong").await?;
        ensure!(page.value(testid::LOGIN_USERNAME).await? == "admin", "the name was lost");
        // The browser writes every refused request into its log.
        page.only_complains_about("401").await?;

        page.log_in(panel.password()).await?;
        page.comes_to("/tunnels").await?;
        page.reload().await?;
        page.shows(testid::SHELL).await?;

        page.click(testid::LOGOUT).await?;
        page.shows(testid::LOGIN_SUBMIT).await?;
        page.reload().await?;
        page.shows(testid::LOGIN_SUBMIT).await?;
        page.only_complains_about("401").await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_is_slowed_down_and_the_page_says_so() {
    with_panel("throttled", Device::Desk, async |page, _| {
        page.open("/").await?;
        page.fill(testid::LOGIN_USERNAME, "admin").await?;
        for _ in 0..TOO_MANY {
            page.fill(testid::LOGIN_PASSWORD, "a guess").await?;
            page.click(testid::LOGIN_SUBMIT).await?;
            let limit = Duration::from_secs(30);
            let said = eventually("an answer", limit, async || {
                let busy = page.attribute(testid::LOGIN_SUBMIT, "aria-busy").await?;
                ensure!(busy.as_deref() != Some("true"), "not yet");
                page.text(testid::LOGIN_ERROR).await
            });
            if said.await?.contains("尝试次数过多") {
                page.screenshot("zh-light-login-throttled").await?;
                return Ok(());
            }
        }
        anyhow::bail!("{TOO_MANY} guesses without a pause")
    })
    .await;
}
