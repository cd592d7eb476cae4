//! What processes hold at a moment.

use super::super::running::resident;
use super::entry::ask;
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::fs;
use std::net::SocketAddr;

/// Of one process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    pub(super) resident_bytes: f64,
    pub(super) descriptors: f64,
    pub(super) threads: f64,
    /// Of its runtime.
    pub(super) tasks: f64,
    /// Of clients.
    pub(super) connections: f64,
}

impl Sample {
    /// Of an agent and its API.
    pub(super) fn take(process: Option<u32>, api: SocketAddr) -> Result<Self> {
        let process = process.context("it does not run")?;
        let metrics = ask(api, "GET", "/metrics")?;
        let metric = |name: &str| -> Result<f64> {
            let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            Ok(line.with_context(|| format!("no metric {name}"))?.trim().parse()?)
        };
        let status = fs::read_to_string(format!("/proc/{process}/status"))?;
        let threads = status.lines().find_map(|line| line.strip_prefix("Threads:"));
        Ok(Self {
            resident_bytes: resident(process).context("it has ended")?,
            descriptors: fs::read_dir(format!("/proc/{process}/fd"))?.count() as f64,
            threads: threads.context("no number of threads")?.trim().parse()?,
            tasks: metric("exitpilot_agent_tasks")?,
            connections: metric("exitpilot_agent_connections_open")?,
        })
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "residentBytes": self.resident_bytes, "descriptors": self.descriptors, "threads": self.threads,
            "tasks": self.tasks, "connections": self.connections,
        })
    }
}

/// Descriptors of pipes that a thread of the agent keeps for its next connections.
const SPARE_PIPES: f64 = 16.0;

impl Sample {
    /// Takes over what is more in `other`.
    pub(super) fn raise(&mut self, other: &Self) {
        let pairs = [
            (&mut self.resident_bytes, other.resident_bytes),
            (&mut self.descriptors, other.descriptors),
            (&mut self.threads, other.threads),
            (&mut self.tasks, other.tasks),
            (&mut self.connections, other.connections),
        ];
        for (mine, theirs) in pairs {
            *mine = mine.max(theirs);
        }
    }

    /// Whether no more tasks and descriptors are left than there were before any client came. Only pipes are kept: a few
    /// per thread.
    pub(super) fn is_back(&self, idle: &Self) -> bool {
        self.tasks <= idle.tasks
            && self.descriptors <= idle.descriptors + self.threads * SPARE_PIPES
            && self.connections <= idle.connections
    }
}
