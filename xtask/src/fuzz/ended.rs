//! What a run of one target came to.

use crate::run;
use std::fmt;
use std::path::PathBuf;

/// What libFuzzer says at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Inputs that were run.
    pub(crate) executions: u64,
    /// Edges of the control flow that the corpus reaches.
    pub(crate) edges: u64,
    /// Features: edges with how often they were passed, and comparisons.
    pub(crate) features: u64,
}

/// The outcome of one run.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) counts: Counts,
    /// Not the time on the wall, which says nothing on a busy machine.
    pub(crate) processor_seconds: f64,
    /// Inputs that reach what none before did.
    pub(crate) new_entries: usize,
    /// Inputs on which the target failed.
    pub(crate) findings: Vec<PathBuf>,
}

impl Ended {
    /// Above the columns of [`Ended::row`].
    pub(crate) const HEADINGS: &str = "  executions  processor s   edges  features  new entries  findings";

    /// One line of a table.
    pub(crate) fn row(&self) -> String {
        let Self { counts, processor_seconds, new_entries, findings } = self;
        let Counts { executions, edges, features } = counts;
        let findings = findings.len();
        format!(
            "{executions:>12} {processor_seconds:>12.0} {edges:>7} {features:>9} {new_entries:>12} {findings:>9}"
        )
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { counts, processor_seconds, new_entries, findings } = self;
        let (executions, features, findings) = (counts.executions, counts.features, findings.len());
        write!(
            f,
            "{executions} executions in {processor_seconds:.0} s of processor time, {features} features, \
             {new_entries} new entries, {findings} findings"
        )
    }
}

/// Reads a log. `#123 DONE cov: 45 ft: 67 …` is what all lines about progress look like; one that stopped at a finding
/// has none called so, and says no sum.
pub(super) fn counts(log: &str) -> Counts {
    let mut counts = Counts::default();
    for line in log.lines() {
        if let Some(sum) = line.strip_prefix("stat::number_of_executed_units:") {
            counts.executions = sum.trim().parse().unwrap_or(counts.executions);
        } else if let Some(progress) = line.strip_prefix('#') {
            let words: Vec<&str> = progress.split_whitespace().collect();
            let after = |name: &str| {
                let at = words.iter().position(|word| *word == name)?;
                words.get(at + 1)?.parse().ok()
            };
            counts.executions = words.first().and_then(|word| word.parse().ok()).unwrap_or(counts.executions);
            counts.edges = after("cov:").unwrap_or(counts.edges);
            counts.features = after("ft:").unwrap_or(counts.features);
        }
    }
    counts
}

/// The processor time of a process so far.
pub(super) fn processor_seconds(pid: u32) -> Option<f64> {
    run::ticks(pid).map(|ticks| ticks / run::TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read() {
        let log = "\
INFO: Running with entropic power schedule (0xFF, 100).
#2\tINITED cov: 10 ft: 11 corp: 1/1b exec/s: 0 rss: 30Mb
#262144\tpulse  cov: 154 ft: 240 corp: 31/420b lim: 2611 exec/s: 131072 rss: 50Mb
#300000\tDONE   cov: 155 ft: 243 corp: 32/430b lim: 2974 exec/s: 130000 rss: 50Mb
###### Recommended dictionary. ######
\"ab\" # Uses: 7
Done 300000 runs in 2 second(s)
stat::number_of_executed_units: 300001
stat::average_exec_per_sec:     150000
";
        assert_eq!(counts(log), Counts { executions: 300_001, edges: 155, features: 243 });
    }

    #[test]
    fn one_that_stopped_at_a_finding_says_how_far_it_came() {
        let log =
            "#4096\tREDUCE cov: 7 ft: 8 corp: 3/9b\nthread '<unnamed>' panicked at fuzz/src/x.rs:1:1:\n";
        assert_eq!(counts(log), Counts { executions: 4096, edges: 7, features: 8 });
        assert_eq!(counts(""), Counts::default());
    }
}
