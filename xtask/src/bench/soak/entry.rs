//! An entry, whose chains are replaced all the time.

use super::super::load;
use super::super::product::Product;
use super::super::running::{Listens, Running};
use super::exits::{Exits, TRANSPORTS, own_address};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Replacements after which all nodes get new names and new sessions.
const SAME_NAMES: usize = 3;
/// Every so many connections one each goes by a transport without multiplexing.
pub(super) const PER_PLAIN: usize = 10;

/// The services that connections come through; each has a chain of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Many connections in few; half of the exits with TLS.
    Mux,
    /// Both sides plain, so that the kernel carries the payload.
    Plain,
    Tls,
}

impl Way {
    const ALL: [Self; 3] = [Self::Mux, Self::Plain, Self::Tls];

    /// Of the connection with that number.
    pub(super) fn of(number: usize) -> Self {
        match number % PER_PLAIN {
            0 => Self::Plain,
            1 => Self::Tls,
            _ => Self::Mux,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Mux => "mux",
            Self::Plain => "plain",
            Self::Tls => "tls",
        }
    }

    /// Index of the transport to the exit with that index.
    fn transport(self, exit: usize) -> usize {
        match self {
            Self::Mux => exit % 2,
            Self::Plain => 2,
            Self::Tls => 3,
        }
    }
}

/// One entry.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) api: SocketAddr,
    /// In the order of [`Way::ALL`].
    listens: [SocketAddr; 3],
    pub(super) datagrams: SocketAddr,
    target: SocketAddr,
    exits: Arc<Exits>,
    file: PathBuf,
    running: Running,
}

impl Entry {
    pub(super) fn start(
        product: &Product,
        number: u8,
        exits: Arc<Exits>,
        target: SocketAddr,
        dir: &Path,
    ) -> Result<Self> {
        let address = || own_address(3, number);
        let name = format!("entry {number}");
        let file = dir.join(format!("entry-{number}.json"));
        let (listens, datagrams, api) = ([address()?, address()?, address()?], address()?, address()?);
        let running = Running::default();
        let mut entry = Self { name, api, listens, datagrams, target, exits, file, running };
        fs::write(&entry.file, entry.document(0).to_string())?;
        let mut command = product.command();
        command.arg("-C").arg(&entry.file).arg("--api").arg(api.to_string());
        let log = entry.file.with_extension("log");
        entry.running.add(command, &log, Listens::Tcp(api))?;
        Ok(entry)
    }

    /// Its process.
    pub(super) fn process(&self) -> Option<u32> {
        self.running.id(0)
    }

    /// What it has logged: warnings.
    pub(super) fn log(&self) -> String {
        self.running.log(0)
    }

    /// Where connections of a kind come in.
    pub(super) fn listens(&self, way: Way) -> SocketAddr {
        self.listens[way as usize]
    }

    /// Replaces all chains by those with this number.
    pub(super) fn replace(&self, number: usize) -> Result<()> {
        // In one step: a half-written file would be refused.
        let fresh = self.file.with_extension("new");
        fs::write(&fresh, self.document(number).to_string())?;
        fs::rename(&fresh, &self.file)?;
        ask(self.api, "POST", "/v1/reload").map(|_| ()).with_context(|| format!("replacement {number}"))
    }

    /// Puts the first chains back, with fresh sessions.
    pub(super) fn begin_anew(&self) -> Result<()> {
        self.replace(SAME_NAMES)?;
        self.replace(0)
    }

    fn document(&self, number: usize) -> Value {
        let mut services: Vec<Value> = Way::ALL
            .into_iter()
            .map(|way| {
                json!({
                    "name": way.name(), "addr": self.listens(way).to_string(), "listener": { "type": "tcp" },
                    "handler": { "type": "tcp", "chain": way.name() },
                    "forwarder": { "nodes": [{ "name": "t", "addr": self.target.to_string() }] },
                })
            })
            .collect();
        services.push(json!({
            "name": "datagrams", "addr": self.datagrams.to_string(),
            "listener": { "type": "udp", "metadata": { "keepAlive": true, "ttl": "5s" } },
            "handler": { "type": "udp", "chain": Way::Mux.name() },
            "forwarder": { "nodes": [{ "name": "t", "addr": self.target.to_string() }] },
        }));
        let chains: Vec<Value> = Way::ALL.into_iter().map(|way| self.chain(way, number)).collect();
        json!({ "services": services, "chains": chains })
    }

    /// Each differs from the one before in the order of its nodes, in which of them there are, in which are probed and
    /// what for; and now and then in all names.
    fn chain(&self, way: Way, number: usize) -> Value {
        let all = self.exits.all.len();
        let nodes: Vec<Value> = (0..all)
            .map(|i| (i + number) % all)
            .filter(|&exit| exit != left_out(number, all))
            .map(|exit| {
                let there = &self.exits.all[exit];
                let transport = way.transport(exit);
                let addr = there.addrs[transport].to_string();
                let mut node = json!({
                    "name": format!("exit-{}-{}", there.octet, number / SAME_NAMES), "addr": addr,
                    "connector": { "type": "relay", "metadata": { "nodelay": true } },
                    "dialer": { "type": TRANSPORTS[transport] },
                });
                if way == Way::Mux {
                    // Nodes with another name only are the same, and would keep their sessions.
                    let seconds = 30 + number / SAME_NAMES % 5;
                    node["dialer"]["metadata"] = json!({ "mux.keepaliveTimeout": format!("{seconds}s") });
                }
                let probed = match (exit + number) % 3 {
                    0 => None,
                    1 => Some(addr),
                    _ => Some(self.target.to_string()),
                };
                if let Some(addr) = probed {
                    node["probe"] = json!({ "type": "tcp", "addr": addr, "interval": "1s", "timeout": "2s" });
                }
                node
            })
            .collect();
        let selector = json!({ "strategy": "round", "maxFails": 1, "failTimeout": "5s" });
        json!({ "name": way.name(), "hops": [{ "name": "h", "selector": selector, "nodes": nodes }] })
    }
}

/// The exit that a replacement leaves out: the last one in every second, which nothing ever ends and to which all
/// connections would drift; in the others one of the rest.
fn left_out(number: usize, all: usize) -> usize {
    if number % 2 == 1 { all - 1 } else { number / 2 % (all - 1) }
}

/// What the API answers; an error unless it is 200.
pub(super) fn ask(api: SocketAddr, method: &str, path: &str) -> Result<String> {
    let mut stream = load::connect(api)?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {api}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("half an answer")?;
    let status = head.split_whitespace().nth(1).unwrap_or_default();
    ensure!(status == "200", "{method} {path}: {status} {body}");
    Ok(body.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_exit_is_left_out_now_and_then_and_the_last_one_half_of_the_time() {
        let left: Vec<usize> = (0..12).map(|number| left_out(number, 4)).collect();
        assert_eq!(BTreeSet::from_iter(&left), BTreeSet::from([&0, &1, &2, &3]));
        assert_eq!(left.iter().filter(|exit| **exit == 3).count(), 6);
    }

    #[test]
    fn connections_are_spread_over_all_ways() {
        let ways: Vec<Way> = (0..PER_PLAIN).map(Way::of).collect();
        let of = |way| ways.iter().filter(|other| **other == way).count();
        assert_eq!(Way::ALL.map(of), [8, 1, 1]);
        assert_eq!(Way::ALL.map(|way| way as usize), [0, 1, 2], "places of the addresses");
    }
}
