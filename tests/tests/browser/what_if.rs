//! What if: a stored history replayed in the page under other settings.

use crate::browser::Device;
use crate::page::{PATIENCE, Page};
use crate::run::{logged_in, nothing_wrong, with_panel};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use server::clock::Clock;
use server::store::{Db, LegSample};
use shared::api::{NodeInput, Role, SettingsInput, Tunnel, UserInput, UserRecord};
use shared::best_exit::Leg;
use shared::ids::NodeId;
use shared::testid;
use tests::rig::{Api, Panel, eventually};
use thirtyfour::Key;

pub(crate) const ROUND_MS: i64 = 5000;
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

/// An entry node: its name, and what it measured to the exits `near` and `far` in a round, in milliseconds.
pub(crate) type Entry = (&'static str, fn(i64) -> [f64; 2]);

/// The nearer exit is slow now and then.
const TROUBLED: Entry =
    ("entry", |round| [if round % 120 >= 120 - SLOW_ROUNDS { 300.0 } else { 10.0 }, 60.0]);
/// It is the other exit that is nearer, all the time.
pub(crate) const STEADY: Entry = ("elsewhere", |_| [60.0, 10.0]);

/// A tunnel over two exits with a history, and a panel that measures nothing itself.
async fn measured(panel: &Panel, api: &Api, entries: &[Entry]) -> Result<Tunnel> {
    let start = Clock::system().wall_ms() - ROUNDS * ROUND_MS;
    measured_from(panel, api, entries, (start, ROUNDS)).await
}

/// The same with the beginning and the number of its rounds. What is still to come is seen when its time has come.
pub(crate) async fn measured_from(
    panel: &Panel,
    api: &Api,
    entries: &[Entry],
    (start, rounds): (i64, i64),
) -> Result<Tunnel> {
    let quiet = SettingsInput { monitor_tunnel_quality_enabled: Some(false), ..SettingsInput::default() };
    api.put_settings(&quiet).await?;
    let exits = ["near", "far"];
    let mut nodes = Vec::new();
    for (i, name) in exits.into_iter().chain(entries.iter().map(|entry| entry.0)).enumerate() {
        let node =
            NodeInput { name: name.into(), server_ip: format!("192.0.2.{}", i + 1), ..NodeInput::default() };
        nodes.push(api.create_node(&node).await?.id);
    }
    let members = |of: &[NodeId]| -> Vec<Value> { of.iter().map(|id| json!({ "nodeId": id })).collect() };
    let (exits, owners) = nodes.split_at(exits.len());
    let input = serde_json::from_value(json!({
        "name": "hk", "entry": { "nodes": members(owners) },
        "exit": { "strategy": "best", "nodes": members(exits) }
    }))?;
    let tunnel = api.create_tunnel(&input).await?;
    let sample = |from: NodeId, target: &str, at, ms| LegSample {
        from,
        target: target.into(),
        at,
        leg: Leg::Measured { latency_ms: ms, loss: 0.0 },
    };
    let mut samples = Vec::new();
    for round in 0..rounds {
        let at = start + round * ROUND_MS;
        for (owner, entry) in owners.iter().zip(entries) {
            let [near, far] = entry.1(round);
            samples.push(sample(*owner, "192.0.2.1", at, near));
            samples.push(sample(*owner, "192.0.2.2", at, far));
        }
        samples.extend(exits.iter().map(|exit| sample(*exit, "www.bing.com:443", at, 5.0)));
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
    switches_of(page, 1, switches).await
}

/// Waits until a row has so many switches.
async fn switches_of(page: &Page, place: usize, switches: &str) -> Result<()> {
    eventually(&format!("{switches} switches in row {place}"), PATIENCE, async || {
        let now = shown(page, place).await?;
        ensure!(now[1] == switches, "it is {now:?}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn other_settings_are_tried_and_put_in_force() {
    with_panel("what-if", Device::Desk, async |page, panel| {
        let api = panel.api().await?;
        let tunnel = measured(panel, &api, &[TROUBLED]).await?;
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
        let tunnel = measured(panel, &api, &[TROUBLED]).await?;
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

/// What is above each owner's strips, and the exit that the settings in force used for the longest stretch, found by the
/// colours of the legend.
async fn strips(page: &Page) -> Result<Vec<(String, String)>> {
    let told = page
        .script(
            "return [...document.querySelectorAll('.strips')].map((owner) => {
                 const parts = [...owner.querySelector('svg').querySelectorAll('rect:not(.gap)')];
                 parts.sort((one, other) => other.width.baseVal.value - one.width.baseVal.value);
                 const colour = parts[0].classList[0];
                 const key = [...owner.querySelectorAll('.strip-keys li')].find((li) => li.querySelector('.' + colour));
                 return [owner.querySelector('h3').textContent, key.textContent.trim()];
             })",
        )
        .await?;
    Ok(serde_json::from_value(told)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_with_different_histories_are_told_apart() {
    with_panel("what-if-owners", Device::Desk, async |page, panel| {
        let api = panel.api().await?;
        let tunnel = measured(panel, &api, &[TROUBLED, STEADY]).await?;
        let path = format!("/api/v1/tunnels/{}/replay", tunnel.id);
        let told = async |owner: &str| -> Result<i64> {
            let report: Value = api.send("POST", &path, &json!({ "inForce": true, "owner": owner })).await?;
            report["policies"][0]["switches"].as_i64().context("no switches")
        };
        let (troubled, steady) = (told("entry").await?, told("elsewhere").await?);
        ensure!(troubled > steady + 1, "nothing to tell the owners apart by: {troubled} and {steady}");
        let sum = troubled + steady;
        let [troubled, steady, sum] = [troubled, steady, sum].map(|switches| switches.to_string());

        logged_in(page, panel.password()).await?;
        page.open(&format!("/tunnels/{}/what-if", tunnel.id)).await?;
        page.shows(testid::WHAT_IF_TABLE).await?;
        switches_of(page, 0, &sum).await?;
        let apart = strips(page).await?;
        let [entry, elsewhere] = &apart[..] else { bail!("not two owners: {apart:?}") };
        ensure!(entry.0.ends_with(": entry") && entry.1 == "near", "{apart:?}");
        ensure!(elsewhere.0.ends_with(": elsewhere") && elsewhere.1 == "far", "{apart:?}");
        page.screenshot("zh-light-what-if-owners").await?;

        // One of them alone, and it can still be changed for the other.
        page.choose(&field("owner"), "elsewhere").await?;
        switches_of(page, 0, &steady).await?;
        let alone = strips(page).await?;
        ensure!(alone.len() == 1 && alone[0].1 == "far", "{alone:?}");
        page.choose(&field("owner"), "entry").await?;
        switches_of(page, 0, &troubled).await?;
        let alone = strips(page).await?;
        ensure!(alone.len() == 1 && alone[0].1 == "near", "{alone:?}");
        // What is changed is asked for this owner only.
        page.fill(&field("confirmations"), "10").await?;
        switches_come_to(page, "0").await?;
        page.choose(&field("owner"), "").await?;
        eventually("both owners are back", PATIENCE, async || {
            let both = strips(page).await?;
            ensure!(both == apart, "{both:?}");
            Ok(())
        })
        .await?;
        nothing_wrong(page).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_replays_and_changes_nothing() {
    with_panel("what-if-viewer", Device::Desk, async |page, panel| {
        const PASSWORD: &str = "a password for reading";
        let api = panel.api().await?;
        let tunnel = measured(panel, &api, &[TROUBLED]).await?;
        let input = UserInput { username: "reader".into(), password: PASSWORD.into(), role: Role::Viewer };
        let _: UserRecord = api.send("POST", "/api/v1/users", &input).await?;
        let before = api.settings().await?;

        page.open("/").await?;
        page.log_in_as("reader", PASSWORD).await?;
        page.only_complains_about("/api/v1/auth/me").await?;
        page.open(&format!("/tunnels/{}/monitor", tunnel.id)).await?;
        page.click(testid::WHAT_IF_OPEN).await?;
        page.shows(testid::WHAT_IF_TABLE).await?;
        ensure!(shown(page, 0).await?[1] != "0", "no history to tell settings apart by");
        page.fill(&field("confirmations"), "10").await?;
        switches_come_to(page, "0").await?;
        let offered = page.all(testid::WHAT_IF_USE).await?;
        ensure!(offered.is_empty(), "a viewer is offered to change the settings of all");
        nothing_wrong(page).await?;

        // The button is not what keeps him from it.
        let ask = json!({ "confirmations": 10, "version": before.version });
        let script = format!(
            "const [done] = arguments;
             fetch('/api/v1/settings', {{
                 method: 'PUT', headers: {{ 'content-type': 'application/json' }}, body: JSON.stringify({ask}),
             }}).then(async (answer) => done([answer.status, (await answer.json()).type]));"
        );
        let refused = page.answer(&script).await?;
        ensure!(refused == json!([403, "forbidden"]), "{refused}");
        let after = api.settings().await?;
        ensure!(after.version == before.version && after.settings == before.settings, "{after:?}");
        page.only_complains_about("/api/v1/settings").await
    })
    .await;
}
