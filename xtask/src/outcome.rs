//! What test programs say, and the sum of it.

use std::fmt;
use std::ops::AddAssign;

/// Numbers of tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// Reads the output of `cargo test -- --show-output` line by line.
///
/// A test that finds something it needs missing prints a line `SKIPPED: …` and returns. The test program calls that a
/// pass; here it is a skip. `--show-output` is what makes such lines visible, and lines
/// `REPORT: …` with figures that somebody wants to see; the rest of what passing tests print is not worth showing.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    tally: Tally,
    section: Section,
    /// The test in whose output we are has said that it was skipped.
    skip_counted: bool,
    /// Tests that were skipped by themselves since the last result line, to be taken off its passes.
    skipped_passes: u64,
    results: u64,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Section {
    #[default]
    Running,
    Successes,
    Failures,
}

impl Reader {
    /// Takes one line and says whether it is worth showing.
    pub(crate) fn line(&mut self, line: &str) -> bool {
        if let Some(counts) = result_line(line) {
            self.tally.passed += counts.passed.saturating_sub(self.skipped_passes);
            self.tally.failed += counts.failed;
            self.tally.skipped += counts.skipped + self.skipped_passes;
            *self = Self { tally: self.tally, results: self.results + 1, ..Self::default() };
            return true;
        }
        match line {
            "successes:" => self.section = Section::Successes,
            "failures:" => self.section = Section::Failures,
            _ if line.starts_with("---- ") && line.ends_with(" ----") => self.skip_counted = false,
            _ if line.starts_with("SKIPPED: ") => self.skipped(),
            _ => {}
        }
        let told = ["SKIPPED: ", "REPORT: "].iter().any(|start| line.starts_with(start));
        self.section != Section::Successes || told
    }

    fn skipped(&mut self) {
        match self.section {
            Section::Successes if !self.skip_counted => {
                self.skip_counted = true;
                self.skipped_passes += 1;
            }
            // Several things missing in one test are one skipped test; a test that failed is a failure.
            Section::Successes | Section::Failures => {}
            Section::Running => self.tally.skipped += 1,
        }
    }

    /// How many test programs ran to their end.
    pub(crate) fn results(&self) -> u64 {
        self.results
    }

    /// The sum so far.
    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }
}

/// `test result: ok. 3 passed; 0 failed; 1 ignored; …`
fn result_line(line: &str) -> Option<Tally> {
    let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let count = |name: &str| {
        counts.split(';').find_map(|part| part.trim().strip_suffix(name)?.trim_end().parse::<u64>().ok())
    };
    Some(Tally { passed: count("passed")?, failed: count("failed")?, skipped: count("ignored").unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Reader, String) {
        let mut reader = Reader::default();
        let shown = text.lines().filter(|line| reader.line(line)).map(|line| format!("{line}\n")).collect();
        (reader, shown)
    }

    #[test]
    fn sums_the_programs() {
        let (reader, shown) = read(
            "\
running 2 tests
test a ... ok
test b ... ignored
test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.01s
running 1 test
test c ... FAILED

failures:

---- c stdout ----
SKIPPED: said by a test that failed

failures:
    c

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
",
        );
        assert_eq!(reader.tally(), Tally { passed: 1, failed: 1, skipped: 1 });
        assert_eq!(reader.results(), 2);
        assert!(shown.contains("said by a test that failed"));
    }

    #[test]
    fn a_pass_that_was_a_skip_is_a_skip() {
        let (reader, shown) = read(
            "\
running 3 tests
test a ... ok
test b ... ok
test c ... ok

successes:

---- a stdout ----
long story
SKIPPED: gost not installed
SKIPPED: sing-box not installed

---- b stdout ----
SKIPPED: gost not installed

successes:
    a
    b
    c

test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
",
        );
        assert_eq!(reader.tally(), Tally { passed: 1, failed: 0, skipped: 2 });
        assert!(shown.contains("SKIPPED: gost not installed"));
        assert!(!shown.contains("long story"));
        assert!(shown.ends_with("finished in 0.01s\n"));
    }

    #[test]
    fn a_suite_that_skips_itself_counts() {
        let (reader, _) = read("SKIPPED: no network namespaces here\n");
        assert_eq!(reader.tally(), Tally { passed: 0, failed: 0, skipped: 1 });
        assert_eq!(reader.results(), 0);
    }

    #[test]
    fn only_result_lines_are_result_lines() {
        assert_eq!(result_line("test result_line ... ok"), None);
        assert_eq!(result_line("test result: ok. many passed; 0 failed"), None);
        // The runner of wasm tests says less.
        assert_eq!(
            result_line("test result: ok. 3 passed; 0 failed; 0 ignored; 1 filtered out; finished in 0.1s"),
            Some(Tally { passed: 3, failed: 0, skipped: 0 })
        );
    }

    #[test]
    fn the_last_line_reads_as_promised() {
        let mut sum = Tally { passed: 1, failed: 2, skipped: 3 };
        sum += Tally { passed: 1, failed: 0, skipped: 0 };
        assert_eq!(sum.to_string(), "2 passed, 2 failed, 3 skipped");
    }
}
