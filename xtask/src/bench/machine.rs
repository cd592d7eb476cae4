//! What the numbers were measured on.

use serde_json::{Value, json};
use std::fs;
use std::thread::available_parallelism;

/// The machine, for the head of a report.
pub(super) fn facts() -> Value {
    json!({
        "cpu": first("/proc/cpuinfo", "model name").unwrap_or_default(),
        "cores": available_parallelism().map_or(0, |cores| cores.get()),
        "memory": first("/proc/meminfo", "MemTotal").unwrap_or_default(),
        "kernel": fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
        "loadBefore": load(),
    })
}

/// Programs that wanted to run during the last minute, on average: much above zero before a benchmark means that it
/// shared the machine.
pub(super) fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(0.0)
}

/// The first value with that name in a file of `name : value` lines.
fn first(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
