//! The charts of the monitor: what they show is what the panel has measured, and they can be read and steered in every
//! way.

use crate::browser::Device;
use crate::monitor::{lay_links, options};
use crate::page::{PATIENCE, Page};
use crate::run::{Lab, in_browser, lab, logged_in, nothing_wrong};
use anyhow::{Context as _, Result, ensure};
use shared::api::{LegHistory, Tunnel};
use shared::ids::NodeId;
use shared::testid;
use std::time::Duration;
use tests::netlab::Impairment;
use tests::rig::{Stage, eventually};
use thirtyfour::Key;

/// For decisions and rounds on a busy machine.
const DECISION: Duration = Duration::from_secs(60);
/// What exit a's link gets: worse than all others.
const SLOW: Duration = Duration::from_millis(150);
/// More rounds than a line may lack without a gap, at a round per second and steps of up to five seconds.
const AWAY: Duration = Duration::from_secs(20);

/// A tunnel with a history of some rounds, a switch from exit a to exit b, and a gap while the owner was away.
async fn told() -> Option<(Lab, Tunnel)> {
    let mut lab = lab(options("chart")).await?;
    lay_links(&lab.stage).unwrap();
    let input = lab.stage.best("hk-best", &["entry-1"], &[], &["exit-a", "exit-b", "exit-c"]).unwrap();
    let (tunnel, _, _) = lab.stage.open(&input).await.unwrap();
    lab.stage.switched(tunnel.id, "exit-a", DECISION).await.unwrap();
    lab.stage.lab.link("entry-1", "exit-a").set_both(Impairment::delay(SLOW)).unwrap();
    lab.stage.switched(tunnel.id, "exit-b", DECISION).await.unwrap();
    let last = measured(&lab.stage, &tunnel).await.unwrap();
    lab.stage.agent("entry-1").unwrap().kill().await.unwrap();
    // Other nodes go on measuring meanwhile: the gap is as long as their history grows.
    eventually("the gap is long enough", AWAY + DECISION, async || {
        let now = lab.stage.api.quality(tunnel.id, "step=0").await?;
        let newest = now.iter().flat_map(|leg| &leg.points).map(|point| point.at).max();
        ensure!(newest > Some(last + AWAY.as_millis() as i64), "it is not");
        Ok(())
    })
    .await
    .unwrap();
    lab.stage.agent("entry-1").unwrap().start_again().unwrap();
    eventually("the owner measures again", DECISION, async || {
        ensure!(measured(&lab.stage, &tunnel).await? > last + AWAY.as_millis() as i64, "it does not");
        Ok(())
    })
    .await
    .unwrap();
    Some((lab, tunnel))
}

/// When the owner last measured anything.
async fn measured(stage: &Stage, tunnel: &Tunnel) -> Result<i64> {
    let legs = stage.api.quality(tunnel.id, "step=0").await?;
    let own = legs.iter().filter(|leg| leg.leg == "a").flat_map(|leg| &leg.points);
    own.filter(|point| point.latency_ms.is_some()).map(|point| point.at).max().context("nothing yet")
}

/// An exit's line in one of the charts, counted from the top.
async fn line(page: &Page, owner: NodeId, exit: NodeId, chart: usize) -> Result<String> {
    let id = testid::of(testid::CHART_LINE, owner, format!("{exit}:{chart}"));
    let script = format!("return document.querySelector('[data-testid=\"{id}\"]')?.getAttribute('d') ?? ''");
    Ok(page.script(&script).await?.as_str().unwrap_or_default().to_owned())
}

/// Waits until a line is as it should be.
async fn drawn(page: &Page, what: &str, of: (NodeId, NodeId, usize), right: fn(&str) -> bool) -> Result<()> {
    eventually(what, PATIENCE, async || {
        let d = line(page, of.0, of.1, of.2).await?;
        ensure!(right(&d), "it is {d:?}");
        Ok(())
    })
    .await
}

/// Moves a mouse over a chart, pressed or not, between two shares of its width.
async fn swipe(page: &Page, owner: NodeId, shares: [f64; 2], pressed: bool) -> Result<()> {
    let script = format!(
        "const chart = document.querySelector('[data-testid=\"{}\"]');
         chart.scrollIntoView({{ block: 'center', behavior: 'instant' }});
         const {{ left, top, width }} = chart.getBoundingClientRect();
         const send = (type, share) => chart.dispatchEvent(new PointerEvent(type, {{
             bubbles: true, pointerType: 'mouse', pointerId: 1, button: 0,
             clientX: left + width * share, clientY: top + 90,
         }}));
         if ({pressed}) send('pointerdown', {from});
         send('pointermove', {from});
         send('pointermove', {to});
         if ({pressed}) send('pointerup', {to});",
        testid::with(testid::CHART, owner),
        from = shares[0],
        to = shares[1],
    );
    page.script(&script).await.map(|_| ())
}

