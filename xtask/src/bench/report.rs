//! Collects what was measured, prints it, writes it.

use super::numbers::Spread;
use super::product::{OURS, Products};
use super::{Settings, machine};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Measure {
    /// Place in the table.
    pub(super) order: u8,
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) more_is_better: bool,
}

type Series = BTreeMap<&'static str, BTreeMap<usize, f64>>;

/// One benchmark's results.
pub(super) struct Report {
    benchmark: &'static str,
    head: Value,
    runs: usize,
    products: Vec<(&'static str, String)>,
    missing: Vec<(&'static str, String)>,
    /// (scenario, measure) → product → run → value.
    values: BTreeMap<(&'static str, Measure), Series>,
    failures: Vec<String>,
    ours_failed: bool,
}

impl Report {
    pub(super) fn new(benchmark: &'static str, settings: &Settings, products: &Products) -> Self {
        Self {
            benchmark,
            head: machine::facts(),
            runs: settings.runs,
            products: products.there.iter().map(|product| (product.name, product.version.clone())).collect(),
            missing: products.missing.clone(),
            values: BTreeMap::new(),
            failures: Vec::new(),
            ours_failed: false,
        }
    }

    pub(super) fn add(
        &mut self,
        (scenario, product, run): (&'static str, &'static str, usize),
        measure: Measure,
        value: f64,
    ) {
        self.values.entry((scenario, measure)).or_default().entry(product).or_default().insert(run, value);
    }

    /// A run that gave no numbers. Ours make the benchmark fail.
    pub(super) fn fail(&mut self, (scenario, product): (&'static str, &'static str), error: &anyhow::Error) {
        let failure = format!("{scenario}, {product}: {error:#}");
        println!("bench: {failure}");
        self.ours_failed |= product == OURS;
        if !self.failures.contains(&failure) {
            self.failures.push(failure);
        }
    }

    /// Prints the tables, writes the file if one is wanted; says whether all runs of our product gave numbers.
    pub(super) fn finish(mut self, json: Option<&Path>) -> Result<bool> {
        self.head["loadAfter"] = machine::load().into();
        println!("\n{}: {} runs, products in turn; {}", self.benchmark, self.runs, self.head);
        for (name, version) in &self.products {
            println!("  {name}: {version}");
        }
        for (name, why) in &self.missing {
            println!("  {name}: {why}");
        }
        let mut before = "";
        for ((scenario, measure), series) in &self.values {
            if *scenario != before {
                println!("\n{scenario}");
                before = scenario;
            }
            println!("  {} [{}]", measure.name, measure.unit);
            for (product, runs) in series {
                let Some(spread) = Spread::of(&runs.values().copied().collect::<Vec<_>>()) else { continue };
                let numbers = format!("{:>10.2}  ({:.2} to {:.2})", spread.median, spread.min, spread.max);
                match ratio(series, product) {
                    Some(ratio) => println!(
                        "    {product:<10} {numbers:<36} ours / theirs {:.2} ({:.2} to {:.2})",
                        ratio.median, ratio.min, ratio.max
                    ),
                    None => println!("    {product:<10} {numbers}"),
                }
            }
        }
        if let Some(json) = json {
            fs::write(json, serde_json::to_string_pretty(&self.json())?)
                .with_context(|| format!("cannot write {}", json.display()))?;
        }
        Ok(!self.ours_failed)
    }

    fn json(&self) -> Value {
        let products = |list: &[(&'static str, String)], key: &str| -> Vec<Value> {
            list.iter().map(|(name, text)| json!({ "name": name, key: text })).collect()
        };
        let results: Vec<Value> = self.values.iter().map(|((scenario, measure), series)| json!({
            "scenario": scenario, "measure": measure.name, "unit": measure.unit,
            "better": if measure.more_is_better { "more" } else { "less" },
            "products": series.iter().map(|(product, runs)| {
                let runs: Vec<f64> = runs.values().copied().collect();
                json!({
                    "name": product, "runs": runs, "spread": Spread::of(&runs).map(|spread| spread.json()),
                    "oursToTheirs": ratio(series, product).map(|ratio| ratio.json()),
                })
            }).collect::<Vec<_>>(),
        })).collect();
        json!({
            "benchmark": self.benchmark, "machine": self.head, "runs": self.runs,
            "products": products(&self.products, "version"), "missing": products(&self.missing, "reason"),
            "results": results, "failures": self.failures,
        })
    }
}

/// Ours to theirs, run by run: both were measured within the same seconds.
fn ratio(series: &Series, product: &str) -> Option<Spread> {
    if product == OURS {
        return None;
    }
    let (ours, theirs) = (series.get(OURS)?, series.get(product)?);
    let pairs = theirs.iter().filter_map(|(run, theirs)| Some(ours.get(run)? / theirs));
    Spread::of(&pairs.filter(|ratio| ratio.is_finite()).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_pair_the_same_runs() {
        let series = BTreeMap::from([
            ("ExitPilot", BTreeMap::from([(0, 10.0), (1, 40.0), (2, 7.0)])),
            ("other", BTreeMap::from([(0, 5.0), (1, 10.0), (3, 1.0)])),
            ("idle", BTreeMap::from([(0, 0.0)])),
        ]);
        let spread = ratio(&series, "other").unwrap();
        assert_eq!((spread.min, spread.max), (2.0, 4.0));
        assert!(ratio(&series, "ExitPilot").is_none() && ratio(&series, "idle").is_none());
    }
}
