//! Memory of connections that do nothing.

use super::load::{self, Target};
use super::product::{Product, Way, certificate};
use super::report::{Measure, Report};
use super::{Settings, in_turn};
use anyhow::Result;
use std::time::Duration;
use std::{fs, thread};

const SCENARIOS: [(&str, Way); 3] =
    [("plain", Way::Plain), ("entry and exit, tcp", Way::Tcp), ("entry and exit, tls", Way::Tls)];
const MEMORY: Measure = Measure {
    order: 0,
    name: "memory per idle connection, all processes",
    unit: "KB",
    more_is_better: false,
};
const COUNT: Measure = Measure { order: 1, name: "connections", unit: "", more_is_better: true };
const CONNECTIONS: usize = 10_000;
/// What has just worked gives its memory back a little later.
const SETTLING: Duration = Duration::from_millis(500);

pub(super) fn run(settings: &Settings) -> Result<bool> {
    let connections = if settings.quick { 200 } else { CONNECTIONS.min(settings.most_connections()) };
    if !settings.quick && connections < CONNECTIONS {
        println!(
            "bench: {connections} instead of {CONNECTIONS} connections: the limit on open files allows no more"
        );
    }
    let mut report = Report::new("idle", settings, &settings.products);
    for (scenario, way) in SCENARIOS.into_iter().filter(|(scenario, _)| settings.wants(scenario)) {
        for run in 0..settings.runs {
            println!("bench: {scenario}, run {} of {}", run + 1, settings.runs);
            for product in in_turn(&settings.products, run).filter(|product| product.does(way)) {
                match measure(settings, way, product, connections) {
                    Ok((bytes, open)) => {
                        report.add((scenario, product.name, run), MEMORY, bytes / open as f64 / 1000.0);
                        report.add((scenario, product.name, run), COUNT, open as f64);
                    }
                    Err(error) => report.fail((scenario, product.name), &error),
                }
            }
        }
    }
    report.finish(settings.json.as_deref())
}

fn measure(settings: &Settings, way: Way, product: &Product, connections: usize) -> Result<(f64, usize)> {
    let dir = settings.folder(product.name)?;
    if way == Way::Tls && !product.makes_certificates() {
        certificate(&dir)?;
    }
    let target = Target::keeping()?;
    let started = product.start(way, target.addr, &dir)?;
    // What is made once, with the first connections, is no cost of a connection.
    drop(load::reach(started.entry)?);
    thread::sleep(SETTLING);
    let before = started.running.resident_bytes();
    let mut open = Vec::new();
    while open.len() < connections {
        open.push(load::reach(started.entry)?);
    }
    thread::sleep(SETTLING);
    let used = started.running.resident_bytes() - before;
    fs::remove_dir_all(&dir)?;
    Ok((used, open.len()))
}
