//! The monitor, while links get bad in the lab.

use crate::browser::Device;
use crate::page::{PATIENCE, Page};
use crate::run::{in_browser, lab, logged_in, nothing_wrong};
use anyhow::{Result, ensure};
use shared::api::SettingsInput;
use shared::ids::NodeId;
use shared::testid;
use std::time::Duration;
use tests::netlab::Impairment;
use tests::rig::{Stage, StageOptions};

/// One way from the entry to an exit: a, b and c differ by more than the smallest advantage.
const DELAYS_MS: [(&str, u64); 3] = [("exit-a", 10), ("exit-b", 30), ("exit-c", 60)];
/// What exit a's link gets: worse than all others.
const SLOW: Duration = Duration::from_millis(150);
/// For a decision: some rounds of a second each, on a busy machine.
const DECISION: Duration = Duration::from_secs(60);

/// A round per second, and a cooldown of two.
pub(crate) fn options(name: &str) -> StageOptions {
    let mut options = StageOptions::new(name);
    options.mids.clear();
    options.settings = SettingsInput {
        round_interval_ms: Some(1_000),
        cooldown_ms: Some(2_000),
        ping_timeout_ms: Some(1_000),
        ..SettingsInput::default()
    };
    options
}

/// Links of different length, from the entry to the exits.
pub(crate) fn lay_links(stage: &Stage) -> Result<()> {
    for (exit, ms) in DELAYS_MS {
        stage.lab.link("entry-1", exit).set_both(Impairment::delay(Duration::from_millis(ms)))?;
    }
    Ok(())
}

/// Waits until the owner's card has this exit in force, in all the places that say so.
async fn applied(page: &Page, owner: NodeId, exit: NodeId, name: &str) -> Result<()> {
    let id = testid::with(testid::OWNER_APPLIED, owner);
    page.has(&id, "data-exit", &exit.to_string(), DECISION).await?;
    page.says(&id, name).await?;
    let row = testid::of(testid::CANDIDATE_ROW, owner, exit);
    page.has(&row, "data-applied", "true", PATIENCE).await?;
    page.says(&testid::with(testid::APPLIED_MARK, owner), "当前出口").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_link_changes_the_exit_before_the_operators_eyes() {
    let Some(lab) = lab(options("browser")).await else { return };
    lay_links(&lab.stage).unwrap();
    let stage = &lab.stage;
    in_browser("monitor", Device::Desk, lab.address, async |page| {
        let input = stage.best("hk-best", &["entry-1"], &[], &["exit-a", "exit-b", "exit-c"])?;
        let (tunnel, _, _) = stage.open(&input).await?;
        let [owner, a, b, c] =
            [stage.node("entry-1")?, stage.node("exit-a")?, stage.node("exit-b")?, stage.node("exit-c")?];
        let chip = testid::with(testid::TUNNEL_CHIP, tunnel.id);

        logged_in(page, stage.panel.password()).await?;
        page.click("nav:tunnels").await?;
        page.says_within(&chip, "最优出口: exit-a", DECISION).await?;
        page.screenshot("zh-light-tunnels-best").await?;
        page.mark().await?;

        // The list stays open behind the monitor.
        page.new_tab().await?;
        page.open(&format!("/tunnels/{}/monitor", tunnel.id)).await?;
        applied(page, owner, a, "exit-a").await?;
        // In rank order: a, b, c, each with a score, and a reason in words.
        for (rank, exit) in [(1, a), (2, b), (3, c)] {
            let row = testid::of(testid::CANDIDATE_ROW, owner, exit);
            page.has(&row, "data-rank", &rank.to_string(), DECISION).await?;
            let score = page.text(&testid::of(testid::CANDIDATE_SCORE, owner, exit)).await?;
            ensure!(score.chars().any(|digit| digit.is_ascii_digit()), "a score of {score:?}");
        }
        let reason = testid::with(testid::OWNER_REASON, owner);
        page.has(&reason, "data-code", "current_is_best", DECISION).await?;
        let words = page.text(&reason).await?;
        ensure!(
            words.chars().any(|letter| ('\u{4e00}'..='\u{9fff}').contains(&letter)),
            "a reason of {words:?}"
        );
        page.screenshot("zh-light-monitor").await?;
        page.mark().await?;

        stage.lab.link("entry-1", "exit-a").set_both(Impairment::delay(SLOW))?;
        applied(page, owner, b, "exit-b").await?;
        page.has(&testid::of(testid::CANDIDATE_ROW, owner, b), "data-rank", "1", PATIENCE).await?;
        page.has(&testid::of(testid::CANDIDATE_ROW, owner, a), "data-rank", "3", PATIENCE).await?;
        page.says(&testid::with(testid::OWNER_LAST_SWITCH, owner), "exit-b").await?;
        page.has(&reason, "data-code", "current_is_best", DECISION).await?;
        ensure!(!page.all_of(testid::LOG_ENTRY).await?.is_empty(), "the log has no switch");
        page.was_not_reloaded().await?;
        page.screenshot("zh-light-monitor-switched").await?;
        nothing_wrong(page).await?;

        page.switch_to(0).await?;
        page.says(&chip, "最优出口: exit-b").await?;
        page.was_not_reloaded().await?;
        page.screenshot("zh-light-tunnels-switched").await?;
        nothing_wrong(page).await
    })
    .await;
    lab.stage.close().await;
}
