//! The products that are measured, and how each is told to do the same.

use super::running::{Listens, Running, free_address};
use crate::cache::{Cache, find_program};
use crate::project::Project;
use crate::run;
use anyhow::{Context as _, Result};
use serde_json::json;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name of the project's own product.
pub(super) const OURS: &str = "ExitPilot";

/// What a product does between a client and a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// One process forwards TCP.
    Plain,
    /// Two processes in a row, plain TCP between them.
    Tcp,
    /// Two processes in a row, TLS between them.
    Tls,
    /// One process forwards UDP.
    Udp,
}

/// How a product is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// GOST's files; the agent reads them too.
    Gost,
    SingBox,
    Haproxy,
    Nginx,
    Realm,
}

/// One product that is there.
#[derive(Clone, Debug)]
pub(super) struct Product {
    pub(super) name: &'static str,
    pub(super) version: String,
    kind: Kind,
    program: PathBuf,
}

/// The products, ours first, and what is missing with the reason.
pub(super) struct Products {
    pub(super) there: Vec<Product>,
    pub(super) missing: Vec<(&'static str, String)>,
}

impl Products {
    /// Looks for them.
    pub(super) fn find(project: &Project, cache: &Cache) -> Result<Self> {
        let agent = project.cargo_target().join("release/exitpilot-agent");
        let ours =
            Product { name: OURS, version: version(&agent, "--version"), kind: Kind::Gost, program: agent };
        let mut products = Self { there: vec![ours], missing: Vec::new() };
        let known = [
            ("GOST", "gost", Kind::Gost, "-V"),
            ("sing-box", "sing-box", Kind::SingBox, "version"),
            ("HAProxy", "haproxy", Kind::Haproxy, "-v"),
            ("nginx", "nginx", Kind::Nginx, "-v"),
            ("realm", "realm", Kind::Realm, "--version"),
        ];
        for (name, file, kind, ask) in known {
            let own = cache.peers().join(file);
            match if own.is_file() { Some(own) } else { find_program(file) } {
                Some(program) => {
                    let version = version(&program, ask);
                    products.there.push(Product { name, version, kind, program });
                }
                None => products.missing.push((name, "not installed: cargo xtask setup --peers".to_owned())),
            }
        }
        Ok(products)
    }
}

/// The first line in which a program says its version, to either of its outputs.
fn version(program: &Path, ask: &str) -> String {
    let said = run::command(program).arg(ask).output().ok();
    let said = said.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
    String::from_utf8_lossy(&said).lines().next().unwrap_or_default().trim().to_owned()
}

/// What one process leads to.
#[derive(Clone, Copy)]
struct Hop {
    listen: SocketAddr,
    /// The next one.
    to: SocketAddr,
    /// The last one.
    target: SocketAddr,
}

/// A product that runs, and where clients connect.
pub(super) struct Started {
    pub(super) entry: SocketAddr,
    pub(super) running: Running,
}

impl Product {
    /// Whether this is the project's own.
    pub(super) fn is_ours(&self) -> bool {
        self.name == OURS
    }

    /// Whether its TLS works without files.
    pub(super) fn makes_certificates(&self) -> bool {
        self.kind == Kind::Gost
    }

    /// Whether it has chains that can be replaced while it runs.
    pub(super) fn has_chains(&self) -> bool {
        self.kind == Kind::Gost
    }

    /// A command of its executable.
    pub(super) fn command(&self) -> Command {
        let mut command = run::command(&self.program);
        // Info lines of every connection are not what is measured.
        command.env("RUST_LOG", "warn").env("GOST_LOGGER_LEVEL", "error");
        command
    }

    /// Whether it can do this at all.
    pub(super) fn does(&self, way: Way) -> bool {
        match self.kind {
            Kind::Gost | Kind::SingBox | Kind::Nginx => true,
            Kind::Haproxy => way != Way::Udp,
            Kind::Realm => matches!(way, Way::Plain | Way::Udp),
        }
    }

