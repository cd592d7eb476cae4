//! A dashboard made for Clash in front of an agent, as its users have it: on another origin than the agent's API.

use crate::address::{exit_ip, fresh};
use crate::browser::Device;
use crate::page::{PATIENCE, Page};
use crate::run::{has_browser, in_browser};
use crate::{dashboard_site, dashboard_site::folder};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tests::rig::http::{Ask, ask};
use tests::rig::{Place, Process, binaries, eventually};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const SECRET: &str = "of this test alone";
const SELECTOR: &str = "chain/proxy/servers";
const TESTED: &str = "chain/auto/servers";

/// Agent, dashboard's files and target, all on loopback.
struct Scene {
    agent: Process,
    site: SocketAddr,
    /// The API that the dashboard speaks.
    clash: SocketAddr,
    /// The agent's own.
    own: SocketAddr,
    /// A forward through the selector.
    forward: SocketAddr,
    target: Target,
    _folder: TempDir,
}

/// A web server that knows who has asked for what.
struct Target {
    addr: SocketAddr,
    asked: Arc<Mutex<Vec<(IpAddr, String)>>>,
}

impl Target {
    async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        let asked: Arc<Mutex<Vec<(IpAddr, String)>>> = Arc::default();
        let seen = asked.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, peer)) = listener.accept().await {
                let seen = seen.clone();
                tokio::spawn(async move {
                    let mut request = Vec::new();
                    while !request.ends_with(b"\r\n\r\n") {
                        if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                            return;
                        }
                    }
                    let request = String::from_utf8_lossy(&request);
                    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                    seen.lock().unwrap().push((peer.ip(), path));
                    let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
                    // Open until the other side has enough.
                    let _ = stream.read(&mut [0; 64]).await;
                });
            }
        });
        Ok(Self { addr, asked })
    }

    /// From where this was asked for.
    fn asked_for(&self, path: &str) -> Vec<IpAddr> {
        self.asked.lock().unwrap().iter().filter(|(_, asked)| asked == path).map(|(from, _)| *from).collect()
    }
}

impl Scene {
    async fn start(files: std::path::PathBuf) -> Result<Self> {
        let target = Target::start().await?;
        let (clash, own, forward, exits) = (fresh(), fresh(), fresh(), [fresh(), fresh()]);
        // It may speak with this API and with nobody else.
        let policy = format!("connect-src 'self' http://{clash} ws://{clash}");
        let site = dashboard_site::serve(files, policy).await?;
        let exit = |n: u8| {
            json!({
                "name": format!("exit-{n}"), "addr": exits[usize::from(n) - 1].to_string(),
                "handler": {"type": "relay"}, "listener": {"type": "tcp"},
                "metadata": {"interface": exit_ip(n).to_string()}
            })
        };
        let node = |name: &str, addr: SocketAddr| {
            json!({
                "name": name, "addr": addr.to_string(), "dialer": {"type": "tcp"}, "connector": {"type": "relay"}
            })
        };
        let chain = |name: &str, selector: Value, names: [&str; 2]| {
            let nodes = [node(names[0], exits[0]), node(names[1], exits[1])];
            json!({"name": name, "hops": [{"name": "servers", "selector": selector, "nodes": nodes}]})
        };
        let own_page = format!("urltest(url=http://{}/own, interval=1h)", target.addr);
        let document = json!({
            "services": [exit(1), exit(2), {
                "name": "entry", "addr": forward.to_string(), "listener": {"type": "tcp"},
                "handler": {"type": "tcp", "chain": "proxy"},
                "forwarder": {"nodes": [{"name": "target", "addr": target.addr.to_string()}]}
            }],
            "chains": [
                chain("proxy", json!({"strategy": "selector"}), ["server-a", "server-b"]),
                chain("auto", json!({"strategy": own_page}), ["near", "far"]),
            ]
        });
        let folder = tempfile::Builder::new().prefix("exitpilot-dashboard-").tempdir()?;
        let file = folder.path().join("agent.json");
        std::fs::write(&file, serde_json::to_vec_pretty(&document)?)?;
        let mut command = Command::new(binaries::find(binaries::AGENT)?);
        command.arg("-C").arg(&file).arg("--state-dir").arg(folder.path().join("state"));
        command.arg("--api").arg(own.to_string()).arg("--clash-api").arg(clash.to_string());
        command.arg("--clash-allow-origin").arg(format!("http://{site}"));
        command.env("EXITPILOT_AGENT_CLASH_SECRET", SECRET);
        let mut agent = Process::start("agent", command)?;
        agent.wait_for("ready", PATIENCE, |line| line.contains("ready").then_some(())).await?;
        Ok(Self { agent, site, clash, own, forward, target, _folder: folder })
    }

