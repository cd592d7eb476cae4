//! Going from screen to screen, for as long as a working day has: what a screen needed goes with it.

use crate::browser::Device;
use crate::page::Page;
use crate::run::{logged_in, nothing_wrong, with_panel};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use shared::api::NodeInput;
use shared::testid;
use tests::rig::Api;

/// Rows of each list. Each of them reads what its screen does not own: language, session, lists, names.
const ROWS: i64 = 40;
/// Bytes by which the modules' memory may still grow after the first rounds. A note of 48 bytes that stays of every reader
/// makes more than a megabyte in [`ROUNDS`].
const SETTLES: u64 = 64 * 1024;
/// Bytes of the browser's own heap per round that may stay.
const PER_ROUND: u64 = 2048;
/// Through all screens, before anything is measured and then.
const WARM: u32 = 20;
const ROUNDS: u32 = 100;

/// Remembers the memory of every module that is loaded, and counts event streams.
const KEEP_MEMORY: &str = "
    window.moduleMemories = [];
    const load = WebAssembly.instantiateStreaming;
    WebAssembly.instantiateStreaming = async (...given) => {
        const made = await load(...given);
        window.moduleMemories.push(made.instance.exports.memory);
        return made;
    };
    window.streams = 0;
    window.EventSource = class extends EventSource {
        constructor(...given) {
            super(...given);
            window.streams += 1;
        }
    };";

async fn filled(api: &Api) -> Result<()> {
    let mut nodes = Vec::new();
    for n in 1..=ROWS {
        let node = NodeInput {
            name: format!("node {n}"),
            server_ip: format!("192.0.2.{n}"),
            port_range: "10000-60000".to_owned(),
            ..NodeInput::default()
        };
        nodes.push(api.create_node(&node).await?.id);
    }
    for (n, entry) in nodes.iter().enumerate() {
        let exit = |by: usize| json!({ "nodeId": nodes[(n + by) % nodes.len()] });
        let tunnel = serde_json::from_value(json!({
            "name": format!("tunnel {n}"), "entry": { "nodes": [{ "nodeId": entry }] },
            "exit": { "strategy": "best", "nodes": [exit(1), exit(2)] }
        }))?;
        let tunnel = api.create_tunnel(&tunnel).await?;
        let forward =
            json!({ "tunnelId": tunnel.id, "name": format!("forward {n}"), "targets": ["198.51.100.9:80"] });
        api.create_forward(&serde_json::from_value(forward)?).await?;
    }
    Ok(())
}

/// Goes so many times through these screens: an address each, and the start of the name of what shows that it is there.
async fn rounds(page: &Page, screens: &[(&str, &str)], times: u32) -> Result<()> {
    // A call has a limit of half a minute.
    for _ in 0..times {
        let script = format!(
            "const [done] = arguments;
             const comes = (name) => new Promise((resolve) => {{
                 const holds = () => document.querySelector(`[data-testid^=\"${{name}}\"]`)
                     && !document.querySelector('.state.loading');
                 const look = () => holds() ? resolve() : setTimeout(look, 1);
                 look();
             }});
             (async () => {{
                 for (const [path, name] of {}) {{
                     history.pushState(null, '', path);
                     dispatchEvent(new PopStateEvent('popstate'));
                     await new Promise((resolve) => setTimeout(resolve));
                     await comes(name);
                 }}
             }})().then(() => done('done'), (error) => done(String(error)));",
            json!(screens)
        );
        ensure!(page.answer(&script).await? == "done");
    }
    // What is finalised by one collection goes with the next.
    for _ in 0..3 {
        page.browser("HeapProfiler.collectGarbage").await?;
        page.answer("setTimeout(arguments[0], 10)").await?;
    }
    Ok(())
}

/// Bytes of all modules, and of the browser's heap.
async fn memory(page: &Page) -> Result<(u64, u64)> {
    page.browser("Performance.enable").await?;
    let metrics = page.browser("Performance.getMetrics").await?;
    let metrics = metrics["metrics"].as_array().cloned().unwrap_or_default();
    let heap = metrics.iter().find(|metric| metric["name"] == "JSHeapUsedSize");
    let heap = heap.and_then(|metric| metric["value"].as_f64()).context("no heap")?;
    let modules = page
        .script("return window.moduleMemories.reduce((sum, memory) => sum + memory.buffer.byteLength, 0)")
        .await?;
    Ok((modules.as_u64().filter(|bytes| *bytes > 0).context("no module was seen")?, heap as u64))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_rounds_through_all_screens_leave_nothing_behind() {
    with_panel("leaks", Device::Desk, async |page, panel| {
        filled(&panel.api().await?).await?;
        let kept = json!({ "source": KEEP_MEMORY });
        page.tell_browser("Page.addScriptToEvaluateOnNewDocument", kept).await?;
        logged_in(page, panel.password()).await?;
        let screens = [
            ("/", testid::PAGE_TITLE),
            ("/tunnels", testid::TUNNEL_ROW),
            ("/forwards", testid::FORWARD_ROW),
            ("/nodes", testid::NODE_ROW),
            ("/settings", testid::SETTINGS_SAVE),
            ("/audit", testid::AUDIT_ROW),
            ("/tunnels/1/monitor", testid::CHART_RANGE),
            ("/tunnels/1/edit", testid::EDITOR),
        ];
        rounds(page, &screens, WARM).await?;
        let (modules, _) = memory(page).await?;
        rounds(page, &screens, ROUNDS / 2).await?;
        let (half, heap) = memory(page).await?;
        rounds(page, &screens, ROUNDS / 2).await?;
        let (end, end_heap) = memory(page).await?;
        println!("REPORT: modules {modules}, {half}, {end}; heap {heap}, {end_heap}");
        ensure!(end <= modules + SETTLES, "the modules' memory grows: {modules}, {half}, {end}");
        let may_stay = u64::from(ROUNDS / 2) * PER_ROUND;
        ensure!(end_heap < heap + may_stay, "the browser's heap grows: {heap}, {end_heap}");
        let streams = page.script("return window.streams").await?;
        ensure!(streams == json!(1), "{streams} event streams for one page");
        nothing_wrong(page).await
    })
    .await;
}
