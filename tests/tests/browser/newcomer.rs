//! A newcomer's whole way, from an empty panel to bytes by way of the best exit: only what the page shows is used, and
//! what is pressed and filled in is found by the words on it.

use crate::browser::{Browser, Device};
use crate::page::{PATIENCE, Page};
use crate::run::{has_browser, in_this_browser, nothing_wrong};
use anyhow::{Context as _, Result, bail, ensure};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tests::netlab::{Impairment, Lab, LabError};
use tests::rig::client::Visit;
use tests::rig::{
    Agent, AgentOptions, Outcome, Panel, PanelOptions, Place, Process, Target, binaries, eventually,
};
use thirtyfour::components::SelectElement;
use thirtyfour::{Key, WebElement};

/// From an agent's start, or a forward's creation, until it is in use, and for the rounds that confirm an exit.
const SETTLE: Duration = Duration::from_secs(90);
const ENTRY: &str = "hongkong";
/// The exits in the order in which they are added, with one way from the entry. The second one is the best.
const EXITS: [(&str, u64); 2] = [("osaka", 60), ("tokyo", 10)];
const BEST: &str = "tokyo";

/// What stands on the controls and beside them, once per language.
struct Words {
    tag: &'static str,
    language: &'static str,
    username: &'static str,
    password: &'static str,
    log_in: &'static str,
    start_here: &'static str,
    nodes: &'static str,
    new_node: &'static str,
    node_name: &'static str,
    address: &'static str,
    create: &'static str,
    connected: &'static str,
    close: &'static str,
    settings: &'static str,
    probe_target: &'static str,
    save: &'static str,
    saved: &'static str,
    tunnels: &'static str,
    new_tunnel: &'static str,
    tunnel_name: &'static str,
    add_node: &'static str,
    best: &'static str,
    forwards: &'static str,
    new_forward: &'static str,
    forward_name: &'static str,
    targets: &'static str,
    copy: &'static str,
    copied: &'static str,
    search: &'static str,
    best_exit: &'static str,
    monitor: &'static str,
    in_force: &'static str,
    reason: &'static str,
    overview: &'static str,
    all_well: &'static str,
}

const CHINESE: Words = Words {
    tag: "zh",
    language: "简体中文",
    username: "用户名",
    password: "密码",
    log_in: "登录",
    start_here: "从这里开始",
    nodes: "节点",
    new_node: "新建节点",
    node_name: "节点名称",
    address: "服务器地址",
    create: "创建",
    connected: "代理程序已连接",
    close: "关闭",
    settings: "设置",
    probe_target: "探测目标",
    save: "保存",
    saved: "设置已保存",
    tunnels: "隧道",
    new_tunnel: "新建隧道",
    tunnel_name: "隧道名称",
    add_node: "添加节点",
    best: "最优",
    forwards: "转发",
    new_forward: "新建转发",
    forward_name: "转发名称",
    targets: "目标地址",
    copy: "复制",
    copied: "已复制",
    search: "按名称、隧道或地址搜索",
    best_exit: "最优出口: tokyo",
    monitor: "监控",
    in_force: "当前出口",
    reason: "当前出口就是最优的。",
    overview: "概览",
    all_well: "一切正常。",
};

const ENGLISH: Words = Words {
    tag: "en",
    language: "English",
    username: "User name",
    password: "Password",
    log_in: "Log in",
    start_here: "Start here",
    nodes: "Nodes",
    new_node: "New node",
    node_name: "Name",
    address: "Address",
    create: "Create",
    connected: "The agent is connected",
    close: "Close",
    settings: "Settings",
    probe_target: "Probe target",
    save: "Save",
    saved: "Settings saved",
    tunnels: "Tunnels",
    new_tunnel: "New tunnel",
    tunnel_name: "Name",
    add_node: "Add a node",
    best: "Best",
    forwards: "Forwards",
    new_forward: "New forward",
    forward_name: "Name",
    targets: "Targets",
    copy: "Copy",
    copied: "Copied",
    search: "Search by name, tunnel or address",
    best_exit: "Best exit: tokyo",
    monitor: "Monitor",
    in_force: "In force",
    reason: "The exit in force is the best.",
    overview: "Overview",
    all_well: "All is well.",
};

/// A button or a link with this on it. With a dialog open, only what is in it can be pressed.
async fn press(page: &Page, words: &str) -> Result<()> {
    let named = format!("normalize-space()='{words}' or @aria-label='{words}'");
    eventually(&format!("{words:?} can be pressed"), PATIENCE, async || {
        for element in page.all_at(&format!("//*[self::button or self::a][{named}]")).await? {
            let ready = element.is_displayed().await? && element.is_enabled().await?;
            if ready && element.click().await.is_ok() {
                return Ok(());
            }
        }
        bail!("nothing of this name can be pressed")
    })
    .await
}

