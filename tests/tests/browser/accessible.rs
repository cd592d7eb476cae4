//! No barriers: axe-core finds nothing serious on any screen, and everything can be done from the keyboard.

use crate::browser::Device;
use crate::looks::{is_there, screens};
use crate::monitor::{lay_links, options};
use crate::page::Page;
use crate::run::{in_browser, lab, logged_in, nothing_wrong, with_panel};
use anyhow::{Result, ensure};
use serde::Deserialize;
use shared::testid;
use std::env;
use std::path::PathBuf;
use std::time::Duration;
use thirtyfour::Key;

/// For the first decision.
const DECISION: Duration = Duration::from_secs(60);
/// More presses than any screen of these tests has things that take the focus.
const STOPS: usize = 40;

/// Something axe-core objects to.
#[derive(Debug, Deserialize)]
struct Finding {
    impact: Option<String>,
    rule: String,
    nodes: Vec<String>,
}

/// The text of axe-core: `EXITPILOT_AXE`, else where `cargo xtask setup` puts it. `None` where there is none; then the
/// skip is already announced.
fn axe() -> Option<String> {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")));
    let tools = cache.and_then(|cache| std::fs::read_dir(cache.join("exitpilot/tools")).ok());
    let tools = tools.into_iter().flatten().filter_map(|folder| Some(folder.ok()?.path().join("axe.min.js")));
    let mut scripts = env::var_os("EXITPILOT_AXE").map(PathBuf::from).into_iter().chain(tools);
    let found = scripts.find_map(|script| std::fs::read_to_string(script).ok());
    if found.is_none() {
        println!("SKIPPED: no axe-core, run cargo xtask setup");
    }
    found
}

/// What axe-core finds on everything that can be seen now.
async fn findings(page: &Page, axe: &str) -> Result<Vec<Finding>> {
    // Colours that are still on their way to others have any contrast.
    page.rests().await?;
    let there = page.script("return typeof window.axe === 'object'").await?;
    if there != serde_json::Value::Bool(true) {
        page.script(axe).await?;
    }
    let found = page
        .answer(
            "const [done] = arguments;
             axe.run(document, { resultTypes: ['violations'] }).then(
                 ({ violations }) => done(violations.map(({ id, impact, nodes }) => ({
                     rule: id,
                     impact,
                     nodes: nodes.map((n) => n.html.slice(0, 200) + ' ' + n.failureSummary),
                 }))),
                 (error) => done(String(error)),
             );",
        )
        .await?;
    Ok(serde_json::from_value(found)?)
}

/// One look at all screens.
struct Look<'a> {
    page: &'a Page,
    axe: &'a str,
    name: &'static str,
    serious: Vec<String>,
}

