//! A product under load: its processes, what they cost, their end.

use crate::{clock, run};
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

/// How long a product may take until it listens.
const START_LIMIT: Duration = Duration::from_secs(15);

/// Processes that belong together; killed when dropped.
#[derive(Default)]
pub(super) struct Running {
    children: Vec<Child>,
    logs: Vec<PathBuf>,
}

impl Running {
    /// Starts one more process, whose output goes to a file, and waits until it listens there.
    pub(super) fn add(&mut self, mut command: Command, log: &Path, listens: Listens) -> Result<()> {
        let out = File::create(log)?;
        command.stdout(out.try_clone()?).stderr(out);
        let child = command.spawn().with_context(|| format!("cannot start {}", run::line(&command)))?;
        self.children.push(child);
        self.logs.push(log.to_owned());
        let start = clock::now();
        while !listens.already() {
            let ended = self.children.last_mut().and_then(|child| child.try_wait().ok().flatten());
            if ended.is_some() || start.elapsed() > START_LIMIT {
                let said = fs::read_to_string(log).unwrap_or_default();
                let said: Vec<&str> = said.lines().rev().take(3).collect();
                bail!("does not listen: {}", said.into_iter().rev().collect::<Vec<_>>().join(" | "));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// What the process started as `number` has written.
    pub(super) fn log(&self, number: usize) -> String {
        self.logs.get(number).and_then(|log| fs::read_to_string(log).ok()).unwrap_or_default()
    }

    /// The process started as `number`.
    pub(super) fn id(&self, number: usize) -> Option<u32> {
        self.children.get(number).map(Child::id)
    }

    /// Asks the process started as `number` to end and waits; says whether it did so in time and without an error.
    pub(super) fn terminate(&mut self, number: usize, limit: Duration) -> Result<bool> {
        let child = self.children.get_mut(number).context("there is no such process")?;
        run::captured(run::command("kill").arg(child.id().to_string()))?;
        Ok(run::wait(child, limit)?.is_some_and(|status| status.success()))
    }

    fn ids(&self) -> BTreeSet<u32> {
        self.children.iter().flat_map(|child| run::tree(child.id())).collect()
    }

    /// Processor time used so far, in seconds.
    pub(super) fn cpu_seconds(&self) -> f64 {
        self.ids().into_iter().filter_map(run::ticks).sum::<f64>() / run::TICKS_PER_SECOND
    }

    /// Memory in use by all of them, in bytes.
    pub(super) fn resident_bytes(&self) -> f64 {
        self.ids().into_iter().filter_map(resident).sum()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.children {
            // One that has ended already is what is wanted.
            let _ = run::kill_tree(child);
        }
    }
}

/// Memory in use by a process, in bytes; `None` if it is gone.
pub(super) fn resident(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? * 1024.0)
}

/// By what one sees that a process listens.
#[derive(Clone, Copy)]
pub(super) enum Listens {
    Tcp(SocketAddr),
    Udp(SocketAddr),
}

impl Listens {
    fn already(self) -> bool {
        match self {
            Self::Tcp(addr) => TcpStream::connect(addr).is_ok(),
            // What can be bound is free.
            Self::Udp(addr) => UdpSocket::bind(addr).is_err(),
        }
    }
}

/// An address on loopback whose port is free for TCP and UDP now.
pub(super) fn free_address() -> Result<SocketAddr> {
    loop {
        let addr = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        if UdpSocket::bind(addr).is_ok() {
            return Ok(addr);
        }
    }
}
