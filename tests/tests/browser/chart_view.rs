//! Which stretch of time the charts show: of what is young, and under two fingers.

use crate::browser::Device;
use crate::page::{PATIENCE, Page};
use crate::run::{logged_in, nothing_wrong, with_panel};
use crate::what_if::{ROUND_MS, STEADY, measured_from};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use server::clock::Clock;
use shared::ids::NodeId;
use shared::testid;
use tests::rig::eventually;

const MINUTE_MS: i64 = 60_000;

fn span(minutes: i64) -> String {
    testid::with(testid::CHART_SPAN, minutes)
}

/// The first and the last moment that are shown, in milliseconds.
async fn range(page: &Page) -> Result<(i64, i64)> {
    let link = testid::with(testid::CHART_FILE, "csv");
    let script = format!(
        "const query = new URL(document.querySelector('[data-testid=\"{link}\"]').href).searchParams;
         return ['from', 'to'].map((name) => Number(query.get(name)))"
    );
    Ok(serde_json::from_value(page.script(&script).await?)?)
}

/// The span that is on, in minutes; none when it is another.
async fn chosen_span(page: &Page) -> Result<Option<i64>> {
    for minutes in [1, 5, 15, 60] {
        if page.attribute(&span(minutes), "aria-pressed").await?.as_deref() == Some("true") {
            return Ok(Some(minutes));
        }
    }
    Ok(None)
}