impl Look<'_> {
    /// Notes what is wrong now. What is less than serious is told only.
    async fn at(&mut self, screen: &str) -> Result<()> {
        for Finding { impact, rule, nodes } in findings(self.page, self.axe).await? {
            let impact = impact.unwrap_or_default();
            let line = format!("{} {screen}: {impact}: {rule}: {nodes:#?}", self.name);
            if matches!(impact.as_str(), "serious" | "critical") {
                self.serious.push(line);
            } else {
                println!("REPORT: {line}");
            }
        }
        Ok(())
    }

    /// Opens something, looks, and closes it.
    async fn dialog(&mut self, open: &str, shown: &str, screen: &str) -> Result<()> {
        self.page.click(open).await?;
        self.page.shows(shown).await?;
        self.page.is_still().await?;
        self.at(screen).await?;
        self.page.keys(Key::Escape + "").await?;
        self.page.hides(shown).await
    }

    fn is_fine(&self) -> Result<()> {
        ensure!(self.serious.is_empty(), "{} serious findings: {:#?}", self.serious.len(), self.serious);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_screen_has_a_serious_barrier() {
    let Some(axe) = axe() else { return };
    let Some(lab) = lab(options("accessible")).await else { return };
    lay_links(&lab.stage).unwrap();
    let stage = &lab.stage;
    let input = stage.best("hk-best", &["entry-1"], &[], &["exit-a", "exit-b", "exit-c"]).unwrap();
    let (tunnel, forward, _) = stage.open(&input).await.unwrap();
    stage.switched(tunnel.id, "exit-a", DECISION).await.unwrap();
    // A group that is decided ahead of connections, and who is in use in it.
    let mut ahead = stage.best("fastest", &["entry-1"], &[], &["exit-a", "exit-b"]).unwrap();
    if let Some(exit) = &mut ahead.exit {
        exit.strategy = "urltest".into();
    }
    let (ahead, _, _) = stage.open(&ahead).await.unwrap();
    let entry = stage.node("entry-1").unwrap();
    let mut screens = screens(stage, &tunnel).unwrap();
    let in_use = testid::of(testid::GROUP_IN_USE, entry, "tcp4");
    screens.push((format!("/tunnels/{}/monitor", ahead.id), "groups", in_use));
    let password = stage.panel.password();
    let exit = stage.node("exit-b").unwrap();

    for (name, device, language, theme) in [
        ("zh-light", Device::Desk, "zh-CN", "light"),
        ("en-dark", Device::Desk, "en", "dark"),
        ("narrow-zh-dark", Device::Phone, "zh-CN", "dark"),
    ] {
        in_browser(&format!("accessible-{name}"), device, lab.address, async |page| {
            let mut look = Look { page, axe: &axe, name, serious: Vec::new() };
            page.open("/").await?;
            page.shows(testid::LOGIN_SUBMIT).await?;
            page.script(&format!(
                "localStorage.setItem('exitpilot.theme', '{theme}');
                 localStorage.setItem('exitpilot.language', '{language}');"
            ))
            .await?;
            page.reload().await?;
            page.click(testid::LOGIN_SUBMIT).await?;
            page.shows(testid::LOGIN_ERROR).await?;
            look.at("login").await?;
            logged_in(page, password).await?;
            for (path, screen, mark) in &screens {
                page.open(path).await?;
                is_there(page, mark).await?;
                page.is_still().await?;
                look.at(screen).await?;
            }

            page.open("/tunnels/new").await?;
            page.click(testid::EDITOR_SAVE).await?;
            page.shows("field-error:name").await?;
            look.at("editor with errors").await?;
            page.open("/nodes").await?;
            look.dialog(testid::NODE_NEW, testid::NODE_SAVE, "node").await?;
            let install = testid::with(testid::NODE_INSTALL, exit);
            look.dialog(&install, testid::INSTALL_COMMAND, "install").await?;
            let delete = testid::with(testid::NODE_DELETE, exit);
            look.dialog(&delete, testid::DELETE_PREVIEW, "delete a node").await?;
            page.open("/tunnels").await?;
            let delete = testid::with(testid::TUNNEL_DELETE, tunnel.id);
            look.dialog(&delete, testid::DELETE_PREVIEW, "delete a tunnel").await?;
            page.open(&format!("/tunnels/{}/monitor", tunnel.id)).await?;
            // What comes after it moves the button.
            is_there(page, &testid::with(testid::OWNER_APPLIED, stage.node("entry-1")?)).await?;
            look.dialog(testid::PIN_OPEN, testid::PIN_SAVE, "pin").await?;
            page.focus_on(&testid::with(testid::CHART, entry)).await?;
            page.shows(&testid::with(testid::CHART_TIP, entry)).await?;
            look.at("chart").await?;
            page.click(&testid::with(testid::CHART_TOOL, "table")).await?;
            page.shows(&testid::with(testid::CHART_TABLE, entry)).await?;
            look.at("chart as a table").await?;
            page.open("/forwards").await?;
            look.dialog(testid::FORWARD_NEW, testid::FORWARD_SAVE, "forward").await?;
            let diagnose = testid::with(testid::FORWARD_DIAGNOSE, forward.id);
            look.dialog(&diagnose, testid::DIAGNOSE_STATUS, "diagnose").await?;
            page.open("/settings").await?;
            look.dialog(testid::USER_NEW, testid::USER_SAVE, "user").await?;
            look.is_fine()?;
            nothing_wrong(page).await
        })
        .await;
    }
    lab.stage.close().await;
}

/// Goes on to something with the tabulator, as somebody without a mouse does. Returns how often it was pressed.
async fn tab_to(page: &Page, id: &str) -> Result<usize> {
    for presses in 0..STOPS {
        if page.focused().await? == id {
            return Ok(presses);
        }
        page.keys(Key::Tab + "").await?;
    }
    anyhow::bail!("the focus never comes to {id}; it is on {}", page.focused().await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_made_from_the_keyboard_alone() {
    with_panel("keyboard", Device::Desk, async |page, panel| {
        let field = |name: &str| testid::with(testid::NODE_FIELD, name);
        page.open("/").await?;
        page.shows(testid::LOGIN_SUBMIT).await?;
        tab_to(page, testid::LOGIN_USERNAME).await?;
        page.keys("admin").await?;
        tab_to(page, testid::LOGIN_PASSWORD).await?;
        page.keys(panel.password()).await?;
        page.keys(Key::Enter + "").await?;
        page.shows(testid::SHELL).await?;
        page.only_complains_about("/api/v1/auth/me").await?;

        tab_to(page, "nav:nodes").await?;
        page.keys(Key::Enter + "").await?;
        page.comes_to("/nodes").await?;
        page.shows(testid::EMPTY).await?;
        tab_to(page, testid::NODE_NEW).await?;
        page.keys(Key::Enter + "").await?;
        page.shows(testid::NODE_SAVE).await?;

        // Round and round, and never out of the dialog into the page behind it.
        let mut seen = Vec::new();
        for _ in 0..STOPS {
            page.keys(Key::Tab + "").await?;
            let outside = page
                .script(
                    "const e = document.activeElement;
                     return e !== document.body && !e.closest('dialog') ? e.outerHTML.slice(0, 200) : null",
                )
                .await?;
            ensure!(outside.is_null(), "the focus left the dialog for {outside}");
            seen.push(page.focused().await?);
        }
        for wanted in [&field("name"), &field("serverIp"), testid::NODE_SAVE, testid::CANCEL] {
            ensure!(seen.iter().any(|it| it == wanted), "{wanted} cannot be reached: {seen:?}");
        }

        // Away and back to where one was.
        page.keys(Key::Escape + "").await?;
        page.hides(testid::NODE_SAVE).await?;
        page.focus_comes_to(testid::NODE_NEW).await?;
        page.keys(Key::Enter + "").await?;
        page.shows(testid::NODE_SAVE).await?;

        tab_to(page, &field("name")).await?;
        page.keys("tokyo-1").await?;
        tab_to(page, &field("serverIp")).await?;
        page.keys("not an address").await?;
        page.keys(Key::Enter + "").await?;
        page.shows("field-error:serverIp").await?;
        // What is wrong is where one is, so that one hears of it.
        page.focus_comes_to(&field("serverIp")).await?;
        let described = page
            .script(
                "const e = document.activeElement;
                 const about = (e.getAttribute('aria-describedby') || '').split(' ');
                 const texts = about.map((id) => document.getElementById(id)?.textContent || '');
                 return [e.getAttribute('aria-invalid'), texts.join(' ').trim()]",
            )
            .await?;
        ensure!(described[0] == "true" && described[1] != "", "the field says nothing: {described}");
        for _ in 0.."not an address".len() {
            page.keys(Key::Backspace + "").await?;
        }
        page.keys("127.0.0.1").await?;
        page.keys(Key::Enter + "").await?;

        page.shows(testid::NODE_SECRET).await?;
        ensure!(panel.api().await?.nodes().await?.len() == 1, "no node was made");
        tab_to(page, testid::CANCEL).await?;
        page.keys(Key::Enter + "").await?;
        page.hides(testid::NODE_SECRET).await?;
        page.focus_comes_to(testid::NODE_NEW).await?;
        nothing_wrong(page).await
    })
    .await;
}
