//! What was seen, and the verdict.

use super::super::{Settings, machine};
use super::Timings;
use super::clients::Clients;
use super::sample::Sample;
use super::verdict::{Bound, Trend};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Datagrams that may be lost without a reason, of all: the kernel drops what comes when a receive buffer is full.
const LOST_SHARE: f64 = 0.01;

/// Lines of each log that are told when something is wrong.
const TOLD_LINES: usize = 20;

/// A number that must not grow, of one process.
struct Watched {
    name: &'static str,
    unit: &'static str,
    of: fn(&Sample) -> f64,
    /// Whether it goes with the number of connections.
    per_connection: bool,
    bound: Bound,
}

/// The bounds. What the medians of ten minutes differ by at equal numbers of connections are sessions that live a little
/// longer or shorter, and the allocator's rounding: within one or two hundredths. A leak is far above them after an hour: 100
/// bytes per connection make 20 MB between the two parts, one task or descriptor per replacement of a chain more than a
/// thousand. A smaller leak of tasks or descriptors is found by what is left at the end.
///
/// The lasting exit has not equally many connections all the time, so descriptors and tasks are compared per connection.
const WATCHED: [Watched; 3] = [
    Watched {
        name: "resident memory",
        unit: "MB",
        of: |sample| sample.resident_bytes / 1e6,
        per_connection: false,
        bound: Bound { share: 0.05, fixed: 4.0 },
    },
    Watched {
        name: "descriptors",
        unit: "",
        of: |sample| sample.descriptors,
        per_connection: true,
        bound: Bound { share: 0.03, fixed: 64.0 },
    },
    Watched {
        name: "tasks",
        unit: "",
        of: |sample| sample.tasks,
        per_connection: true,
        bound: Bound { share: 0.03, fixed: 64.0 },
    },
];

/// One look at everything.
pub(super) struct Row {
    pub(super) seconds: f64,
    /// Replacements of chains so far.
    pub(super) swaps: u64,
    /// Deaths of exits so far.
    pub(super) deaths: u64,
    /// Connections, as the clients see it.
    pub(super) open: u64,
    pub(super) processes: Vec<(String, Sample)>,
}

impl Row {
    fn json(&self) -> Value {
        let processes: serde_json::Map<String, Value> =
            self.processes.iter().map(|(name, sample)| (name.clone(), sample.json())).collect();
        json!({ "seconds": self.seconds, "swaps": self.swaps, "deaths": self.deaths, "open": self.open,
            "processes": processes })
    }
}

/// All of it.
pub(super) struct Outcome {
    head: Value,
    connections: usize,
    timings: Timings,
    rows: Vec<Row>,
    swaps: u64,
    deaths: u64,
    ends: Vec<(String, Sample, Sample)>,
    /// The ends of the logs.
    said: Vec<String>,
}