    /// Starts what leads from `entry` to `target`, with its files in `dir`.
    pub(super) fn start(&self, way: Way, target: SocketAddr, dir: &Path) -> Result<Started> {
        let (entry, exit) = (free_address()?, free_address()?);
        let mut running = Running::default();
        let steps = match way {
            Way::Plain | Way::Udp => {
                vec![("one", entry, self.config("one", way, Hop { listen: entry, to: target, target }, dir))]
            }
            // The exit first, so that the entry finds it.
            Way::Tcp | Way::Tls => vec![
                ("exit", exit, self.config("exit", way, Hop { listen: exit, to: target, target }, dir)),
                ("entry", entry, self.config("entry", way, Hop { listen: entry, to: exit, target }, dir)),
            ],
        };
        for (place, listen, text) in steps {
            let mut command = self.command();
            if self.kind == Kind::Realm {
                command.args(["-l", &listen.to_string(), "-r", &target.to_string()]);
                if way == Way::Udp {
                    command.arg("-u");
                }
            } else {
                let file = dir.join(format!("{place}.{}", self.ending()));
                fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
                match self.kind {
                    Kind::SingBox => command.args(["run", "-c"]).arg(&file),
                    Kind::Haproxy => command.args(["-db", "-f"]).arg(&file),
                    Kind::Nginx => command.arg("-c").arg(&file).arg("-p").arg(dir),
                    Kind::Gost | Kind::Realm => command.arg("-C").arg(&file),
                };
            }
            let listens = if way == Way::Udp { Listens::Udp(listen) } else { Listens::Tcp(listen) };
            running.add(command, &dir.join(format!("{place}.log")), listens)?;
        }
        Ok(Started { entry, running })
    }

    fn ending(&self) -> &'static str {
        match self.kind {
            Kind::Gost | Kind::SingBox => "json",
            Kind::Haproxy | Kind::Nginx | Kind::Realm => "conf",
        }
    }

    /// The file of the process at one place: `one`, `entry` or `exit`.
    fn config(&self, place: &str, way: Way, hop: Hop, dir: &Path) -> String {
        let Hop { listen, to, .. } = hop;
        let tls_from = place == "entry" && way == Way::Tls;
        let tls_at = place == "exit" && way == Way::Tls;
        match self.kind {
            Kind::Gost => gost(place, way, hop),
            Kind::SingBox => sing_box(place, way, hop, dir),
            Kind::Haproxy => {
                let bind = if tls_at {
                    format!(" ssl crt {}", dir.join("both.pem").display())
                } else {
                    String::new()
                };
                let server = if tls_from { " ssl verify none" } else { "" };
                format!(
                    "defaults\n mode tcp\n option splice-auto\n timeout connect 5s\n \
                     timeout client 1h\n timeout server 1h\nlisten l\n bind {listen}{bind}\n server s {to}{server}\n"
                )
            }
            Kind::Nginx => {
                let listens = match (way, tls_at) {
                    (Way::Udp, _) => format!("listen {listen} udp"),
                    (_, true) => {
                        let (cert, key) = (dir.join("cert.pem"), dir.join("key.pem"));
                        let (cert, key) = (cert.display(), key.display());
                        format!(
                            "listen {listen} ssl backlog=4096; ssl_certificate {cert}; ssl_certificate_key {key}"
                        )
                    }
                    (_, false) => format!("listen {listen} backlog=4096"),
                };
                let ssl = if tls_from { "proxy_ssl on; proxy_ssl_session_reuse on;" } else { "" };
                let module = Path::new("/usr/lib/nginx/modules/ngx_stream_module.so");
                let load = if module.exists() {
                    format!("load_module {};\n", module.display())
                } else {
                    String::new()
                };
                format!(
                    "{load}daemon off;\nworker_processes auto;\nworker_rlimit_nofile 65536;\npid {place}.pid;\n\
                     error_log stderr warn;\nevents {{ worker_connections 40000; }}\nstream {{ server {{ {listens}; \
                     proxy_pass {to}; proxy_timeout 1h; tcp_nodelay on; {ssl} }} }}\n"
                )
            }
            Kind::Realm => String::new(),
        }
    }
}