/// How much of the chart's width an exit's line takes, and the times below.
async fn drawn(page: &Page, owner: NodeId, exit: NodeId) -> Result<(f64, Vec<String>)> {
    let line = testid::of(testid::CHART_LINE, owner, format!("{exit}:0"));
    let script = format!(
        "const line = document.querySelector('[data-testid=\"{line}\"]');
         const svg = line.ownerSVGElement;
         return [line.getBBox().width / svg.viewBox.baseVal.width,
                 [...svg.querySelectorAll('text.time')].map((time) => time.textContent)]"
    );
    Ok(serde_json::from_value(page.script(&script).await?)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tunnel_that_is_seconds_old_has_a_chart_that_grows_with_it() {
    with_panel("chart-young", Device::Desk, async |page, panel| {
        let api = panel.api().await?;
        let now = || Clock::system().wall_ms();
        // It goes on for as long as the test may take.
        let start = now() - 8 * ROUND_MS;
        let tunnel = measured_from(panel, &api, &[STEADY], (start, 400)).await?;
        let owner = tunnel.entry.nodes[0].node_id;
        let near = tunnel.exit.as_ref().context("exits")?.nodes[0].node_id;
        logged_in(page, panel.password()).await?;
        page.open(&format!("/tunnels/{}/monitor", tunnel.id)).await?;
        page.shows(&testid::with(testid::CHART, owner)).await?;

        // On a slow machine it is older than a minute by now.
        let fits = |minutes: i64| now() - start <= minutes * MINUTE_MS;
        eventually("the shortest span that holds all is shown", PATIENCE, async || {
            let span = chosen_span(page).await?;
            let (share, times) = drawn(page, owner, near).await?;
            ensure!(span.is_some_and(fits) && span <= Some(5), "{span:?} for {} ms", now() - start);
            ensure!(share > if span == Some(1) { 0.3 } else { 0.1 }, "{share} of the width");
            ensure!(times.len() >= 3 && times[0] != times[1], "{times:?}");
            Ok(())
        })
        .await?;
        page.rests().await?;
        page.screenshot("zh-light-chart-young").await?;

        // By itself, as soon as it has become too long.
        eventually("there is more than a minute, and it is shown", 2 * PATIENCE, async || {
            let span = chosen_span(page).await?;
            ensure!(span == Some(5), "{span:?} for {} ms", now() - start);
            let (share, times) = drawn(page, owner, near).await?;
            ensure!(share > 0.15, "{share} of the width");
            ensure!(times.len() >= 3, "{times:?}");
            Ok(())
        })
        .await?;

        // Who has chosen a span keeps it, whatever comes.
        page.click(&span(1)).await?;
        for _ in 0..2 {
            let before = range(page).await?;
            eventually("time goes on", PATIENCE, async || {
                ensure!(range(page).await?.1 > before.1, "it does not");
                Ok(())
            })
            .await?;
        }
        ensure!(chosen_span(page).await? == Some(1), "another span came by itself");
        let (from, to) = range(page).await?;
        ensure!(to - from == MINUTE_MS, "{from} to {to}");
        nothing_wrong(page).await
    })
    .await;
}

/// Puts fingers on the chart, moves them and takes them away; each goes from a place to another, as shares of the chart's
/// width and pixels below its upper edge.
async fn touch(page: &Page, chart: &str, fingers: &[[(f64, f64); 2]]) -> Result<()> {
    const STEPS: i32 = 8;
    let place = page
        .script(&format!(
            "const chart = document.querySelector('[data-testid=\"{chart}\"]');
             chart.scrollIntoView({{ block: 'center', behavior: 'instant' }});
             const {{ left, top, width }} = chart.getBoundingClientRect();
             return [left, top, width]"
        ))
        .await?;
    let [left, top, width]: [f64; 3] = serde_json::from_value(place)?;
    for step in 0..=STEPS {
        let done = f64::from(step) / f64::from(STEPS);
        let points: Vec<Value> = fingers
            .iter()
            .enumerate()
            .map(|(id, [from, to])| {
                let between = |from: f64, to: f64| from + (to - from) * done;
                let (x, y) = (left + width * between(from.0, to.0), top + between(from.1, to.1));
                json!({ "id": id, "x": x, "y": y })
            })
            .collect();
        let kind = if step == 0 { "touchStart" } else { "touchMove" };
        page.tell_browser("Input.dispatchTouchEvent", json!({ "type": kind, "touchPoints": points })).await?;
    }
    page.tell_browser("Input.dispatchTouchEvent", json!({ "type": "touchEnd", "touchPoints": [] })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_fingers_zoom_and_one_scrolls_the_page() {
    with_panel("chart-touch", Device::Phone, async |page, panel| {
        let api = panel.api().await?;
        let rounds = 2 * 60 * MINUTE_MS / ROUND_MS;
        let start = Clock::system().wall_ms() - rounds * ROUND_MS;
        let tunnel = measured_from(panel, &api, &[STEADY], (start, rounds)).await?;
        let owner = tunnel.entry.nodes[0].node_id;
        logged_in(page, panel.password()).await?;
        page.open(&format!("/tunnels/{}/monitor", tunnel.id)).await?;
        let chart = testid::with(testid::CHART, owner);
        page.shows(&chart).await?;
        page.is_still().await?;
        page.has(&span(60), "aria-pressed", "true", PATIENCE).await?;

        // Apart, from a fifth of the width to three fifths: a third of the time.
        let (from, to) = range(page).await?;
        touch(page, &chart, &[[(0.4, 90.0), (0.2, 90.0)], [(0.6, 90.0), (0.8, 90.0)]]).await?;
        let third = (to - from) / 3;
        let mut closer = (0, 0);
        eventually("a third of the time is shown", PATIENCE, async || {
            closer = range(page).await?;
            let is = closer.1 - closer.0;
            ensure!((is - third).abs() < third / 20, "{is} instead of {third}");
            Ok(())
        })
        .await?;
        // What was in the middle between the fingers is there still. The axis does not take up the whole width.
        let middle = page
            .script(
                "const grid = document.querySelector('.chart path.grid');
                 const { x, width } = grid.getBBox();
                 return (grid.ownerSVGElement.viewBox.baseVal.width / 2 - x) / width",
            )
            .await?
            .as_f64()
            .context("no axis")?;
        let there = |from: i64, to: i64| from + ((to - from) as f64 * middle) as i64;
        let (before, after) = (there(from, to), there(closer.0, closer.1));
        ensure!((before - after).abs() < third / 20, "{before} went to {after}");
        ensure!(chosen_span(page).await?.is_none(), "a span is on that is not shown");
        page.rests().await?;
        page.screenshot("phone-chart-pinched").await?;

        // Together again.
        touch(page, &chart, &[[(0.2, 90.0), (0.4, 90.0)], [(0.8, 90.0), (0.6, 90.0)]]).await?;
        eventually("all of it is shown", PATIENCE, async || {
            let now = range(page).await?;
            let is = now.1 - now.0;
            ensure!((is - 3 * third).abs() < third / 4, "{is} instead of {}", 3 * third);
            Ok(())
        })
        .await?;

        // One finger is not the chart's: up and down it moves the page, and zooms nothing.
        page.click(&span(60)).await?;
        page.has(&span(60), "aria-pressed", "true", PATIENCE).await?;
        page.script(&format!(
            "document.querySelector('[data-testid=\"{chart}\"]').scrollIntoView({{ block: 'center', behavior: 'instant' }})"
        ))
        .await?;
        let place = async || page.script("return window.scrollY").await?.as_f64().context("no place");
        let before = place().await?;
        touch(page, &chart, &[[(0.5, 60.0), (0.5, 260.0)]]).await?;
        eventually("the page is scrolled", PATIENCE, async || {
            let now = place().await?;
            ensure!(now < before - 50.0, "from {before} to {now}");
            Ok(())
        })
        .await?;
        ensure!(chosen_span(page).await? == Some(60), "one finger zoomed");
        nothing_wrong(page).await
    })
    .await;
}
