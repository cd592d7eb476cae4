//! What if: a stored history replayed in the page under other settings.

use crate::browser::Device;
use crate::page::{PATIENCE, Page};
use crate::run::{logged_in, nothing_wrong, with_panel};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use server::clock::Clock;
use server::store::{Db, LegSample};
use shared::api::{NodeInput, SettingsInput, Tunnel};
use shared::best_exit::Leg;
use shared::ids::NodeId;
use shared::testid;
use tests::rig::{Api, Panel, eventually};
use thirtyfour::Key;

const ROUND_MS: i64 = 5000;
/// Nearly a day.
const ROUNDS: i64 = 17_000;
/// Every ten minutes the nearer exit is slow for so many rounds: enough for three confirmations, too few for ten.
const SLOW_ROUNDS: i64 = 6;

fn field(name: &str) -> String {
    testid::with(testid::WHAT_IF_FIELD, name)
}

fn row(place: usize) -> String {
    testid::with(testid::WHAT_IF_ROW, place)
}

/// A tunnel over two exits with a history, and a panel that measures nothing itself.
async fn measured(panel: &Panel, api: &Api) -> Result<Tunnel> {
    let quiet = SettingsInput { monitor_tunnel_quality_enabled: Some(false), ..SettingsInput::default() };
    api.put_settings(&quiet).await?;
    let mut nodes = Vec::new();
    for (i, name) in ["entry", "near", "far"].into_iter().enumerate() {
        let node =
            NodeInput { name: name.into(), server_ip: format!("192.0.2.{}", i + 1), ..NodeInput::default() };
        nodes.push(api.create_node(&node).await?.id);
    }
    let input = serde_json::from_value(json!({
        "name": "hk", "entry": { "nodes": [{ "nodeId": nodes[0] }] },
        "exit": { "strategy": "best", "nodes": [{ "nodeId": nodes[1] }, { "nodeId": nodes[2] }] }
    }))?;
    let tunnel = api.create_tunnel(&input).await?;
    let start = Clock::system().wall_ms() - ROUNDS * ROUND_MS;
    let sample = |from: NodeId, target: &str, at, ms| LegSample {
        from,
        target: target.into(),
        at,
        leg: Leg::Measured { latency_ms: ms, loss: 0.0 },
    };
    let mut samples = Vec::new();
    for round in 0..ROUNDS {
        let at = start + round * ROUND_MS;
        let near = if round % 120 >= 120 - SLOW_ROUNDS { 300.0 } else { 10.0 };
        samples.push(sample(nodes[0], "192.0.2.2", at, near));
        samples.push(sample(nodes[0], "192.0.2.3", at, 60.0));
        samples.extend([1, 2].map(|exit| sample(nodes[exit], "www.bing.com:443", at, 5.0)));
    }
    let db = Db::open(&format!("sqlite://{}", panel.folder().join("exitpilot.db").display())).await?;
    // The panel writes, too.
    for part in samples.chunks(4000) {
        db.append_leg_samples(part).await?;
    }
    db.close().await;
    Ok(tunnel)
}

/// Name, switches and share on the best exit of a row, as they are shown.
async fn shown(page: &Page, place: usize) -> Result<[String; 3]> {
    let cells = page
        .script(&format!(
            "return [...document.querySelector('[data-testid=\"{}\"]').cells].map((cell) => cell.textContent)",
            row(place)
        ))
        .await?;
    let cell = |i: usize| cells[i].as_str().map(str::to_owned).context("a cell");
    Ok([cell(0)?, cell(2)?, cell(1)?])
}

