//! What is told and written.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The results so far.
#[derive(Default)]
pub(crate) struct Told {
    results: Vec<Value>,
}

impl Told {
    /// One number.
    pub(crate) fn number(&mut self, of: &str, what: &str, value: f64) {
        println!("{of}: {what:<52} {value:>10.2}");
        self.results.push(json!({ "of": of, "what": what, "value": value }));
    }

    /// Many latencies in milliseconds.
    pub(crate) fn latencies(&mut self, of: &str, what: &str, mut ms: Vec<f64>) {
        ms.sort_by(f64::total_cmp);
        let Some(most) = ms.last().copied() else { return };
        let rank = |share: f64| ms[((ms.len() as f64 * share).ceil() as usize).saturating_sub(1)];
        let (median, p95, p99) = (rank(0.5), rank(0.95), rank(0.99));
        let count = ms.len();
        println!(
            "{of}: {what:<52} p50 {median:>7.2}  p95 {p95:>7.2}  p99 {p99:>7.2}  most {most:>7.2} ms, {count} times"
        );
        self.results.push(json!({
            "of": of, "what": what, "p50Ms": median, "p95Ms": p95, "p99Ms": p99, "mostMs": most, "count": count,
        }));
    }

    /// Writes everything, with the load at the end.
    pub(crate) fn finish(self, json: Option<&Path>) -> Result<()> {
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        println!("load of the machine at the end: {}", load.trim());
        if let Some(path) = json {
            let text = json!({ "load": load.trim(), "results": self.results });
            fs::write(path, serde_json::to_string_pretty(&text)?)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}
