//! `cargo xtask bench policies`: every way of choosing on every trace, against an oracle with hindsight.
#![expect(clippy::expect_used, reason = "a benchmark that cannot write its result has failed")]

#[path = "../tests/traces/mod.rs"]
mod recorded;

use serde_json::{Value, json};
use shared::best_exit::{DecisionRules, Settings};
use shared::replay::best::{Best, Flvx};
use shared::replay::families::{Family, HELD_OUT, TUNING};
use shared::replay::groups::GroupRule;
use shared::replay::peers::{DaeMovingAverage, GostFifo, GostLowestLatency, Mihomo, SingBox, XrayLeastPing};
use shared::replay::scenarios::{self, Judged, Scenario};
use shared::replay::{Rule, Run, Trace, run};

/// What one percent of loss costs in the truth, as in the settings' defaults.
const PENALTY: f64 = 100.0;
/// Seeds that were tuned on; reported are those from [`REPORTED`] on.
const TUNED: u64 = 1;
const REPORTED: u64 = 1_000_001;

/// The value after an argument.
fn after(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

type Make = fn() -> Box<dyn Rule>;

fn group(text: &'static str) -> Box<dyn Rule> {
    Box::new(GroupRule::new(text).expect("a valid policy"))
}

/// All rules; those that never look at quality are marked.
fn rules() -> Vec<(Make, bool)> {
    vec![
        (
            || {
                Box::new(Best::new(
                    "best adaptive",
                    Settings { decision_rules: DecisionRules::Adaptive, ..Settings::default() },
                ))
            },
            true,
        ),
        (|| Box::new(Best::new("best classic", Settings::default())), true),
        (|| Box::new(Flvx::default()), true),
        (|| group("urltest"), true),
        (|| group("min"), true),
        (|| group("min_avg10"), true),
        (|| group("min_moving_avg"), true),
        (|| group("min_moving_avg(tolerance=20ms)"), true),
        (|| group("fixed_fallback(0)"), false),
        (|| group("fixed(0)"), false),
        (|| Box::new(SingBox::default()), true),
        (|| Box::new(Mihomo::default()), true),
        (|| Box::new(XrayLeastPing::default()), true),
        (|| Box::new(DaeMovingAverage::default()), true),
        (|| Box::new(GostLowestLatency::default()), true),
        (|| Box::new(GostFifo::default()), false),
    ]
}

/// What a rule made of several traces.
#[derive(Default)]
struct Sum {
    runs: usize,
    excess: f64,
    p99: f64,
    unusable_ms: u64,
    switches: usize,
    needless: usize,
    detections: Vec<u64>,
    undetected: usize,
}

impl Sum {
    fn add(&mut self, trace: &Trace, run: &Run) {
        self.runs += 1;
        self.excess += run.mean_excess_ms;
        self.p99 += run.p99_excess_ms;
        self.unusable_ms += run.unusable_ms;
        self.switches += run.switches.len();
        self.needless += run.needless();
        if trace.onset.is_some() {
            match run.detection_ms {
                Some(ms) => self.detections.push(ms),
                None => self.undetected += 1,
            }
        }
    }

    fn mean(&self, sum: f64) -> f64 {
        sum / self.runs.max(1) as f64
    }

    fn json(&self) -> Value {
        let mut detections = self.detections.clone();
        detections.sort_unstable();
        json!({
            "runs": self.runs,
            "meanExcessMs": self.mean(self.excess),
            "p99ExcessMs": self.mean(self.p99),
            "unusableMs": self.unusable_ms,
            "switches": self.switches,
            "needlessSwitches": self.needless,
            "medianDetectionMs": detections.get(detections.len() / 2),
            "undetected": self.undetected,
        })
    }
}

/// Every switch with its time and, for `best`, its reason.
fn explain_run(run: &Run) {
    println!("    run with {} switches", run.switches.len());
    for switch in &run.switches {
        let reason = run
            .reasons
            .iter()
            .rfind(|(at, _)| *at <= switch.at)
            .map(|(_, reason)| reason.describe(&|exit| format!("exit {}", exit.0)));
        println!(
            "      {:>6} s: {} -> {}{} {}",
            switch.at / 1000,
            switch.from,
            switch.to,
            if switch.needless { " needless" } else { "" },
            reason.unwrap_or_default()
        );
    }
}

fn on_scenario(make: Make, scenario: &Scenario, explain: Option<&str>) -> (Sum, Value) {
    let mut sum = Sum::default();
    let (applies, accepted, detail) = match &scenario.judged {
        Judged::Traces(traces, judge) => {
            let mut runs = Vec::new();
            for trace in traces {
                let run = run(make().as_mut(), trace, PENALTY);
                if explain == Some(scenario.id) {
                    explain_run(&run);
                }
                sum.add(trace, &run);
                runs.push(run);
            }
            let (accepted, detail) = judge(&runs);
            (true, accepted, detail)
        }
        Judged::Value(accepted, detail) => (false, *accepted, detail.clone()),
        Judged::Elsewhere(proof) => (false, true, (*proof).to_owned()),
    };
    let mut value = sum.json();
    value["id"] = json!(scenario.id);
    value["what"] = json!(scenario.what);
    value["accept"] = json!(scenario.accept);
    value["applies"] = json!(applies);
    value["accepted"] = json!(accepted);
    value["detail"] = json!(detail);
    (sum, value)
}

fn on_family(make: Make, family: &Family, seed: u64, count: u64, explain: Option<&str>) -> Sum {
    let mut sum = Sum::default();
    for i in 0..count {
        let trace = (family.1)(seed + i);
        let run = run(make().as_mut(), &trace, PENALTY);
        if explain == Some(family.0) {
            explain_run(&run);
        }
        sum.add(&trace, &run);
    }
    sum
}

fn families(make: Make, families: &[Family], seed: u64, count: u64, total: &mut Sum) -> Vec<Value> {
    let mut values = Vec::new();
    for family in families {
        let sum = on_family(make, family, seed, count, after("--explain").as_deref());
        let mut value = sum.json();
        value["family"] = json!(family.0);
        values.push(value);
        total.runs += sum.runs;
        total.excess += sum.excess;
        total.p99 += sum.p99;
        total.unusable_ms += sum.unusable_ms;
        total.switches += sum.switches;
        total.needless += sum.needless;
    }
    values
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let (quick, only) = (has("--quick"), after("--only"));
    // For tuning: the families that may be looked at, and nothing else.
    let tuning = has("--tuning");
    let mut scenarios = scenarios::all(quick);
    scenarios.extend(recorded::scenarios());
    let count = if quick { 2 } else { 6 };

    println!(
        "{:<32} {:>9} {:>9} {:>9} {:>6} {:>6}  not accepted",
        "policy", "excess ms", "p99 ms", "unusable", "switch", "needl."
    );
    let mut policies = Vec::new();
    for (make, follows) in rules() {
        let name = make().name().to_owned();
        if only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        let mut total = Sum::default();
        let mut values = Vec::new();
        let mut refused = Vec::new();
        let (mut applying, mut on_recorded) = (0, (0.0, Sum::default()));
        for scenario in &scenarios {
            let (sum, value) = on_scenario(make, scenario, after("--explain").as_deref());
            // Each scenario counts once, whatever its number of runs.
            if sum.runs > 0 {
                applying += 1;
                total.excess += sum.mean(sum.excess);
                total.p99 += sum.mean(sum.p99);
            }
            if scenario.id.starts_with("recorded") {
                on_recorded.0 += sum.mean(sum.excess);
                on_recorded.1.unusable_ms += sum.unusable_ms;
                on_recorded.1.switches += sum.switches;
                on_recorded.1.needless += sum.needless;
                on_recorded.1.p99 += sum.mean(sum.p99);
            }
            total.unusable_ms += sum.unusable_ms;
            total.switches += sum.switches;
            total.needless += sum.needless;
            if value["accepted"] == json!(false) {
                refused.push(format!("{} ({})", scenario.id, value["detail"].as_str().unwrap_or_default()));
            }
            values.push(value);
        }
        let (mut tuned, mut held_out) = (Sum::default(), Sum::default());
        let tuned_values = families(make, &TUNING, if tuning { TUNED } else { REPORTED }, count, &mut tuned);
        let held_values =
            if tuning { Vec::new() } else { families(make, &HELD_OUT, REPORTED, count, &mut held_out) };
        let row = |name: &str, sum: &Sum, excess: f64, p99: f64, rest: &str| {
            println!(
                "{name:<32} {excess:>9.1} {p99:>9.0} {:>7} s {:>6} {:>6}  {rest}",
                sum.unusable_ms / 1000,
                sum.switches,
                sum.needless
            );
        };
        row(&name, &total, total.excess, total.p99 / f64::from(applying.max(1)), &refused.join("; "));
        row("  of these, recorded runs", &on_recorded.1, on_recorded.0, on_recorded.1.p99 / 5.0, "");
        row("  families tuned on", &tuned, tuned.mean(tuned.excess), tuned.mean(tuned.p99), "");
        if !tuning {
            row(
                "  families held out",
                &held_out,
                held_out.mean(held_out.excess),
                held_out.mean(held_out.p99),
                "",
            );
        }
        if has("--verbose") {
            for value in tuned_values.iter().chain(&held_values) {
                println!(
                    "    {:<46} excess {:>8.1} unusable {:>6} switches {:>5} needless {:>4} detection {} undetected {}",
                    value["family"].as_str().unwrap_or_default(),
                    value["meanExcessMs"].as_f64().unwrap_or(0.0),
                    value["unusableMs"],
                    value["switches"],
                    value["needlessSwitches"],
                    value["medianDetectionMs"],
                    value["undetected"]
                );
            }
            for value in &values {
                println!(
                    "    {} {} | {}",
                    value["id"],
                    value["accepted"],
                    value["detail"].as_str().unwrap_or_default()
                );
            }
        }
        policies.push(json!({
            "name": name,
            "followsQuality": follows,
            "totalExcessMs": total.excess,
            "p99ExcessMs": total.p99 / f64::from(applying.max(1)),
            "unusableMs": total.unusable_ms,
            "switches": total.switches,
            "needlessSwitches": total.needless,
            "scenarios": values,
            "families": { "tuned": tuned_values, "heldOut": held_values },
        }));
    }
    if let Some(file) = after("--json") {
        let text = serde_json::to_string_pretty(&json!({ "policies": policies })).expect("plain values");
        std::fs::write(&file, text).expect("the result can be written");
    }
}
