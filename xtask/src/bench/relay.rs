//! Throughput, its cost, and new connections: forwarded plainly, and through an entry and an exit.

use super::load::{self, Target};
use super::product::{Product, Way, certificate};
use super::report::{Measure, Report};
use super::{Settings, in_turn};
use anyhow::{Result, ensure};
use std::fs;
use std::time::Duration;

const SCENARIOS: [(&str, Way); 3] =
    [("plain", Way::Plain), ("entry to exit, tcp", Way::Tcp), ("entry to exit, tls", Way::Tls)];
const CLIENTS: usize = 32;

const fn more(order: u8, name: &'static str, unit: &'static str) -> Measure {
    Measure { order, name, unit, more_is_better: true }
}

const fn less(order: u8, name: &'static str, unit: &'static str) -> Measure {
    Measure { order, name, unit, more_is_better: false }
}

const THROUGHPUT: [(usize, Measure, Measure); 2] = [
    (1, more(0, "throughput, 1 connection", "MB/s"), less(1, "processor, 1 connection", "s/GB")),
    (64, more(2, "throughput, 64 connections", "MB/s"), less(3, "processor, 64 connections", "s/GB")),
];
const RATE: Measure = more(4, "new connections", "1/s");
const RATE_CPU: Measure = less(5, "processor per new connection", "µs");
const P50: Measure = less(6, "time to the first byte, median", "ms");
const P99: Measure = less(7, "time to the first byte, 99 of 100", "ms");
const FAILED: Measure = less(8, "failed connections", "");

pub(super) fn run(settings: &Settings) -> Result<bool> {
    let mut report = Report::new("relay", settings, &settings.products);
    let (sink, answering) = (Target::sink()?, Target::answering()?);
    for (scenario, way) in SCENARIOS.into_iter().filter(|(scenario, _)| settings.wants(scenario)) {
        for run in 0..settings.runs {
            println!("bench: {scenario}, run {} of {}", run + 1, settings.runs);
            for product in in_turn(&settings.products, run).filter(|product| product.does(way)) {
                if let Err(error) =
                    measure(settings, (scenario, way, run), product, (&sink, &answering), &mut report)
                {
                    report.fail((scenario, product.name), &error);
                }
            }
        }
    }
    report.finish(settings.json.as_deref())
}

fn measure(
    settings: &Settings,
    (scenario, way, run): (&'static str, Way, usize),
    product: &Product,
    (sink, answering): (&Target, &Target),
    report: &mut Report,
) -> Result<()> {
    // Also to show that it works: in a fifth of it a busy machine has not yet begun with 64 connections.
    let time = Duration::from_secs(1);
    let dir = settings.folder(product.name)?;
    if way == Way::Tls && !product.makes_certificates() {
        certificate(&dir)?;
    }
    let place = (scenario, product.name, run);
    let started = product.start(way, sink.addr, &dir)?;
    for (connections, speed, cost) in THROUGHPUT {
        let mut cpu = Vec::new();
        let mark = || cpu.push(started.running.cpu_seconds());
        let per_second = load::throughput((started.entry, sink), connections, time, mark)?;
        ensure!(per_second > 0.0, "nothing arrived on {connections} connections");
        report.add(place, speed, per_second / 1e6);
        let used = cpu.last().unwrap_or(&0.0) - cpu.first().unwrap_or(&0.0);
        report.add(place, cost, used / (per_second * time.as_secs_f64() / 1e9));
    }
    drop(started);
    fs::remove_dir_all(&dir)?;

    let dir = settings.folder(product.name)?;
    if way == Way::Tls && !product.makes_certificates() {
        certificate(&dir)?;
    }
    let started = product.start(way, answering.addr, &dir)?;
    load::reach(started.entry)?;
    let before = started.running.cpu_seconds();
    let rate = load::connection_rate(started.entry, CLIENTS, time)?;
    let used = started.running.cpu_seconds() - before;
    report.add(place, RATE, rate.per_second);
    report.add(place, RATE_CPU, used * 1e6 / (rate.per_second * time.as_secs_f64()));
    report.add(place, P50, rate.p50_ms);
    report.add(place, P99, rate.p99_ms);
    report.add(place, FAILED, rate.failed as f64);
    fs::remove_dir_all(&dir)?;
    Ok(())
}