impl Outcome {
    pub(super) fn new(settings: &Settings, connections: usize, timings: Timings) -> Self {
        let mut head = machine::facts();
        head["agent"] =
            settings.products.there.first().map(|product| product.version.clone()).unwrap_or_default().into();
        Self {
            head,
            connections,
            timings,
            rows: Vec::new(),
            swaps: 0,
            deaths: 0,
            ends: Vec::new(),
            said: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, row: Row) {
        if self.rows.len().is_multiple_of(6) {
            let seen = |(name, sample): &(String, Sample)| {
                format!(
                    "{name}: {:.1} MB, {} descriptors, {} tasks, {} connections",
                    sample.resident_bytes / 1e6,
                    sample.descriptors,
                    sample.tasks,
                    sample.connections
                )
            };
            let seen: Vec<String> = row.processes.iter().map(seen).collect();
            println!("bench: {:>5.0} s, {} open; {}", row.seconds, row.open, seen.join("; "));
        }
        self.rows.push(row);
    }

    pub(super) fn happened(&mut self, swaps: u64, deaths: u64) {
        (self.swaps, self.deaths) = (swaps, deaths);
    }

    /// What a process held before the clients came, and after they had gone.
    pub(super) fn end(&mut self, name: String, idle: Sample, left: Sample) {
        self.ends.push((name, idle, left));
    }

    /// What a process has logged last, which is told only if something is wrong.
    pub(super) fn said(&mut self, name: &str, log: &str) {
        let lines: Vec<&str> = log.lines().collect();
        let last = &lines[lines.len().saturating_sub(TOLD_LINES)..];
        self.said.extend(last.iter().map(|line| format!("{name}: {line}")));
    }

    /// Prints the tables, writes the file if one is wanted; says whether all is well. Trends of a run that is only to show
    /// that it works are not judged.
    pub(super) fn finish(mut self, clients: &Clients, json: Option<&Path>, quick: bool) -> Result<bool> {
        self.head["loadAfter"] = machine::load().into();
        let seconds = self.rows.last().map_or(0.0, |row| row.seconds);
        println!("\nsoak: {} connections for {seconds:.0} s; {}", self.connections, self.head);
        let (events, mut faults) = self.events(clients);
        for (name, number) in &events {
            println!("  {name:<58} {number:>10}");
        }
        let mut trends = Vec::new();
        println!(
            "\n  {:<34} {:>10} {:>10} {:>10} {:>10}",
            "from first to last fifth", "first", "last", "most", "peak"
        );
        for (place, (process, ..)) in self.ends.iter().enumerate() {
            for watched in &WATCHED {
                let Some(trend) = self.trend(place, watched) else {
                    faults.push(format!("{process}: too few samples of {}", watched.name));
                    continue;
                };
                let name = format!("{process}, {} {}", watched.name, watched.unit);
                println!(
                    "  {name:<34} {:>10.1} {:>10.1} {:>10.1} {:>10.1}",
                    trend.first, trend.last, trend.most, trend.peak
                );
                if !trend.flat() && !quick {
                    faults.push(format!("{process}: {} grows", watched.name));
                }
                trends.push(json!({ "process": process, "measure": watched.name, "unit": watched.unit,
                    "trend": trend.json() }));
            }
        }
        println!("\n  {:<34} {:>21} {:>21}", "without clients", "before", "after");
        for (process, idle, left) in &self.ends {
            for watched in &WATCHED {
                let name = format!("{process}, {} {}", watched.name, watched.unit);
                println!("  {name:<34} {:>21.1} {:>21.1}", (watched.of)(idle), (watched.of)(left));
            }
            if !left.is_back(idle) {
                faults.push(format!("{process}: something is left of clients that have gone"));
            }
        }
        let said = if faults.is_empty() { &[] } else { self.said.as_slice() };
        for line in said.iter().chain(&faults) {
            println!("bench: {line}");
        }
        if let Some(json) = json {
            let events: serde_json::Map<String, Value> =
                events.into_iter().map(|(name, number)| (name.to_owned(), number.into())).collect();
            let ends: Vec<Value> = self.ends.iter().map(|(process, idle, left)| {
                json!({ "process": process, "before": idle.json(), "after": left.json() })
            }).collect();
            let document = json!({
                "benchmark": "soak", "machine": self.head, "connections": self.connections, "seconds": seconds,
                "events": events, "results": trends, "withoutClients": ends, "failures": faults, "log": said,
                "brokenConnections": clients.counts.told(), "warmUpSeconds": self.timings.warm_up.as_secs_f64(),
                "samples": self.rows.iter().map(Row::json).collect::<Vec<_>>(),
            });
            fs::write(json, serde_json::to_string_pretty(&document)?)
                .with_context(|| format!("cannot write {}", json.display()))?;
        }
        Ok(faults.is_empty())
    }

    /// What happened, and what of it must not have happened.
    fn events(&self, clients: &Clients) -> (Vec<(&'static str, u64)>, Vec<String>) {
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counts = &clients.counts;
        let events = vec![
            ("replacements of all chains, on every entry", self.swaps),
            ("deaths of exits", self.deaths),
            ("connections opened", number(&counts.opened)),
            ("connections closed when their time was over", number(&counts.closed)),
            ("exchanges on connections, all answered rightly", number(&counts.exchanges)),
            ("connections broken by the death of their exit", number(&counts.died)),
            ("connections not opened while an exit was dying", number(&counts.unopened)),
            ("connections broken or not opened for no such reason", number(&counts.failed)),
            ("datagrams answered", number(&counts.datagrams)),
            ("datagrams unanswered while an exit died", number(&counts.datagrams_died)),
            ("datagrams unanswered for no such reason", number(&counts.datagrams_lost)),
        ];
        let mut faults = Vec::new();
        if number(&counts.failed) > 0 {
            faults.push(format!("{} failures without a reason", number(&counts.failed)));
        }
        let lost = number(&counts.datagrams_lost) as f64;
        if lost > LOST_SHARE * number(&counts.datagrams) as f64 {
            faults.push(format!("{lost} datagrams were lost"));
        }
        // What did not happen was not shown to be harmless.
        let needed = [
            ("no chain was replaced", self.swaps),
            ("no exit died", self.deaths),
            ("nothing was exchanged", number(&counts.exchanges)),
            ("no datagram was answered", number(&counts.datagrams)),
            ("no connection broke with its exit", number(&counts.died)),
        ];
        faults.extend(needed.iter().filter(|(_, number)| *number == 0).map(|(fault, _)| (*fault).to_owned()));
        (events, faults)
    }

    /// Of one process after the warm-up: as if it had had its mean number of connections all the time.
    fn trend(&self, place: usize, watched: &Watched) -> Option<Trend> {
        let warm_up = self.timings.warm_up.as_secs_f64();
        let warm = self.rows.iter().filter(|row| row.seconds >= warm_up);
        let samples: Vec<Sample> =
            warm.map(|row| row.processes.get(place).map(|(_, sample)| *sample)).collect::<Option<_>>()?;
        let mean = samples.iter().map(|sample| sample.connections).sum::<f64>() / samples.len().max(1) as f64;
        let value = |sample: &Sample| {
            let share = if watched.per_connection { mean / sample.connections.max(1.0) } else { 1.0 };
            (watched.of)(sample) * share
        };
        Trend::of(&samples.iter().map(value).collect::<Vec<_>>(), watched.bound)
    }
}
