//! What the test suites are: the commands each of them runs and what they need from the machine.

use crate::project::Project;
use crate::setup::Part;

/// A named part of the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Suite {
    /// Pure logic and single modules
    Unit,
    /// The panel's API, in-process
    Api,
    /// The shared logic as the browser runs it, and the npm package with it
    Wasm,
    /// Real processes on a simulated network
    System,
    /// Partitions, crashes and lost messages under many seeds
    Sim,
    /// The page in a real browser
    Browser,
    /// Real GOST and sing-box on the other side
    Interop,
    /// The SQL on a real PostgreSQL
    Postgres,
}

/// The test target that tries the npm package, a part of the wasm suite.
const PACKAGE: &str = "package";

/// One run of `cargo test`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Everything after `cargo test`, up to the `--`.
    pub(crate) cargo: Vec<String>,
    /// How many tests at once; `None` leaves it to the test program.
    pub(crate) threads: Option<usize>,
    /// Makes network namespaces: without root it has to run in a user namespace.
    pub(crate) namespaces: bool,
    /// Runs in the wasm test runner, which knows none of the options of native test programs.
    pub(crate) wasm: bool,
}

impl Step {
    fn new(cargo: &[&str]) -> Self {
        let cargo = cargo.iter().map(|&word| word.to_owned()).collect();
        Self { cargo, threads: None, namespaces: false, wasm: false }
    }

    fn in_namespaces(self, threads: usize) -> Self {
        Self { threads: Some(threads), namespaces: true, ..self }
    }
}

impl Suite {
    /// All suites, in the order in which they run: what fails fast comes first.
    pub(crate) const ALL: [Self; 8] = [
        Self::Unit,
        Self::Api,
        Self::Wasm,
        Self::Sim,
        Self::Postgres,
        Self::System,
        Self::Interop,
        Self::Browser,
    ];

    /// The name on the command line and in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unit => "unit",
            Self::Api => "api",
            Self::Wasm => "wasm",
            Self::System => "system",
            Self::Sim => "sim",
            Self::Browser => "browser",
            Self::Interop => "interop",
            Self::Postgres => "postgres",
        }
    }

    /// What the machine has to have.
    pub(crate) fn needs(self) -> &'static [Part] {
        match self {
            Self::Unit | Self::Api | Self::Sim | Self::Interop => &[],
            Self::Wasm => &[Part::WasmStd, Part::WasmBindgen, Part::Node, Part::TypeScript],
            Self::System => &[Part::Lab],
            Self::Browser => &[Part::Browser, Part::Axe, Part::Dashboard, Part::React, Part::Lab],
            Self::Postgres => &[Part::Postgres],
        }
    }

    /// Whether it starts the panel and the agent as processes.
    pub(crate) fn needs_binaries(self) -> bool {
        matches!(self, Self::System | Self::Browser | Self::Interop)
    }

    /// Whether it looks at the page.
    pub(crate) fn needs_page(self) -> bool {
        self == Self::Browser
    }

    /// Whether it uses the npm packages.
    pub(crate) fn needs_packages(self) -> bool {
        matches!(self, Self::Wasm | Self::Browser)
    }

    /// Whether the suite may be missing: its test targets are not written yet.
    pub(crate) fn may_be_missing(self) -> bool {
        matches!(self, Self::Sim | Self::Postgres)
    }

    /// The runs of this suite, as far as its test targets exist. Empty when none does.
    pub(crate) fn steps(self, project: &Project) -> Vec<Step> {
        match self {
            Self::Unit => vec![
                Step::new(&["-p", "shared", "--all-features"]),
                Step::new(&["-p", "agent"]),
                Step::new(&["-p", "fuzz"]),
                Step::new(&["-p", "xtask"]),
                Step::new(&["-p", "server", "--lib"]),
                Step::new(&["-p", "tests", "--lib"]),
                Step::new(&["-p", "frontend", "--lib"]),
            ],
            Self::Api => steps_of(tests_of(project, "server")),
            Self::Wasm => {
                let target = ["--target", "wasm32-unknown-unknown"];
                let shared = Step::new(&[&["-p", "shared", "--lib", "--tests"], &target[..]].concat());
                let package = named(project, PACKAGE);
                [Step { wasm: true, ..shared }].into_iter().chain(package).collect()
            }
            // Timing is measured there, so one test at a time; and before the others, which build on it.
            Self::System => {
                let (lab, rest): (Vec<_>, Vec<_>) =
                    tests_of(project, "tests").into_iter().partition(|(_, test)| test == "netlab");
                let lab = steps_of(lab).into_iter().map(|step| step.in_namespaces(1));
                lab.chain(steps_of(rest).into_iter().map(|step| step.in_namespaces(2))).collect()
            }
            Self::Browser => {
                named(project, "browser").into_iter().map(|step| Step { threads: Some(1), ..step }).collect()
            }
            // Everything is on loopback; each test runs two or three processes.
            Self::Interop => {
                named(project, "interop").into_iter().map(|step| Step { threads: Some(2), ..step }).collect()
            }
            Self::Sim => named(project, "sim"),
            Self::Postgres => named(project, "postgres"),
        }
    }
}