/// Waits until the row of the changed settings has so many switches.
async fn switches_come_to(page: &Page, switches: &str) -> Result<()> {
    eventually(&format!("{switches} switches with the changed settings"), PATIENCE, async || {
        let now = shown(page, 1).await?;
        ensure!(now[1] == switches, "it is {now:?}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn other_settings_are_tried_and_put_in_force() {
    with_panel("what-if", Device::Desk, async |page, panel| {
        let api = panel.api().await?;
        let tunnel = measured(panel, &api).await?;
        let ask = |confirmations: u32| {
            json!({ "inForce": true, "settings": { "decisionRules": "classic", "confirmations": confirmations },
                "policies": ["min"] })
        };
        let path = format!("/api/v1/tunnels/{}/replay", tunnel.id);
        let told: Value = api.send("POST", &path, &ask(10)).await?;
        let of = |place: usize| told["policies"][place]["switches"].to_string();
        ensure!(of(0) != of(1) && of(1) == "0", "no history to tell settings apart by: {told}");

        logged_in(page, panel.password()).await?;
        page.open(&format!("/tunnels/{}/monitor", tunnel.id)).await?;
        page.click(testid::WHAT_IF_OPEN).await?;
        page.comes_to(&format!("/tunnels/{}/what-if", tunnel.id)).await?;
        page.shows(testid::WHAT_IF_TABLE).await?;
        // Nothing is changed yet.
        switches_come_to(page, &of(0)).await?;
        let before = shown(page, 0).await?;
        ensure!(before[1] == of(0) && before[1..] == shown(page, 1).await?[1..], "{before:?}");

        // From 3 over 4, 5, 6 and 8 to 10, by the keyboard.
        let slider = page.shows(&testid::with(testid::WHAT_IF_SLIDER, "confirmations")).await?;
        for _ in 0..5 {
            slider.send_keys(Key::Right + "").await?;
        }
        ensure!(page.value(&field("confirmations")).await? == "10", "the field follows the slider");
        switches_come_to(page, "0").await?;
        let words = page.text(testid::WHAT_IF_WORDS).await?;
        ensure!(words.contains(&of(0)) && words.contains("near") && words.contains("far"), "{words}");
        page.click(&testid::with(testid::WHAT_IF_POLICY, "min")).await?;
        page.shows(&row(3)).await?;
        let minimum = shown(page, 3).await?;
        ensure!(minimum[0] == "min" && minimum[1] == of(2), "{minimum:?}, and the panel says {told}");

        // What cannot be is said at its field, and the last answer stays.
        page.fill(&field("confirmations"), "0").await?;
        page.shows("field-error:confirmations").await?;
        page.fill(&field("confirmations"), "10").await?;
        page.hides("field-error:confirmations").await?;

        // The page draws on while the worker tries settings.
        page.script(
            "window.drawn = 0;
             const suggest = document.querySelector('[data-testid=\"what-if-suggest\"]');
             const draw = () => { if (suggest.disabled) window.drawn += 1; requestAnimationFrame(draw); };
             requestAnimationFrame(draw);",
        )
        .await?;
        page.click(testid::WHAT_IF_SUGGEST).await?;
        eventually("settings are suggested", PATIENCE, async || {
            let ready = page.shows(testid::WHAT_IF_SUGGEST).await?.is_enabled().await?;
            ensure!(ready, "they are not");
            Ok(())
        })
        .await?;
        let drawn = page.script("return window.drawn").await?.as_i64().unwrap_or(0);
        ensure!(drawn >= 2, "{drawn} pictures while settings were tried");

        page.fill(&field("confirmations"), "10").await?;
        page.choose(&field("decisionRules"), "classic").await?;
        page.click(testid::WHAT_IF_USE).await?;
        page.click(testid::CONFIRM).await?;
        page.hides(testid::CONFIRM).await?;
        let stored = api.settings().await?.settings;
        ensure!(stored.confirmations == 10 && !stored.monitor_tunnel_quality_enabled, "{stored:?}");
        // They are what is in force from now on.
        eventually("the settings in force are these", PATIENCE, async || {
            let (old, new) = (shown(page, 0).await?, shown(page, 1).await?);
            ensure!(old[1..] == new[1..], "{old:?} and {new:?}");
            Ok(())
        })
        .await?;
        nothing_wrong(page).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_measured_is_nothing_to_replay() {
    with_panel("what-if-empty", Device::Phone, async |page, panel| {
        let api = panel.api().await?;
        let tunnel = measured(panel, &api).await?;
        let lonely = serde_json::from_value(json!({
            "name": "jp", "entry": { "nodes": [{ "nodeId": tunnel.entry.nodes[0].node_id }] },
            "exit": { "strategy": "best", "nodes": [{ "nodeId": tunnel.exit.context("exits")?.nodes[0].node_id }] }
        }))?;
        let lonely = api.create_tunnel(&lonely).await?;
        logged_in(page, panel.password()).await?;
        page.open(&format!("/tunnels/{}/what-if", lonely.id)).await?;
        page.shows(testid::EMPTY).await?;
        nothing_wrong(page).await
    })
    .await;
}
