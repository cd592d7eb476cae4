//! The npm package `@exitpilot/tunnel-editor` in pages of somebody else's: plain HTML and React, before a panel and before
//! a `fetch` of the page's own.

use crate::browser::Device;
use crate::dashboard_site;
use crate::package::{copy, says};
use crate::page::{PATIENCE, Page};
use crate::run::{has_browser, in_browser};
use anyhow::{Context as _, Result, ensure};
use shared::api::{NodeInput, Tunnel};
use shared::strategy::Strategy;
use shared::testid;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use tests::rig::{Panel, PanelOptions, Place, eventually};

/// What the package asks of a page: nothing inline, only WebAssembly.
const POLICY: &str = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'";
const ELEMENT: &str = "exitpilot-tunnel-editor";
/// Where the function puts the editor.
const MOUNTED: &str = "#page div > div";

/// A folder with the package in it; `None` where it was not built or there is no browser, which is said then.
fn site() -> Option<TempDir> {
    let package =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("target/dist/npm/tunnel-editor");
    if !package.join("package.json").is_file() {
        println!("SKIPPED: the npm package is not built, run cargo xtask packages");
        return None;
    }
    if !has_browser() {
        return None;
    }
    let site = tempfile::tempdir().unwrap();
    copy(&package, site.path()).unwrap();
    Some(site)
}

/// Bundles the React example where it is. False where there is no React, which is said then.
fn bundled(site: &Path) -> bool {
    let modules = env::var_os("EXITPILOT_REACT_DIR").map(|folder| PathBuf::from(folder).join("node_modules"));
    let Some(modules) = modules.filter(|modules| modules.join("react-dom").is_dir()) else {
        println!("SKIPPED: React is not installed, run cargo xtask setup");
        return false;
    };
    let bundler =
        ["linux-x64", "linux-arm64"].map(|name| modules.join("@esbuild").join(name).join("bin/esbuild"));
    let bundler = bundler.into_iter().find(|program| program.is_file()).unwrap();
    let example = site.join("examples/react");
    let output = Command::new(bundler)
        .current_dir(&example)
        .env("NODE_PATH", &modules)
        .args(["main.jsx", "--bundle", "--format=esm", "--jsx=automatic", "--outfile=bundle.js"])
        .arg("--define:process.env.NODE_ENV=\"production\"")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let module = "exitpilot_tunnel_editor_bg.wasm";
    fs::copy(site.join(module), example.join(module)).unwrap();
    true
}

/// A panel with an entry and three exits.
async fn panel() -> (Panel, Vec<String>) {
    let panel = Panel::start(Place::Loopback, PanelOptions::default()).await.unwrap();
    let api = panel.api().await.unwrap();
    let mut ids = Vec::new();
    for name in ["entry-1", "exit-a", "exit-b", "exit-c"] {
        let node = NodeInput { name: name.into(), server_ip: "192.0.2.1".into(), ..NodeInput::default() };
        ids.push(api.create_node(&node).await.unwrap().id.to_string());
    }
    (panel, ids)
}

async fn tunnels(panel: &Panel) -> Result<Vec<Tunnel>> {
    Ok(panel.api().await?.tunnels().await?)
}

/// A token, got as the page's own server would: without a cookie being left behind.
async fn token(page: &Page, panel: &Panel) -> Result<String> {
    let login = serde_json::json!({ "username": "admin", "password": panel.password() }).to_string();
    let script = format!(
        "fetch('/api/v1/auth/login', {{ method: 'POST', credentials: 'omit', body: {}, \
         headers: {{ 'content-type': 'application/json' }} }})
            .then((it) => it.json()).then((it) => arguments[0](it.token))",
        serde_json::to_string(&login)?
    );
    let token = page.answer(&script).await?;
    token.as_str().map(str::to_owned).context("no token")
}

/// Fills in what a tunnel needs.
async fn describe(editor: &Page, name: &str, nodes: &[String]) -> Result<()> {
    editor.fill(testid::EDITOR_NAME, name).await?;
    editor.choose("editor-add-node:entry", &nodes[0]).await?;
    for exit in &nodes[1..3] {
        editor.choose("editor-add-node:exit", exit).await?;
    }
    editor.click("editor-strategy-option:exit:best").await
}