/// What the n-th label of this text belongs to.
async fn labelled(page: &Page, label: &str, n: usize) -> Result<WebElement> {
    let label = format!("(//label[normalize-space()='{label}'])[{n}]");
    page.shows_at(&format!("//*[@id={label}/@for]")).await
}

async fn fill(page: &Page, label: &str, text: &str) -> Result<()> {
    let input = labelled(page, label, 1).await?;
    input.send_keys(Key::Control + "a").await?;
    input.send_keys(text).await?;
    let now = input.prop("value").await?.unwrap_or_default();
    ensure!(now == text, "{label} has {now:?} after {text:?} was typed");
    Ok(())
}

async fn choose(page: &Page, label: &str, n: usize, option: &str) -> Result<()> {
    eventually(&format!("{option} can be chosen as {label}"), PATIENCE, async || {
        let select = labelled(page, label, n).await?;
        Ok(SelectElement::new(&select).await?.select_by_exact_text(option).await?)
    })
    .await
}

/// Waits until something on the screen says exactly this.
async fn reads(page: &Page, text: &str) -> Result<WebElement> {
    let at = format!("//*[text()[normalize-space()='{text}']]");
    eventually(&format!("the page says {text:?}"), SETTLE, async || {
        for element in page.all_at(&at).await? {
            if element.is_displayed().await? {
                return Ok(element);
            }
        }
        bail!("it does not")
    })
    .await
}

/// What a newcomer has: servers, and something to forward to.
struct Servers {
    lab: Lab,
    panel: Panel,
    target: Target,
}

async fn servers(name: &str) -> Option<Servers> {
    let lab = match Lab::new(name) {
        Ok(lab) => lab,
        Err(error @ LabError::Unavailable { .. }) => {
            println!("SKIPPED: {error:#}");
            return None;
        }
        Err(error) => panic!("{error:#}"),
    };
    let mut names: BTreeMap<IpAddr, String> = BTreeMap::new();
    for host in [ENTRY, EXITS[0].0, EXITS[1].0, "client"] {
        names.insert(lab.host(host).unwrap().ip().into(), host.to_owned());
    }
    for (exit, ms) in EXITS {
        lab.link(ENTRY, exit).set_both(Impairment::delay(Duration::from_millis(ms))).unwrap();
    }
    let target = Target::start(lab.host("target").unwrap(), names).unwrap();
    // As it is without any configuration: it makes the first password by itself.
    let environment = vec![("EXITPILOT_ADMIN_PASSWORD".to_owned(), String::new())];
    let options = PanelOptions { environment, ..PanelOptions::default() };
    let panel = Panel::start(&lab.host("panel").unwrap(), options).await.unwrap();
    Some(Servers { lab, panel, target })
}

/// Does on a node's server what the page says, below a folder instead of on the whole system, and starts the agent as
/// its service would: from the settings that the script wrote.
async fn install(servers: &Servers, name: &str, line: &str, folder: &Path) -> Result<Agent> {
    let place: Place = (&servers.lab.host(name)?).into();
    let binary = binaries::find(binaries::AGENT)?;
    let below = format!("sh -s -- --root {} --binary {}", folder.display(), binary.display());
    let (before, after) =
        line.split_once("sudo sh -s --").with_context(|| format!("a line like {line:?}"))?;
    let mut shell = place.command("sh");
    shell.arg("-c").arg(format!("{before}{below}{after} && echo installed"));
    let mut shell = Process::start(&format!("installing {name}"), shell)?;
    shell.wait_for("installed", SETTLE, |line| (line == "installed").then_some(())).await?;
    let settings = std::fs::read_to_string(folder.join("etc/exitpilot/agent.env"))?;
    let setting = |name: &str| {
        let found = settings.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        found.map(str::to_owned).with_context(|| format!("{name} is not in {settings:?}"))
    };
    let panel = setting("EXITPILOT_AGENT_PANEL")?;
    let panel = panel.strip_prefix("ws://").with_context(|| format!("a panel at {panel:?}"))?.parse()?;
    let options = AgentOptions {
        name: name.to_owned(),
        panel,
        secret: setting("EXITPILOT_AGENT_SECRET")?,
        log: String::new(),
    };
    Agent::start(place, options)
}

/// Makes a node and installs its agent; the page says when it is connected.
async fn node(page: &Page, servers: &Servers, words: &Words, name: &str, folder: &Path) -> Result<Agent> {
    press(page, words.new_node).await?;
    fill(page, words.node_name, name).await?;
    fill(page, words.address, &servers.lab.host(name)?.ip().to_string()).await?;
    press(page, words.create).await?;
    let line = page.shows_at("//code[starts-with(normalize-space(), 'curl ')]").await?.text().await?;
    let folder = folder.join(name);
    std::fs::create_dir(&folder)?;
    let agent = install(servers, name, &line, &folder).await?;
    reads(page, words.connected).await?;
    press(page, words.close).await?;
    Ok(agent)
}