    /// What the agent's own API says of a group.
    async fn group(&self, name: &str) -> Result<Value> {
        let path = format!("/v1/groups/{name}");
        let asked = Ask { method: "GET", path: &path, token: None, body: None, limit: PATIENCE };
        let (status, body) = ask(&Place::Loopback, self.own, asked).await?;
        ensure!(status == 200, "{path}: {status}");
        Ok(serde_json::from_slice(&body)?)
    }

    /// A connection through the forward that asks for `path`, and stays open.
    async fn visit(&self, path: &str) -> Result<TcpStream> {
        let mut stream = TcpStream::connect(self.forward).await?;
        stream.write_all(format!("HEAD {path} HTTP/1.1\r\n\r\n").as_bytes()).await?;
        let answered = tokio::time::timeout(PATIENCE, stream.read(&mut [0; 64])).await?;
        ensure!(answered? > 0, "no answer");
        Ok(stream)
    }
}

/// Inside the card of a group.
fn within(group: &str, xpath: &str) -> String {
    format!("//*[@data-group-name='{group}']{xpath}")
}

/// Presses the test of a group and waits until there is a number at each of its members.
async fn test_all(page: &Page, group: &str) -> Result<()> {
    page.press(&within(
        group,
        "//*[contains(@class,'collapse-motion-header')]//*[contains(@class,'latency-tag')]",
    ))
    .await?;
    let delays =
        within(group, "//*[contains(@class,'collapse-motion-content')]//*[contains(@class,'latency-tag')]");
    eventually(&format!("the delays in {group} are shown"), PATIENCE, async || {
        let shown = page.all_at(&delays).await?;
        ensure!(shown.len() == 2, "{} of them", shown.len());
        for delay in shown {
            let text = delay.text().await?;
            ensure!(text.trim().parse::<u32>().is_ok_and(|ms| ms > 0), "{text:?} is shown");
        }
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dashboard_lists_groups_switches_one_and_tests_them() {
    let (true, Some(files)) = (has_browser(), folder()) else { return };
    let mut scene = Scene::start(files).await.unwrap();
    let site = scene.site;
    in_browser("dashboard", Device::Desk, site, async |page| story(page, &scene).await).await;
    let status = scene.agent.terminate(Duration::from_secs(30)).await.unwrap();
    assert!(status.success(), "{status}");
}

async fn story(page: &Page, scene: &Scene) -> Result<()> {
    let Scene { clash, target, .. } = scene;
    // Its language, the page that it tests with, and nothing that it would ask the internet.
    page.open("/manifest.webmanifest").await?;
    let settings = json!({
        "config/language": "en-US", "config/speedtest-url": format!("http://{}/by-hand", target.addr),
        "config/check-upgrade-core": "false", "config/auto-upgrade": "false", "config/auto-upgrade-core": "false",
        "config/auto-ip-check": "false", "config/auto-connection-check": "false",
    });
    let keep =
        format!("for (const [key, text] of Object.entries({settings})) localStorage.setItem(key, text)");
    page.script(&keep).await?;
    let (host, port, secret) = (clash.ip(), clash.port(), SECRET.replace(' ', "%20"));
    page.open(&format!("/#/setup?hostname={host}&port={port}&http=1&secret={secret}")).await?;

    // A connection, with its way.
    let row = |member: &str| {
        format!("//tr[contains(.,'{}') and contains(.,'entry') and contains(.,'{member}')]", target.addr)
    };
    let mut through_a = scene.visit("/before").await?;
    ensure!(target.asked_for("/before") == [exit_ip(1)], "{:?}", target.asked_for("/before"));
    page.press("//a[@data-nav-key='connections']").await?;
    page.shows_at(&row("server-a")).await?;

    // Both groups, and what they use.
    page.press("//a[@data-nav-key='proxies']").await?;
    for group in [SELECTOR, TESTED] {
        page.press(&within(group, "//*[contains(@class,'collapse-motion-header')]")).await?;
    }
    let member = |group, name: &str| within(group, &format!("//span[text()='{name}']"));
    let used = |name: &str| {
        within(SELECTOR, &format!("//*[contains(@class,'proxy-active-card')]//span[text()='{name}']"))
    };
    for (group, name) in [(SELECTOR, "server-a"), (SELECTOR, "server-b"), (TESTED, "near"), (TESTED, "far")] {
        page.shows_at(&member(group, name)).await?;
    }
    page.shows_at(&used("server-a")).await?;

    // A click switches, and connections follow. The agent leaves the old one alone; the dashboard, unless told otherwise,
    // has it closed.
    page.press(&member(SELECTOR, "server-b")).await?;
    page.shows_at(&used("server-b")).await?;
    eventually("the agent uses it", PATIENCE, async || {
        let group = scene.group(SELECTOR).await?;
        ensure!(group["choice"] == "server-b" && group["now"]["tcp4"] == "server-b", "{group}");
        Ok(())
    })
    .await?;
    let ended = tokio::time::timeout(PATIENCE, through_a.read(&mut [0; 64])).await?;
    ensure!(matches!(ended, Ok(0) | Err(_)), "it goes on: {ended:?}");
    let mut through_b = scene.visit("/after").await?;
    ensure!(target.asked_for("/after") == [exit_ip(2)], "{:?}", target.asked_for("/after"));

    // Tests show numbers, fetch what the person named through each member, and change nothing.
    let before = (scene.group(SELECTOR).await?, scene.group(TESTED).await?);
    for group in [SELECTOR, TESTED] {
        let asked = target.asked_for("/by-hand").len();
        test_all(page, group).await?;
        eventually("both members were tested", PATIENCE, async || {
            let since = target.asked_for("/by-hand").split_off(asked);
            ensure!([1, 2].iter().all(|n| since.contains(&exit_ip(*n))), "{since:?}");
            Ok(())
        })
        .await?;
    }
    page.screenshot("dashboard-groups").await?;
    let after = (scene.group(SELECTOR).await?, scene.group(TESTED).await?);
    for (before, after) in [(before.0, after.0), (before.1, after.1)] {
        let known = |group: &Value| {
            let members = group["members"].as_array().cloned().unwrap_or_default();
            let members: Vec<_> =
                members.iter().map(|it| (it["state"].clone(), it["latencyMs"].clone())).collect();
            (group["now"].clone(), group["choice"].clone(), members)
        };
        ensure!(known(&before) == known(&after), "{before} became {after}");
    }

    // The other connection is closed by its button.
    page.press("//a[@data-nav-key='connections']").await?;
    page.shows_at(&row("server-b")).await?;
    page.screenshot("dashboard-connections").await?;
    page.press(&format!("{}//button", row("server-b"))).await?;
    let ended = tokio::time::timeout(PATIENCE, through_b.read(&mut [0; 64])).await?;
    ensure!(matches!(ended, Ok(0) | Err(_)), "it goes on: {ended:?}");

    // Nothing that it asks the agent for fails but a store for its own settings, which it does without. Others it is kept
    // from asking.
    let api = clash.to_string();
    let fine = |line: &String| line.contains("/storage/") || line.contains("Content Security Policy");
    let complaints = page.complaints().await?;
    let of_api: Vec<_> = complaints.iter().filter(|line| line.contains(&api) && !fine(line)).collect();
    ensure!(of_api.is_empty(), "the browser complains: {of_api:#?}");
    Ok(())
}
