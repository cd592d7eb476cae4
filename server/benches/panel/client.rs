//! A client of the panel's API in a thread of its own, so that the played agents do not keep it waiting.

use crate::now;
use crate::process::PASSWORD;
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longest wait for an answer.
const LIMIT: Duration = Duration::from_secs(30);
/// Between two requests.
const PAUSE: Duration = Duration::from_millis(20);

/// One connection, kept open.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    token: String,
}

impl Client {
    pub(crate) fn login(panel: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(panel)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LIMIT))?;
        let mut client = Self { stream: BufReader::new(stream), token: String::new() };
        let who = json!({ "username": "admin", "password": PASSWORD }).to_string();
        let answer: Value = serde_json::from_slice(&client.ask("POST", "/api/v1/auth/login", &who)?)?;
        client.token = answer["token"].as_str().context("no token")?.to_owned();
        Ok(client)
    }

    /// Asks and answers the body.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<Vec<u8>> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: panel\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        self.stream.get_mut().write_all(head.as_bytes())?;
        let (mut line, mut status, mut length) = (String::new(), None, 0usize);
        loop {
            line.clear();
            ensure!(self.stream.read_line(&mut line)? > 0, "the panel closed the connection");
            let text = line.trim_end();
            match (&status, text.split_once(':')) {
                (None, _) => status = Some(text.split(' ').nth(1).context("no status")?.to_owned()),
                (_, Some((name, value))) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse()?;
                }
                (_, Some((name, _))) if name.eq_ignore_ascii_case("transfer-encoding") => {
                    bail!("{path}: an answer without a length");
                }
                (_, None) => break,
                _ => {}
            }
        }
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer)?;
        let good = status.as_deref().is_some_and(|status| status.starts_with('2'));
        ensure!(good, "{method} {path}: {status:?} {}", String::from_utf8_lossy(&answer));
        Ok(answer)
    }

    /// The sum of all samples of a counter at `/metrics`.
    pub(crate) fn metric(&mut self, name: &str) -> Result<f64> {
        let text = String::from_utf8(self.ask("GET", "/metrics", "")?)?;
        let of_name = text.lines().filter_map(|line| {
            let rest = line.strip_prefix(name)?;
            if !rest.starts_with(['{', ' ']) {
                return None;
            }
            rest.rsplit(' ').next()?.parse::<f64>().ok()
        });
        Ok(of_name.sum())
    }
}

/// Milliseconds by what was asked for.
pub(crate) type Latencies = BTreeMap<&'static str, Vec<f64>>;

/// Asks one thing after the other until `stop`, as pages and programs do.
pub(crate) fn ask_on(panel: SocketAddr, tunnels: &[i64], stop: &Arc<AtomicBool>) -> Result<Latencies> {
    let mut client = Client::login(panel)?;
    let mut latencies = Latencies::new();
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let id = tunnels[number * 37 % tunnels.len()];
        let asks: [(&str, &str, String); 6] = [
            ("GET a tunnel", "GET", format!("/api/v1/tunnels/{id}")),
            ("GET its decisions", "GET", format!("/api/v1/tunnels/{id}/decisions")),
            ("GET its history", "GET", format!("/api/v1/tunnels/{id}/quality")),
            ("GET 100 tunnels", "GET", format!("/api/v1/tunnels?limit=100&after={id}")),
            ("GET 100 nodes", "GET", "/api/v1/nodes?limit=100".to_owned()),
            ("PUT a tunnel", "PUT", format!("/api/v1/tunnels/{id}")),
        ];
        for (what, method, path) in asks {
            let body = if method == "PUT" {
                // As the editor does it: what was read, changed. Only a name, which no agent is told.
                let mut tunnel: Value = serde_json::from_slice(&client.ask("GET", &path, "")?)?;
                tunnel["name"] = json!(format!("tunnel-{id}-{number}"));
                tunnel.to_string()
            } else {
                String::new()
            };
            let start = now();
            client.ask(method, &path, &body)?;
            latencies.entry(what).or_default().push(now().duration_since(start).as_secs_f64() * 1000.0);
            std::thread::sleep(PAUSE);
        }
    }
    Ok(latencies)
}