/// What the button beside the only address copies, seen by pasting it.
async fn copied_address(page: &Page, words: &Words) -> Result<SocketAddr> {
    press(page, words.copy).await?;
    reads(page, words.copied).await?;
    let search = page.shows_at(&format!("//input[@placeholder='{}']", words.search)).await?;
    search.send_keys(Key::Control + "v").await?;
    let pasted = search.prop("value").await?.unwrap_or_default();
    // It is found by its address, too.
    page.shows_at(&format!("//code[.='{pasted}']")).await?;
    pasted.parse().with_context(|| format!("{pasted:?} is no address to connect to"))
}

async fn whole_way(page: &Page, servers: &Servers, words: &Words, folder: &Path) -> Result<()> {
    let printed = servers.panel.log().find(|line| Some(line.split_once("with the password ")?.1.to_owned()));
    page.open("/").await?;
    press(page, words.language).await?;
    fill(page, words.username, "admin").await?;
    fill(page, words.password, &printed.context("no password was printed")?).await?;
    press(page, words.log_in).await?;
    reads(page, words.start_here).await?;
    page.only_complains_about("/api/v1/auth/me").await?;

    press(page, words.nodes).await?;
    let mut agents = Vec::new();
    for name in [ENTRY, EXITS[0].0, EXITS[1].0] {
        agents.push(node(page, servers, words, name, folder).await?);
    }

    // There is no internet in a lab.
    press(page, words.settings).await?;
    fill(page, words.probe_target, &servers.target.probe().to_string()).await?;
    press(page, words.save).await?;
    reads(page, words.saved).await?;

    press(page, words.tunnels).await?;
    press(page, words.new_tunnel).await?;
    fill(page, words.tunnel_name, "my first").await?;
    choose(page, words.add_node, 1, ENTRY).await?;
    for (exit, _) in EXITS {
        choose(page, words.add_node, 2, exit).await?;
    }
    let best = labelled(page, words.best, 1).await?;
    ensure!(best.is_selected().await?, "{} is not what is proposed", words.best);
    press(page, words.create).await?;
    // By itself, from the first round on.
    reads(page, words.best_exit).await?;

    press(page, words.forwards).await?;
    press(page, words.new_forward).await?;
    fill(page, words.forward_name, "my service").await?;
    fill(page, words.targets, &servers.target.service().to_string()).await?;
    press(page, words.create).await?;
    let address = copied_address(page, words).await?;
    let exits = EXITS.map(|(exit, _)| exit.to_owned()).into();
    let payload: Arc<[u8]> = Arc::from(&b"the first bytes"[..]);
    let visit = Visit { place: (&servers.lab.host("client")?).into(), exits: Arc::new(exits), payload };
    eventually("the first bytes go by way of the best exit", SETTLE, async || {
        let outcome = visit.pay(address).await;
        ensure!(outcome == Outcome::Served(BEST.to_owned()), "{outcome:?}");
        Ok(())
    })
    .await?;
    let served = servers.target.served();
    ensure!(served.keys().all(|from| from == BEST), "the target was reached from {served:?}");

    press(page, words.tunnels).await?;
    press(page, words.monitor).await?;
    reads(page, words.reason).await?;
    let row = format!("//tr[.//th[contains(., '{BEST}')] and contains(., '{}')]", words.in_force);
    page.shows_at(&row).await?;
    page.screenshot(&format!("{}-newcomer-monitor", words.tag)).await?;
    press(page, words.overview).await?;
    reads(page, words.all_well).await?;
    nothing_wrong(page).await
}

async fn in_language(name: &str, words: &Words) {
    if !has_browser() {
        return;
    }
    let Some(servers) = servers(name).await else { return };
    let panel = servers.lab.host("panel").unwrap();
    let there = servers.panel.address();
    let here = servers.lab.publish(&panel, there.port()).unwrap();
    // The browser is outside the lab; its address bar, and so the page, says what everybody in the lab would use.
    let way = format!("--host-resolver-rules=MAP {} {here}", there.ip());
    let browser = Browser::start_with(Device::Desk, &[way]).await.unwrap();
    let folder = tempfile::Builder::new().prefix("exitpilot-newcomer-").tempdir().unwrap();
    let below: PathBuf = folder.path().to_owned();
    in_this_browser(name, browser, there, async |page| whole_way(page, &servers, words, &below).await).await;
    let Servers { lab, panel, target } = servers;
    drop((panel, target));
    lab.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_gets_to_a_best_tunnel_by_what_the_page_says_in_chinese() {
    in_language("newcomer-zh", &CHINESE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_gets_to_a_best_tunnel_by_what_the_page_says_in_english() {
    in_language("newcomer-en", &ENGLISH).await;
}
