//! `cargo xtask bench decisions`: how fast the decision core is.
//!
//! The same program runs natively and, as WebAssembly, in Node.js; what it prints last is its result as JSON, with a
//! checksum of every decision, so that both are known to have done the same.
#![expect(clippy::expect_used, reason = "a benchmark whose input is not valid has failed")]

mod clock;
mod deciding;
mod picking;

use serde_json::{Value, json};

/// FNV-1a over everything that was decided.
#[derive(Clone, Copy)]
pub(crate) struct Checksum(u64);

impl Checksum {
    pub(crate) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) fn add(&mut self, value: u64) {
        for byte in value.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// One measured thing: what, the milliseconds of each repetition, units of work in one, and the checksum.
pub(crate) struct Measured {
    pub(crate) name: String,
    pub(crate) ms: Vec<f64>,
    pub(crate) units: u64,
    pub(crate) checksum: Checksum,
}

impl Measured {
    fn json(&self) -> Value {
        let mut ms = self.ms.clone();
        ms.sort_by(f64::total_cmp);
        let median = ms[ms.len() / 2];
        json!({
            "name": self.name,
            "medianMs": median,
            "leastMs": ms[0],
            "perSecond": self.units as f64 / median * 1000.0,
            "checksum": format!("{:016x}", self.checksum.0),
        })
    }
}

fn main() {
    let sizes = if clock::is_quick() { deciding::QUICK } else { deciding::FULL };
    let mut measured = Vec::new();
    for (name, rules) in deciding::RULES {
        measured.extend(sizes.map(|size| deciding::measure(name, rules, size)));
    }
    for (name, groups) in picking::GROUPS {
        measured.push(picking::measure(name, groups, if clock::is_quick() { 1 } else { 7 }));
    }
    let results: Vec<Value> = measured.iter().map(Measured::json).collect();
    clock::print(&json!({ "results": results }).to_string());
}
