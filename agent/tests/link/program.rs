//! The program itself: processes, signals, files.

use crate::panel::{PATIENCE, Panel, SECRET, patient};
use crate::rig::{forward, free_address};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use shared::link::Command;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Output, Stdio};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStderr};

struct Program {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
}

impl Program {
    fn start(arguments: &[&str]) -> Self {
        let mut child = command(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, log }
    }

    fn obeying(panel: SocketAddr, state: &Path) -> Self {
        let secret = state.join("secret");
        std::fs::write(&secret, format!("{SECRET}\n")).unwrap();
        let panel = format!("ws://{panel}");
        let [secret, state] = [secret.to_str().unwrap(), state.to_str().unwrap()];
        Self::start(&["run", "--panel", &panel, "--secret-file", secret, "--state-dir", state])
    }

    /// Reads the log up to a line with `words` and returns that line.
    async fn says(&mut self, words: &str) -> String {
        loop {
            let line = patient(words, self.log.next_line()).await.unwrap();
            let line = line.unwrap_or_else(|| panic!("the program ended before it said {words}"));
            assert!(!line.contains(SECRET), "the secret is in the log: {line}");
            if line.contains(words) {
                return line;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().unwrap().try_into().unwrap()), signal).unwrap();
    }

    async fn ends(mut self) -> Option<i32> {
        patient("the end", self.child.wait()).await.unwrap().code()
    }
}

fn command(arguments: &[&str]) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_exitpilot-agent"));
    command.args(arguments).env_remove("RUST_LOG");
    command
}

async fn output(arguments: &[&str]) -> Output {
    patient("the program", command(arguments).output()).await.unwrap()
}

/// A target that answers each connection with one byte.
async fn target() -> (SocketAddr, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serve = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"!").await;
        }
    });
    (address, serve)
}

async fn serves(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address).await else { return false };
    let mut byte = [0];
    matches!(tokio::time::timeout(PATIENCE, stream.read_exact(&mut byte)).await, Ok(Ok(_))) && byte == *b"!"
}

#[tokio::test]
async fn after_a_kill_it_serves_the_last_accepted_configuration_without_the_panel() {
    let state = tempfile::tempdir().unwrap();
    let (target, _serving) = target().await;
    let listen = free_address().await;
    let panel = Panel::start(true).await;
    let mut agent = Program::obeying(panel.address(), state.path());
    let mut session = panel.accept().await;
    let answer = session.ask(&Command::AddService(vec![forward("a", listen, target)])).await;
    assert_eq!(answer.success, Some(true), "{answer:?}");
    assert!(serves(listen).await);
    agent.says("connected to panel ws://").await;
    agent.signal(Signal::SIGKILL);
    assert_eq!(agent.ends().await, None);
    drop((session, panel));
    assert!(!serves(listen).await);

    let mut agent = Program::obeying(free_address().await, state.path());
    agent.says("ready").await;
    assert!(serves(listen).await);
    agent.says("no panel reached").await;
    agent.signal(Signal::SIGHUP);
    agent.says("SIGHUP ignored").await;
    agent.signal(Signal::SIGTERM);
    assert_eq!(agent.ends().await, Some(0));
    assert!(!serves(listen).await);
}

#[tokio::test]
async fn a_refused_secret_is_said_clearly_and_never_shown() {
    let state = tempfile::tempdir().unwrap();
    let panel = Panel::start(true).await;
    let mut agent = Program::obeying(panel.address(), state.path());
    panel.refuse().await;
    let line = agent.says("the panel refused the node secret: forbidden").await;
    assert!(line.contains("next attempt in"), "{line}");
    agent.signal(Signal::SIGINT);
    assert_eq!(agent.ends().await, Some(0));
}

fn yaml(name: &str, listen: SocketAddr, target: SocketAddr) -> String {
    format!(
        "services:\n- name: {name}\n  addr: {listen}\n  handler: {{type: tcp}}\n  listener: {{type: tcp}}\n  \
         forwarder: {{nodes: [{{name: t, addr: '{target}'}}]}}\n"
    )
}

#[tokio::test]
async fn a_file_is_run_and_read_again_only_when_it_is_valid() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gost.yaml");
    let (target, _serving) = target().await;
    let [first, second] = [free_address().await, free_address().await];
    std::fs::write(&file, yaml("a", first, target)).unwrap();
    let mut agent = Program::start(&["-C", file.to_str().unwrap()]);
    agent.says("ready").await;
    assert!(serves(first).await);

    std::fs::write(&file, yaml("b", second, target).replace("addr", "adress")).unwrap();
    agent.signal(Signal::SIGHUP);
    let line = agent.says("not reloaded").await;
    assert!(line.contains("services[0].adress"), "{line}");
    assert!(serves(first).await && !serves(second).await);

    std::fs::write(&file, yaml("b", second, target)).unwrap();
    agent.signal(Signal::SIGHUP);
    agent.says("reloaded").await;
    assert!(!serves(first).await && serves(second).await);
    agent.signal(Signal::SIGTERM);
    assert_eq!(agent.ends().await, Some(0));
}

#[tokio::test]
async fn a_file_that_cannot_be_run_ends_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gost.yaml");
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let taken = taken.local_addr().map(|address| (taken, address)).unwrap();
    std::fs::write(&file, yaml("a", taken.1, taken.1)).unwrap();
    let path = file.to_str().unwrap();
    let run = output(&["-C", path]).await;
    assert_eq!(run.status.code(), Some(1));
    let said = String::from_utf8(run.stderr).unwrap();
    assert!(said.contains("service:a") && said.contains("address already in use"), "{said}");
    // Ports are no matter of the file.
    let check = output(&["check", "-C", path]).await;
    assert_eq!(String::from_utf8(check.stdout).unwrap(), "ok: 1 services, 0 chains\n");
    assert!(check.status.success());
}

#[tokio::test]
async fn check_names_what_the_agent_would_refuse() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gost.yaml");
    let good = yaml("a", "127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap());
    let cases = [
        (good.replace("handler: {type: tcp}", "handler: {type: coffee}"), "coffee"),
        (good.replace("handler: {type: tcp}", "handler: {type: tcp, brew: 1}"), "services[0].handler.brew"),
        (good.replace("127.0.0.1:1", "nowhere"), "nowhere"),
        (format!("{good}bypasses: []\n"), "bypasses"),
    ];
    for (text, words) in cases {
        std::fs::write(&file, text).unwrap();
        let check = output(&["check", "-C", file.to_str().unwrap()]).await;
        let said = String::from_utf8(check.stderr).unwrap();
        assert_eq!(check.status.code(), Some(1), "{words}");
        assert!(said.contains(words), "{words} not in: {said}");
    }
    let missing = output(&["check", "-C", "/nonexistent/gost.yaml"]).await;
    assert!(String::from_utf8(missing.stderr).unwrap().contains("/nonexistent/gost.yaml"));
}

#[tokio::test]
async fn completion_and_usage() {
    let script = output(&["completion", "bash"]).await;
    assert!(String::from_utf8(script.stdout).unwrap().contains("exitpilot-agent"));
    let run = output(&["run", "--panel", "127.0.0.1:1"]).await;
    assert_eq!(run.status.code(), Some(1));
    assert!(String::from_utf8(run.stderr).unwrap().contains("--secret-file"));
}
