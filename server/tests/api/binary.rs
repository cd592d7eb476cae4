//! The executable: first start, restart, stop, commands.

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Long enough for a busy machine; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Running {
    child: Child,
    pub(crate) address: String,
    first_lines: Vec<String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn exitpilot(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_exitpilot"));
    command.current_dir(folder).env_clear().stdin(Stdio::null());
    command
}

pub(crate) fn start(mut command: Command) -> Running {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut first_lines = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some(address) = line.strip_prefix("listening on http://") {
            return Running { child, address: address.to_owned(), first_lines };
        }
        first_lines.push(line);
    }
    panic!("the panel ended: {first_lines:?} {:?}", child.wait());
}

/// Status and body of an answer.
pub(crate) fn request(address: &str, method: &str, path: &str, token: &str, body: &Value) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

fn login(address: &str, password: &str) -> (u16, Value) {
    let body = json!({ "username": "admin", "password": password });
    let (status, text) = request(address, "POST", "/api/v1/auth/login", "", &body);
    (status, serde_json::from_str(&text).unwrap())
}

/// SIGTERM, and the exit code.
fn terminate(running: &mut Running) -> Option<i32> {
    let pid = running.child.id().to_string();
    assert!(Command::new("kill").arg(&pid).status().unwrap().success());
    running.child.wait().unwrap().code()
}

#[test]
fn without_any_configuration_it_starts_tells_the_password_once_and_keeps_its_data() {
    let folder = tempfile::tempdir().unwrap();
    let with_port = || {
        let mut command = exitpilot(folder.path());
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        command
    };
    let mut running = start(with_port());
    assert_eq!(running.first_lines.len(), 1, "{:?}", running.first_lines);
    let password =
        running.first_lines[0].strip_prefix("created the user admin with the password ").unwrap().to_owned();
    let (status, answer) = login(&running.address, &password);
    assert_eq!(status, 200);
    let token = answer["token"].as_str().unwrap().to_owned();
    let node = json!({ "name": "hk", "serverIp": "192.0.2.1" });
    assert_eq!(request(&running.address, "POST", "/api/v1/nodes", &token, &node).0, 201);

    // An open event stream does not hold up the end.
    let mut stream = TcpStream::connect(&running.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET /api/v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n")
        .unwrap();
    let mut first = [0; 15];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    assert_eq!(terminate(&mut running), Some(0));
    assert!(folder.path().join("exitpilot.db").exists());

    let running = start(with_port());
    assert_eq!(running.first_lines, [] as [String; 0]);
    let (status, nodes) = request(&running.address, "GET", "/api/v1/nodes", &token, &Value::Null);
    assert_eq!(status, 200);
    assert!(nodes.contains("\"hk\""), "{nodes}");
}

#[test]
fn what_was_answered_survives_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let with_password = || {
        let mut command = exitpilot(folder.path());
        command.env("EXITPILOT_LISTEN", "127.0.0.1:0").env("EXITPILOT_ADMIN_PASSWORD", "chosen by hand");
        command
    };
    let mut running = start(with_password());
    assert!(!running.first_lines.iter().any(|line| line.contains("chosen by hand")));
    let (_, answer) = login(&running.address, "chosen by hand");
    let token = answer["token"].as_str().unwrap().to_owned();
    for i in 0..20 {
        let node = json!({ "name": format!("n{i}"), "serverIp": "192.0.2.1" });
        assert_eq!(request(&running.address, "POST", "/api/v1/nodes", &token, &node).0, 201);
    }
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    let running = start(with_password());
    let (_, nodes) = request(&running.address, "GET", "/api/v1/nodes", &token, &Value::Null);
    assert_eq!(serde_json::from_str::<Vec<Value>>(&nodes).unwrap().len(), 20);
}

#[test]
fn a_forgotten_password_is_reset_on_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = exitpilot(folder.path());
    command.env("EXITPILOT_LISTEN", "127.0.0.1:0").env("EXITPILOT_ADMIN_PASSWORD", "the old one");
    let running = start(command);
    let (_, answer) = login(&running.address, "the old one");
    let token = answer["token"].as_str().unwrap().to_owned();
    let output = exitpilot(folder.path()).args(["admin", "reset-password"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let password = text.trim().strip_prefix("the password of admin is now ").unwrap();
    assert_eq!(login(&running.address, "the old one").0, 401);
    assert_eq!(request(&running.address, "GET", "/api/v1/auth/me", &token, &Value::Null).0, 401);
    assert_eq!(login(&running.address, password).0, 200);
    let output =
        exitpilot(folder.path()).args(["admin", "reset-password", "--username", "nobody"]).output().unwrap();
    assert!(!output.status.success());
}

#[test]
fn the_other_commands_print_what_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str], variables: &[(&str, &str)]| {
        let output =
            exitpilot(folder.path()).args(arguments).envs(variables.iter().copied()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    };
    let (ok, document, _) = run(&["openapi"], &[]);
    assert!(ok && serde_json::from_str::<Value>(&document).unwrap()["paths"].is_object());
    assert!(run(&["completion", "bash"], &[]).1.contains("complete -F _exitpilot"));

    let secret = [("EXITPILOT_ADMIN_PASSWORD", "topsecret"), ("EXITPILOT_LISTEN", "127.0.0.1:7")];
    let (ok, shown, _) = run(&["config", "show", "--database", "sqlite://x.db"], &secret);
    assert!(ok && shown.contains("listen = \"127.0.0.1:7\"") && shown.contains("sqlite://x.db"), "{shown}");
    assert!(!shown.contains("topsecret"), "{shown}");

    std::fs::write(folder.path().join("exitpilot.toml"), "listen = \"127.0.0.1:8\"\n").unwrap();
    assert!(run(&["config", "show"], &[]).1.contains("127.0.0.1:8"));
    std::fs::write(folder.path().join("other.toml"), "colour = \"red\"\n").unwrap();
    let (ok, _, error) = run(&["config", "show", "--config", "other.toml"], &[]);
    assert!(!ok && error.contains("colour"), "{error}");

    let postgres = [("EXITPILOT_LISTEN", "127.0.0.1:0"), ("DATABASE_URL", "postgres://me:topsecret@db/x")];
    let (ok, _, error) = run(&["serve"], &postgres);
    assert!(!ok && error.contains("SQLite only") && !error.contains("topsecret"), "{error}");
}