/// What the box beside the pointer says is what the API says of that step.
async fn tip_is_true(
    page: &Page,
    stage: &Stage,
    tunnel: &Tunnel,
    owner: NodeId,
    exits: &[NodeId],
) -> Result<()> {
    let tip = testid::with(testid::CHART_TIP, owner);
    let number = async |name: &str| -> Result<i64> {
        Ok(page.attribute(&tip, name).await?.unwrap_or_default().parse()?)
    };
    let (at, step) = (number("data-at").await?, number("data-step").await?);
    let legs = stage.api.quality(tunnel.id, &format!("from={at}&to={}&step={step}", at + step)).await?;
    let first = |leg: &LegHistory| leg.points.first().and_then(|point| point.latency_ms.zip(point.loss));
    for exit in exits {
        let of =
            |name: &str| legs.iter().find(|leg| leg.leg == name && leg.exit_node_id == *exit).and_then(first);
        let said = page.text(&testid::of(testid::CHART_TIP_ROW, owner, *exit)).await?;
        let (Some((a, _)), Some((b, _))) = (of("a"), of("b")) else {
            ensure!(!said.contains("ms"), "{exit} was not measured, but: {said}");
            continue;
        };
        let latency = if a + b < 99.95 { format!("{:.1} ms", a + b) } else { format!("{:.0} ms", a + b) };
        ensure!(said.contains(&latency), "{exit} took {latency}, but: {said}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn charts_show_what_was_measured_and_can_be_steered() {
    let Some((lab, tunnel)) = told().await else { return };
    let stage = &lab.stage;
    let [owner, a, b, c] = ["entry-1", "exit-a", "exit-b", "exit-c"].map(|name| stage.node(name).unwrap());
    let monitor = format!("/tunnels/{}/monitor", tunnel.id);
    let chart = testid::with(testid::CHART, owner);
    let tip = testid::with(testid::CHART_TIP, owner);
    let tool = |name: &str| testid::with(testid::CHART_TOOL, name);

    in_browser("chart", Device::Desk, lab.address, async |page| {
        logged_in(page, stage.panel.password()).await?;
        page.open(&monitor).await?;
        page.shows(&chart).await?;
        // What was measured so far is not lost in an empty hour.
        page.has(&testid::with(testid::CHART_SPAN, 60), "aria-pressed", "false", PATIENCE).await?;
        page.click(&testid::with(testid::CHART_SPAN, 15)).await?;
        page.has(&testid::with(testid::CHART_SPAN, 15), "aria-pressed", "true", PATIENCE).await?;
        // Each exit has a line in each chart, with a gap.
        for exit in [a, b, c] {
            for place in 0..3 {
                let gap = |d: &str| d.matches('M').count() >= 2 && d.contains('L');
                drawn(page, "a line with a gap", (owner, exit, place), gap).await?;
            }
        }
        // The switch, and why.
        let log = stage.api.decision_log(tunnel.id).await?;
        let switch =
            log.iter().find(|entry| entry.reason.code() == "switched" && entry.to_exit_node_id == Some(b));
        let switch = switch.context("no switch in the log")?;
        let mark = testid::of(testid::CHART_EVENT, owner, switch.id);
        let place = page
            .script(&format!(
                "const mark = document.querySelector('[data-testid=\"{mark}\"]');
                 const chart = mark.closest('[role=slider]').getBoundingClientRect();
                 return [mark.dataset.code, (mark.getBoundingClientRect().left - chart.left) / chart.width]"
            ))
            .await?;
        ensure!(place[0] == "switched", "{place}");
        let share = place[1].as_f64().context("no place")?;
        swipe(page, owner, [share, share], false).await?;
        page.says(&tip, "已从 exit-a 切换到 exit-b").await?;
        tip_is_true(page, stage, &tunnel, owner, &[a, b, c]).await?;
        page.rests().await?;
        page.screenshot("zh-light-chart").await?;

        // A stretch that is dragged over is shown, and stays until it is reset. It must not reach to the present, which it would
        // follow: this one grows to a minute and ends some seconds after the switch, which was before the gap.
        let range = page.text(testid::CHART_RANGE).await?;
        let whole = line(page, owner, b, 0).await?;
        swipe(page, owner, [share - 0.04, share], true).await?;
        eventually("the axis is another", PATIENCE, async || {
            ensure!(page.text(testid::CHART_RANGE).await? != range, "it is not");
            ensure!(line(page, owner, b, 0).await? != whole, "the line is not");
            Ok(())
        })
        .await?;
        page.has(&testid::with(testid::CHART_SPAN, 15), "aria-pressed", "false", PATIENCE).await?;
        let zoomed = page.text(testid::CHART_RANGE).await?;
        swipe(page, owner, [0.4, 0.45], false).await?;
        tip_is_true(page, stage, &tunnel, owner, &[a, b, c]).await?;
        ensure!(page.text(testid::CHART_RANGE).await? == zoomed, "what is past moves");
        page.click(&tool("reset")).await?;
        page.has(&testid::with(testid::CHART_SPAN, 15), "aria-pressed", "true", PATIENCE).await?;

        // From the keyboard: step by step, zoom and back.
        page.focus_on(&chart).await?;
        page.shows(&tip).await?;
        let newest: i64 = page.attribute(&tip, "data-at").await?.unwrap_or_default().parse()?;
        page.keys(Key::Left + "").await?;
        eventually("the step before", PATIENCE, async || {
            let at: i64 = page.attribute(&tip, "data-at").await?.unwrap_or_default().parse()?;
            ensure!(at < newest, "it is at {at}");
            Ok(())
        })
        .await?;
        let spoken = page.attribute(&chart, "aria-valuetext").await?.unwrap_or_default();
        ensure!(["exit-a：", "exit-b：", "exit-c："].iter().all(|name| spoken.contains(name)), "{spoken}");
        page.keys("+").await?;
        page.has(&testid::with(testid::CHART_SPAN, 15), "aria-pressed", "false", PATIENCE).await?;
        page.keys("0").await?;
        page.has(&testid::with(testid::CHART_SPAN, 15), "aria-pressed", "true", PATIENCE).await?;

        // Lines are hidden and shown again without being made anew.
        page.script(&format!(
            "window.exitpilotTestLine = document.querySelector('[data-testid=\"{}\"]')",
            testid::of(testid::CHART_LINE, owner, format!("{c}:0"))
        ))
        .await?;
        let key = testid::with(testid::CHART_KEY, c);
        page.click(&key).await?;
        page.has(&key, "aria-pressed", "false", PATIENCE).await?;
        drawn(page, "no line", (owner, c, 0), str::is_empty).await?;
        ensure!(!line(page, owner, b, 0).await?.is_empty(), "the others are hidden too");
        page.click(&key).await?;
        drawn(page, "a line", (owner, c, 0), |d| d.contains('L')).await?;
        page.click(&testid::with(testid::CHART_SPAN, 60)).await?;
        page.has(&testid::with(testid::CHART_SPAN, 60), "aria-pressed", "true", PATIENCE).await?;
        drawn(page, "a line of an hour", (owner, c, 0), |d| d.contains('L')).await?;
        let same = page.script("return window.exitpilotTestLine.isConnected").await?;
        ensure!(same == serde_json::Value::Bool(true), "the lines were made anew");

        // The same as a table.
        page.click(&tool("table")).await?;
        let table = testid::with(testid::CHART_TABLE, owner);
        page.says(&table, "已从 exit-a 切换到 exit-b").await?;
        page.says(&table, " ms · 0 % · ").await?;
        // And as files.
        for (format, start) in [("csv", "leg,fromNodeId"), ("json", "[{")] {
            let link = testid::with(testid::CHART_FILE, format);
            let script = format!(
                "const [done] = arguments;
                 const link = document.querySelector('[data-testid=\"{link}\"]');
                 fetch(link.href).then((it) => it.text()).then(done);"
            );
            let file = page.answer(&script).await?;
            let file = file.as_str().unwrap_or_default();
            ensure!(file.starts_with(start) && file.len() > 1000, "{format}: {file:.200}");
        }
        nothing_wrong(page).await
    })
    .await;

    in_browser("chart-narrow", Device::Narrow, lab.address, async |page| {
        page.open("/").await?;
        page.click("language:en").await?;
        logged_in(page, stage.panel.password()).await?;
        page.open("/settings").await?;
        page.click("theme:dark").await?;
        page.open(&monitor).await?;
        page.shows(&chart).await?;
        drawn(page, "a line", (owner, a, 0), |d| d.contains('L')).await?;
        swipe(page, owner, [0.8, 0.8], false).await?;
        page.says(&tip, "exit-c").await?;
        page.screenshot("narrow-en-dark-chart").await?;
        let wide = page.script("return [document.documentElement.scrollWidth, innerWidth]").await?;
        ensure!(wide[0].as_i64() <= wide[1].as_i64(), "{wide} does not fit");
        nothing_wrong(page).await
    })
    .await;
    lab.stage.close().await;
}