/// The name of what has the focus in the editor's tree.
async fn focused(page: &Page, host: &str) -> Result<String> {
    let script =
        format!("return document.querySelector('{host}').shadowRoot.activeElement?.dataset.testid ?? ''");
    Ok(page.script(&script).await?.as_str().unwrap_or_default().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_page_creates_and_edits_tunnels_of_a_panel() {
    let Some(site) = site() else { return };
    let (panel, nodes) = panel().await;
    let address =
        dashboard_site::serve_before(site.path().to_owned(), POLICY.to_owned(), Some(panel.address()));
    let address = address.await.unwrap();
    in_browser("plugin-plain", Device::Desk, address, async |page| {
        let editor = page.inside(ELEMENT);
        page.open("/examples/plain.html?1#memory").await?;
        editor.shows(testid::EDITOR).await?;
        let token = token(page, &panel).await?;

        // What the page finds by itself is told at its field, which gets the focus; labels lead to their fields.
        page.open(&format!("/examples/plain.html?2#token={token}&language=en")).await?;
        editor.fill(testid::EDITOR_NAME, "x").await?;
        editor.click(testid::EDITOR_SAVE).await?;
        editor.says(&testid::with(testid::FIELD_ERROR, "name"), "Give a name of 2 to 50 characters").await?;
        eventually("the field has the focus", PATIENCE, async || {
            let now = focused(page, ELEMENT).await?;
            ensure!(now == testid::EDITOR_NAME, "it is on {now:?}");
            Ok(())
        })
        .await?;
        page.script(&format!(
            "const root = document.querySelector('{ELEMENT}').shadowRoot;
            root.activeElement.blur();
            root.querySelector('label[for=' + root.querySelector('[data-testid={}]').id + ']').click()",
            testid::EDITOR_NAME
        ))
        .await?;
        ensure!(focused(page, ELEMENT).await? == testid::EDITOR_NAME, "the label leads elsewhere");

        describe(&editor, "outside", &nodes).await?;
        page.screenshot("en-light-plugin").await?;
        page.script(&format!("document.querySelector('{ELEMENT}').setAttribute('theme', 'dark')")).await?;
        page.script(&format!("document.querySelector('{ELEMENT}').setAttribute('language', 'zh-CN')"))
            .await?;
        editor.says(testid::EDITOR_SAVE, "创建").await?;
        ensure!(editor.value(testid::EDITOR_NAME).await? == "outside", "the name was lost");
        page.screenshot("zh-dark-plugin").await?;
        editor.click(testid::EDITOR_SAVE).await?;
        says(page, "said", "saved: outside").await?;
        let made = tunnels(&panel).await?.pop().context("not stored")?;
        let exit = made.exit.as_ref().context("no exits")?;
        ensure!(
            made.name == "outside" && exit.strategy == Strategy::Best && exit.nodes.len() == 2,
            "{made:?}"
        );

        // What only the panel knows: a port that another tunnel has.
        let port = exit.nodes[0].port.context("no port")?;
        page.open(&format!("/examples/plain.html?3#token={token}")).await?;
        describe(&editor, "second", &nodes).await?;
        let field = testid::of(testid::EDITOR_NODE_PORT, "exit", &nodes[1]);
        editor.fill(&field, &port.to_string()).await?;
        editor.click(testid::EDITOR_SAVE).await?;
        editor.shows(&testid::with(testid::FIELD_ERROR, "exit.nodes[0].port")).await?;
        ensure!(editor.value(&field).await? == port.to_string(), "the port was lost");
        page.screenshot("zh-light-plugin-refused").await?;
        editor.click(testid::EDITOR_CANCEL).await?;
        says(page, "said", "cancelled").await?;

        page.open(&format!("/examples/plain.html?4#token={token}&tunnel={}", made.id)).await?;
        ensure!(editor.value(testid::EDITOR_NAME).await? == "outside", "another tunnel is shown");
        editor.fill(testid::EDITOR_NAME, "renamed").await?;
        editor.click(testid::EDITOR_SAVE).await?;
        says(page, "said", "saved: renamed").await?;
        let stored = tunnels(&panel).await?;
        ensure!(
            stored.len() == 1 && stored[0].name == "renamed" && stored[0].exit == made.exit,
            "{stored:?}"
        );

        // A token that is refused is told, and nothing is lost.
        page.open("/examples/plain.html?5#token=none&language=en").await?;
        editor.says(testid::LOAD_ERROR, "Your session has ended").await?;
        let others: Vec<String> = page.complaints().await?;
        let expected = ["favicon.ico", "422", "401"];
        let others: Vec<&String> =
            others.iter().filter(|it| !expected.iter().any(|e| it.contains(e))).collect();
        ensure!(others.is_empty(), "the browser complains: {others:#?}");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_react_page_needs_no_panel_and_gives_back_what_it_showed() {
    let Some(site) = site() else { return };
    if !bundled(site.path()) {
        return;
    }
    let (panel, nodes) = panel().await;
    let address =
        dashboard_site::serve_before(site.path().to_owned(), POLICY.to_owned(), Some(panel.address()));
    let address = address.await.unwrap();
    in_browser("plugin-react", Device::Desk, address, async |page| {
        let editor = page.inside(MOUNTED);
        page.open("/examples/react/index.html").await?;
        page.script(KEEP_MEMORY).await?;
        press(page, "open").await?;
        describe(&editor, "reserved", &["1".into(), "2".into(), "3".into()]).await?;
        editor.click(testid::EDITOR_SAVE).await?;
        editor.says(&testid::with(testid::FIELD_ERROR, "name"), "The name “reserved” is taken").await?;
        press(page, "language").await?;
        editor.says(&testid::with(testid::FIELD_ERROR, "name"), "已被使用").await?;
        editor.fill(testid::EDITOR_NAME, "in memory").await?;
        editor.click(testid::EDITOR_SAVE).await?;
        says(page, "said", "saved: in memory").await?;
        press(page, "open").await?;
        ensure!(editor.value(testid::EDITOR_NAME).await? == "in memory", "another tunnel is shown");
        page.screenshot("zh-light-plugin-react").await?;
        editor.click(testid::EDITOR_CANCEL).await?;
        editor.hides(testid::EDITOR).await?;

        // Twenty times until everything has its size, and a hundred times more.
        cycles(page, 20).await?;
        let start = Figures::of(page).await?;
        cycles(page, 50).await?;
        let middle = Figures::of(page).await?;
        cycles(page, 50).await?;
        let end = Figures::of(page).await?;
        println!("REPORT: mounted 20 times: {start:?}");
        println!("REPORT: mounted 70 times: {middle:?}");
        println!("REPORT: mounted 120 times: {end:?}");
        ensure!(end.nodes <= start.nodes + SLACK, "nodes of the document stay: {start:?}, {end:?}");
        ensure!(end.listeners <= start.listeners + SLACK, "listeners stay: {start:?}, {end:?}");
        ensure!(end.wasm <= start.wasm + SETTLES, "the module's memory grows: {start:?}, {end:?}");
        ensure!(end.heap < middle.heap + 50 * PER_EDITOR, "the page's memory grows: {middle:?}, {end:?}");
        page.only_complains_about("favicon.ico").await?;

        let token = token(page, &panel).await?;
        page.open(&format!("/examples/react/index.html?2#token={token}")).await?;
        press(page, "open").await?;
        describe(&editor, "by react", &nodes).await?;
        editor.click(testid::EDITOR_SAVE).await?;
        says(page, "said", "saved: by react").await?;
        let stored = tunnels(&panel).await?;
        ensure!(stored.len() == 1 && stored[0].name == "by react", "{stored:?}");
        page.only_complains_about("favicon.ico").await?;
        Ok(())
    })
    .await;
}

async fn press(page: &Page, id: &str) -> Result<()> {
    page.script(&format!("document.getElementById('{id}').click()")).await.map(|_| ())
}

/// Remembers the memory of the module that is about to be loaded.
const KEEP_MEMORY: &str = "
    const load = WebAssembly.instantiateStreaming;
    WebAssembly.instantiateStreaming = async (...given) => {
        const made = await load(...given);
        window.moduleMemory = made.instance.exports.memory;
        return made;
    };";

/// Shows the editor and takes it away again, so many times.
async fn cycles(page: &Page, times: u32) -> Result<()> {
    // A call has a limit of half a minute.
    for _ in 0..times / 10 {
        let script = "
            const [done] = arguments;
            const form = () => document.querySelector('#page div > div')?.shadowRoot?.querySelector('form');
            const comes = (holds) => new Promise((resolve) => {
                const look = () => holds() ? resolve() : setTimeout(look, 1);
                look();
            });
            (async () => {
                for (let time = 0; time < 10; time++) {
                    document.getElementById('open').click();
                    await comes(() => form());
                    document.getElementById('open').click();
                    await comes(() => !document.querySelector('#page div'));
                }
            })().then(() => done('done'), (error) => done(String(error)));";
        ensure!(page.answer(script).await? == "done");
        collect(page).await?;
    }
    Ok(())
}

/// Lets the garbage go. What listens to elements is given back by the module when the browser has collected it; so what
/// waits for that is no leak, and a browser that is left alone may let it wait for long.
async fn collect(page: &Page) -> Result<()> {
    // What is finalised by one round is collected by the next.
    for _ in 0..3 {
        page.browser("HeapProfiler.collectGarbage").await?;
        page.answer("setTimeout(arguments[0], 10)").await?;
    }
    Ok(())
}

/// Of nodes and of listeners: what the browser itself may have more or less of.
const SLACK: u64 = 20;
/// Bytes that the page may have more per editor: an editor has hundreds of nodes and closures, and is never so small.
const PER_EDITOR: u64 = 4096;

/// Bytes by which the module's memory may still grow from the twentieth editor to the last: a hundred notes of 48 bytes for
/// each editor, which were left behind once, made 800,000 of it.
const SETTLES: u64 = 128 * 1024;

/// What is there after the garbage is gone.
#[derive(Debug)]
struct Figures {
    nodes: u64,
    listeners: u64,
    heap: u64,
    wasm: u64,
}

impl Figures {
    async fn of(page: &Page) -> Result<Self> {
        page.browser("Performance.enable").await?;
        collect(page).await?;
        let metrics = page.browser("Performance.getMetrics").await?;
        let metrics = metrics["metrics"].as_array().cloned().unwrap_or_default();
        let metric = |name: &str| {
            let found = metrics.iter().find(|metric| metric["name"] == name);
            found
                .and_then(|metric| metric["value"].as_f64())
                .map(|value| value as u64)
                .context("no such metric")
        };
        let wasm = page.script("return window.moduleMemory.buffer.byteLength").await?;
        Ok(Self {
            nodes: metric("Nodes")?,
            listeners: metric("JSEventListeners")?,
            heap: metric("JSHeapUsedSize")?,
            wasm: wasm.as_u64().context("the module was not seen")?,
        })
    }
}
