//! Installing the agent with the script that the panel hands out, below a folder of its own.

use crate::binary::{Running, exitpilot, request, start};
use crate::panel::Panel;
use axum::http::Method;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A panel with an agent to hand out, and a machine to install it on.
struct Scene {
    panel: Running,
    folder: TempDir,
}

impl Scene {
    fn set() -> Self {
        let folder = TempDir::new().unwrap();
        let scene_agent = folder.path().join("agent");
        write_agent(&scene_agent, "1.0.0");
        let mut command = exitpilot(folder.path());
        command.args(["serve", "--listen", "127.0.0.1:0", "--agent-binary"]).arg(&scene_agent);
        Self { panel: start(command), folder }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// Runs the panel's script as `curl … | sh -s -- ARGUMENTS` would.
    fn install(&self, arguments: &[&str]) -> Output {
        let (status, script) = request(&self.panel.address, "GET", "/install.sh", "", &Value::Null);
        assert_eq!(status, 200, "{script}");
        let mut command = Command::new("sh");
        command.arg("-c").arg("printf '%s' \"$SCRIPT\" | sh -s -- \"$@\"").arg("sh");
        command.args(["--root".as_ref(), self.root().as_os_str()]).args(arguments);
        command.env("SCRIPT", script).env_remove("EXITPILOT_AGENT_SECRET").output().unwrap()
    }

    /// The same, and it works.
    #[track_caller]
    fn installs(&self, arguments: &[&str]) -> String {
        let output = self.install(arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap()
    }
}

/// Something that runs and says its version.
fn write_agent(path: &Path, version: &str) {
    fs::write(path, format!("#!/bin/sh\necho exitpilot-agent {version}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

const PROGRAM: &str = "usr/local/bin/exitpilot-agent";
const SETTINGS: &str = "etc/exitpilot/agent.env";
const UNIT: &str = "etc/systemd/system/exitpilot-agent.service";

#[test]
fn the_agent_is_installed_upgraded_and_removed() {
    let scene = Scene::set();
    let said = scene.installs(&["--panel", "ws://panel.example:6365", "--secret", "0123abcd"]);
    assert!(said.contains("Installed exitpilot-agent 1.0.0"), "{said}");
    assert_eq!(scene.read(PROGRAM), fs::read_to_string(scene.folder.path().join("agent")).unwrap());
    let settings = "EXITPILOT_AGENT_PANEL=ws://panel.example:6365\nEXITPILOT_AGENT_SECRET=0123abcd\n";
    assert_eq!(scene.read(SETTINGS), settings);
    let mode = |path: &str| fs::metadata(scene.root().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(SETTINGS), mode("etc/exitpilot"), mode(PROGRAM)), (0o600, 0o700, 0o755));
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/exitpilot-agent.service");
    assert_eq!(scene.read(UNIT), fs::read_to_string(unit).unwrap());

    // Again, without saying anything: nothing to do.
    let said = scene.installs(&[]);
    assert!(said.contains("installed already"), "{said}");
    assert_eq!(scene.read(SETTINGS), settings);

    // The panel has a newer one.
    write_agent(&scene.folder.path().join("agent"), "1.1.0");
    let said = scene.installs(&[]);
    assert!(said.contains("Installed exitpilot-agent 1.1.0"), "{said}");
    assert!(scene.read(PROGRAM).contains("1.1.0"));
    assert_eq!(scene.read(SETTINGS), settings);

    // Another secret.
    scene.installs(&["--panel", "wss://panel.example", "--secret", "next", "--panel-ca", unit]);
    assert!(scene.read(SETTINGS).ends_with(&format!("SECRET=next\nEXITPILOT_AGENT_PANEL_CA={unit}\n")));

    scene.installs(&["--uninstall"]);
    assert!(!scene.root().join(PROGRAM).exists() && !scene.root().join(UNIT).exists());
    assert!(scene.root().join(SETTINGS).exists(), "the settings stay unless they are to go");
    scene.installs(&["--uninstall", "--purge"]);
    assert!(!scene.root().join(SETTINGS).exists());
}

#[test]
fn what_cannot_be_done_is_said_and_changes_nothing() {
    let scene = Scene::set();
    let broken = scene.folder.path().join("broken");
    fs::write(&broken, "no program").unwrap();
    let broken = broken.to_str().unwrap();
    let good = ["--panel", "ws://panel.example", "--secret", "0123"];
    for (arguments, said) in [
        (vec![], "--panel ADDRESS"),
        (vec!["--panel", "ws://panel.example"], "--secret SECRET"),
        (vec!["--secret"], "--secret needs a value"),
        (vec!["--pannel", "x"], "unknown option --pannel"),
        (
            vec!["--panel", "ws://panel.example", "--secret", "a\nEXITPILOT_AGENT_PANEL=ws://thief"],
            "no place there",
        ),
        (vec!["--panel", "ws://panel.example", "--secret", "a b"], "no place there"),
        ([&good[..], &["--binary", "/nowhere"]].concat(), "cannot read /nowhere"),
        ([&good[..], &["--binary", broken]].concat(), "does not run on this machine"),
        ([&good[..], &["--panel-ca", "/nowhere"]].concat(), "cannot read /nowhere"),
    ] {
        let output = scene.install(&arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(said), "{arguments:?}: {output:?}");
        assert!(!scene.root().exists(), "{arguments:?}");
    }
    // What is there stays, too, when only half of a change is given.
    scene.installs(&good);
    let before = scene.read(SETTINGS);
    assert!(!scene.install(&["--secret", "other"]).status.success());
    assert_eq!(scene.read(SETTINGS), before);
}

#[tokio::test]
async fn a_panel_without_an_agent_says_so() {
    let panel = Panel::new().await;
    let own = format!("/agent/{}", std::env::consts::ARCH);
    for (path, said) in [
        (own.as_str(), "put exitpilot-agent beside the panel"),
        ("/agent/pdp11", "an agent for pdp11"),
        ("/agent/pdp11.sha256", "an agent for pdp11"),
        ("/agent/..%2Fexitpilot.db", "an agent for ../exitpilot.db"),
    ] {
        let answer = panel.call(Method::GET, path).send().await.expect(404);
        assert!(answer["detail"].as_str().unwrap().contains(said), "{path}: {answer}");
    }
    let script = panel.call(Method::GET, "/install.sh").send().await;
    assert_eq!(script.status, 200);
    assert!(script.text.contains("\nPANEL_URL='http://panel.test:6365'\n"), "the address it was asked at");
    let odd =
        panel.call(Method::GET, "/install.sh").header(axum::http::header::HOST, "a';reboot;'").send().await;
    assert!(!odd.text.contains("reboot"), "what a client sends is no script");
}
