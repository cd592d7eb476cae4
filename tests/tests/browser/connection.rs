//! The page and its connections to the panel.

use crate::browser::Device;
use crate::run::{logged_in, nothing_wrong, with_panel};
use anyhow::ensure;
use shared::api::NodeInput;
use shared::testid;

/// More than the six connections that a browser opens to one address. Each page keeps one for its events, and the
/// browser keeps pages that were left, in case one goes back.
const VISITS: usize = 16;

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_were_left_hold_no_connection() {
    with_panel("visits", Device::Desk, async |page, panel| {
        logged_in(page, panel.password()).await?;
        for visit in 0..VISITS {
            page.open(["/nodes", "/tunnels"][visit % 2]).await?;
            page.shows(testid::EMPTY).await?;
        }
        // One that one comes back to is live again.
        page.back().await?;
        page.comes_to("/nodes").await?;
        let node = NodeInput {
            name: "made elsewhere".into(),
            server_ip: "192.0.2.1".into(),
            ..NodeInput::default()
        };
        let node = panel.api().await?.create_node(&node).await?;
        page.shows(&testid::with(testid::NODE_ROW, node.id)).await?;
        nothing_wrong(page).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panel_that_was_away_is_missed_and_caught_up_with() {
    with_panel("away", Device::Desk, async |page, panel| {
        logged_in(page, panel.password()).await?;
        page.click("nav:nodes").await?;
        page.shows(testid::EMPTY).await?;
        page.mark().await?;
        panel.kill().await?;
        page.shows(testid::OFFLINE_BANNER).await?;
        page.screenshot("zh-light-offline").await?;

        panel.start_again().await?;
        let node = NodeInput {
            name: "made elsewhere".into(),
            server_ip: "192.0.2.1".into(),
            ..NodeInput::default()
        };
        let node = panel.api().await?.create_node(&node).await?;
        page.hides(testid::OFFLINE_BANNER).await?;
        page.shows(&testid::with(testid::NODE_ROW, node.id)).await?;
        page.was_not_reloaded().await?;
        let others: Vec<String> =
            page.complaints().await?.into_iter().filter(|line| !of_the_network(line)).collect();
        ensure!(others.is_empty(), "the browser complains: {others:#?}");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_typed_survives_a_restart_of_the_panel() {
    with_panel("restart", Device::Desk, async |page, panel| {
        let field = |name: &str| testid::with(testid::NODE_FIELD, name);
        logged_in(page, panel.password()).await?;
        page.click("nav:nodes").await?;
        page.shows(testid::EMPTY).await?;
        page.mark().await?;
        page.click(testid::NODE_NEW).await?;
        page.fill(&field("name"), "tokyo-1").await?;
        page.fill(&field("serverIp"), "192.0.2.8").await?;

        panel.kill().await?;
        page.shows(testid::OFFLINE_BANNER).await?;
        // What cannot be saved now is said so, and stays.
        page.click(testid::NODE_SAVE).await?;
        page.shows(testid::FORM_ERROR).await?;
        ensure!(page.value(&field("name")).await? == "tokyo-1", "the name was lost");
        page.fill(&field("portRange"), "20000-20999").await?;
        panel.start_again().await?;
        page.hides(testid::OFFLINE_BANNER).await?;
        for (name, typed) in [("name", "tokyo-1"), ("serverIp", "192.0.2.8"), ("portRange", "20000-20999")] {
            let now = page.value(&field(name)).await?;
            ensure!(now == typed, "{name} is {now:?} after the restart");
        }
        // The login holds, and what was typed is what is saved.
        page.click(testid::NODE_SAVE).await?;
        page.shows(testid::NODE_SECRET).await?;
        page.click(testid::CANCEL).await?;
        let api = panel.api().await?;
        let nodes = api.nodes().await?;
        ensure!(
            nodes.iter().any(|node| node.name == "tokyo-1" && node.port_range == "20000-20999"),
            "another node was made: {nodes:?}"
        );

        // A form that fills a screen, over another restart.
        page.click("nav:tunnels").await?;
        page.click(testid::TUNNEL_NEW).await?;
        page.fill(testid::EDITOR_NAME, "hk-best").await?;
        panel.kill().await?;
        page.shows(testid::OFFLINE_BANNER).await?;
        panel.start_again().await?;
        page.hides(testid::OFFLINE_BANNER).await?;
        ensure!(page.value(testid::EDITOR_NAME).await? == "hk-best", "the tunnel's name was lost");

        // Events come again, not only what was fetched on the way back.
        page.click("nav:nodes").await?;
        page.shows(&testid::with(testid::NODE_ROW, nodes[0].id)).await?;
        let node = NodeInput {
            name: "made elsewhere".into(),
            server_ip: "192.0.2.1".into(),
            ..NodeInput::default()
        };
        let node = panel.api().await?.create_node(&node).await?;
        page.shows(&testid::with(testid::NODE_ROW, node.id)).await?;
        page.hides(testid::OFFLINE_BANNER).await?;
        page.was_not_reloaded().await?;
        let others: Vec<String> =
            page.complaints().await?.into_iter().filter(|line| !of_the_network(line)).collect();
        ensure!(others.is_empty(), "the browser complains: {others:#?}");
        Ok(())
    })
    .await;
}

/// A browser writes down every connection that failed.
fn of_the_network(line: &str) -> bool {
    [
        "ERR_CONNECTION_REFUSED",
        "ERR_CONNECTION_RESET",
        "ERR_INCOMPLETE_CHUNKED_ENCODING",
        "ERR_EMPTY_RESPONSE",
    ]
    .iter()
    .any(|code| line.contains(code))
}