/// The test targets with the name of a suite, wherever they are.
fn named(project: &Project, suite: &str) -> Vec<Step> {
    let all = project.packages().iter().flat_map(|package| {
        let tests = package.targets("test").into_iter().filter(|test| *test == suite);
        tests.map(|test| (package.name.clone(), test.to_owned()))
    });
    steps_of(all.collect())
}

/// The test targets of a package that no suite claims by name. So a new file of tests is never forgotten.
fn tests_of(project: &Project, package: &str) -> Vec<(String, String)> {
    let suites = [Suite::Browser, Suite::Interop, Suite::Sim, Suite::Postgres].map(Suite::name);
    let claimed = [&suites[..], &[PACKAGE]].concat();
    let targets = project.package(package).map(|package| package.targets("test")).unwrap_or_default();
    targets
        .into_iter()
        .filter(|test| !claimed.contains(test))
        .map(|test| (package.to_owned(), test.to_owned()))
        .collect()
}

/// One step per package, with all its targets.
fn steps_of(targets: Vec<(String, String)>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (package, test) in targets {
        match steps.iter_mut().find(|step| step.cargo[1] == package) {
            Some(step) => step.cargo.extend(["--test".to_owned(), test]),
            None => steps.push(Step::new(&["-p", &package, "--test", &test])),
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_runs_once_when_all_run() {
        let mut all = Suite::ALL.to_vec();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), <Suite as clap::ValueEnum>::value_variants().len());
    }

    #[test]
    fn no_package_is_forgotten() {
        let project = Project::load().unwrap();
        let steps: Vec<Step> = Suite::ALL.into_iter().flat_map(|suite| suite.steps(&project)).collect();
        for package in project.packages() {
            let of_package = |step: &&Step| step.cargo.starts_with(&["-p".to_owned(), package.name.clone()]);
            let units =
                steps.iter().filter(of_package).any(|step| !step.cargo.iter().any(|word| word == "--test"));
            assert!(units, "nothing runs the unit tests of {}", package.name);
            for test in package.targets("test") {
                let named = |step: &Step| {
                    step.cargo.windows(2).any(|words| words == ["--test", test])
                        || !step.cargo.iter().any(|w| w.starts_with("--test") || w == "--lib")
                };
                assert!(
                    steps.iter().filter(of_package).any(named),
                    "nothing runs {test} of {}",
                    package.name
                );
            }
        }
    }

    #[test]
    fn targets_of_one_package_are_one_step() {
        let target = |package: &str, test: &str| (package.to_owned(), test.to_owned());
        let steps = steps_of(vec![target("server", "api"), target("tests", "sim"), target("server", "auth")]);
        let words: Vec<String> = steps.iter().map(|step| step.cargo.join(" ")).collect();
        assert_eq!(words, ["-p server --test api --test auth", "-p tests --test sim"]);
    }
}