fn gost(place: &str, way: Way, Hop { listen, to, .. }: Hop) -> String {
    let transport = if way == Way::Tls { "tls" } else { "tcp" };
    let forwarder = json!({ "nodes": [{ "name": "t", "addr": to.to_string() }] });
    let document = match (place, way) {
        ("exit", _) => json!({ "services": [{
            "name": "exit", "addr": listen.to_string(),
            "handler": { "type": "relay", "metadata": { "nodelay": true } }, "listener": { "type": transport },
            "forwarder": forwarder,
        }] }),
        ("entry", _) => json!({
            "services": [{
                "name": "entry", "addr": listen.to_string(),
                "handler": { "type": "tcp", "chain": "c" }, "listener": { "type": "tcp" },
                // The exit has the target; what is asked for here does not matter.
                "forwarder": { "nodes": [{ "name": "t", "addr": "127.0.0.1:9" }] },
            }],
            "chains": [{ "name": "c", "hops": [{ "name": "h", "nodes": [{
                "name": "exit", "addr": to.to_string(),
                "connector": { "type": "relay", "metadata": { "nodelay": true } }, "dialer": { "type": transport },
            }] }] }],
        }),
        (_, Way::Udp) => json!({ "services": [{
            "name": "one", "addr": listen.to_string(), "handler": { "type": "udp" },
            "listener": { "type": "udp", "metadata": { "keepAlive": true, "ttl": "60s" } }, "forwarder": forwarder,
        }] }),
        _ => json!({ "services": [{
            "name": "one", "addr": listen.to_string(), "handler": { "type": "tcp" },
            "listener": { "type": "tcp" }, "forwarder": forwarder,
        }] }),
    };
    document.to_string()
}

/// It has no relay protocol; VLESS does the same with as little.
fn sing_box(place: &str, way: Way, Hop { listen, to, target }: Hop, dir: &Path) -> String {
    const USER: &str = "4a2f0d5e-7a51-4d0e-9d2b-5a2d7b6a9a11";
    let direct = |to: SocketAddr| {
        json!({ "type": "direct", "listen": listen.ip().to_string(), "listen_port": listen.port(),
            "override_address": to.ip().to_string(), "override_port": to.port() })
    };
    let (inbound, mut outbound) = match place {
        "exit" => {
            let mut inbound = json!({ "type": "vless", "listen": listen.ip().to_string(),
                "listen_port": listen.port(), "users": [{ "uuid": USER }] });
            if way == Way::Tls {
                inbound["tls"] = json!({ "enabled": true, "certificate_path": dir.join("cert.pem"),
                    "key_path": dir.join("key.pem") });
            }
            (inbound, json!({ "type": "direct" }))
        }
        "entry" => {
            let outbound = json!({ "type": "vless", "server": to.ip().to_string(), "server_port": to.port(),
                "uuid": USER });
            // It asks the exit for the target by name.
            (direct(target), outbound)
        }
        _ => (direct(to), json!({ "type": "direct" })),
    };
    if place == "entry" && way == Way::Tls {
        outbound["tls"] = json!({ "enabled": true, "insecure": true, "server_name": "localhost" });
    }
    json!({ "log": { "level": "error" }, "inbounds": [inbound], "outbounds": [outbound] }).to_string()
}

/// Puts a certificate of its own into `dir`, for those who make none by themselves. Says why not if it cannot.
pub(super) fn certificate(dir: &Path) -> Result<()> {
    let (cert, key) = (dir.join("cert.pem"), dir.join("key.pem"));
    let mut openssl = run::command(find_program("openssl").context("openssl is not installed")?);
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    openssl.args(["-days", "2", "-subj", "/CN=localhost", "-keyout"]).arg(&key).arg("-out").arg(&cert);
    run::captured(&mut openssl)?;
    fs::write(dir.join("both.pem"), [fs::read(&cert)?, fs::read(&key)?].concat())?;
    Ok(())
}
