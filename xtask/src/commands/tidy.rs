//! `cargo xtask tidy`: the rules of the layout that no compiler knows.

use crate::project::{Package, Project};
use anyhow::{Context as _, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// From here on a file is listed: it may be two nouns.
const NOTED_LINES: usize = 400;
/// More lines of code fail.
const MOST_LINES: usize = 800;
/// The crates that only meet in `shared`.
const APART: [&str; 3] = ["server", "agent", "frontend"];
/// What would bring input, output or a clock into the pure logic.
const NOT_IN_SHARED: [&str; 6] = ["tokio", "axum", "sqlx", "leptos", "Instant", "SystemTime"];

/// Prints what breaks a rule, and notes; returns whether nothing does.
pub(crate) fn run(project: &Project) -> Result<bool> {
    let mut findings = dependency_rules(project.packages());
    let mut notes = Vec::new();
    for file in sources(project)? {
        let text = fs::read_to_string(project.root().join(&file))
            .with_context(|| format!("cannot read {}", file.display()))?;
        check_file(&file, &text, &mut findings, &mut notes);
    }
    for note in &notes {
        println!("tidy: note: {note}");
    }
    for finding in &findings {
        println!("tidy: {finding}");
    }
    println!("tidy: {} rules broken, {} notes", findings.len(), notes.len());
    Ok(findings.is_empty())
}

/// All Rust files of the workspace, relative to its root, in alphabetical order.
fn sources(project: &Project) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for package in project.packages() {
        let dir = package.manifest_path.parent().context("a manifest lies in a folder")?;
        let dir = dir.strip_prefix(project.root()).context("a package outside of the workspace")?;
        collect(project.root(), dir, &mut files)?;
    }
    files.sort();
    Ok(files)
}

fn collect(root: &Path, below: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            if entry.file_name() != "target" {
                collect(root, &path, files)?;
            }
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

fn dependency_rules(packages: &[Package]) -> Vec<String> {
    let members: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let mut findings = Vec::new();
    for package in packages {
        let name = package.name.as_str();
        for dependency in &package.dependencies {
            let other = dependency.name.as_str();
            // Features of its own tests may bring a package in as its own dev-dependency.
            if !members.contains(&other) || other == name {
                continue;
            }
            let forbidden = match name {
                "shared" | "xtask" => true,
                _ => APART.contains(&name) && other != "shared",
            };
            if forbidden {
                findings.push(format!("{name} must not depend on {other}"));
            }
        }
    }
    findings
}

fn check_file(file: &Path, text: &str, findings: &mut Vec<String>, notes: &mut Vec<String>) {
    let name = file.display();
    if !is_test_file(file) {
        let lines = lines_of_code(text);
        if lines > MOST_LINES {
            findings.push(format!("{name} has {lines} lines of code; at most {MOST_LINES} are allowed"));
        } else if lines > NOTED_LINES {
            notes.push(format!("{name} has {lines} lines of code"));
        }
    }
    // This crate names what it looks for.
    if file.starts_with("xtask") {
        return;
    }
    for (index, line) in text.lines().enumerate() {
        let code = line.split_once("//").map_or(line, |(code, _)| code);
        let place = format!("{name}:{}", index + 1);
        // The store's own tests write past it, to see that the database itself refuses nonsense, and its benchmark, which
        // needs a long past.
        let may_sql = ["server/src/store", "server/tests/store", "server/benches/history"];
        if code.contains("sqlx::") && !may_sql.iter().any(|folder| file.starts_with(folder)) {
            findings.push(format!("{place}: sqlx is only for server/src/store"));
        }
        if file.starts_with("shared/src") {
            for word in NOT_IN_SHARED.iter().filter(|word| has_word(code, word)) {
                findings.push(format!("{place}: {word} does not belong into shared"));
            }
        }
    }
}

/// Files that hold nothing but tests: those of a package's `tests` folder, and modules called so.
fn is_test_file(file: &Path) -> bool {
    file.iter().skip(1).any(|part| part == "tests" || part == "tests.rs" || part == "benches")
}

/// Lines with code: without empty ones, comments, and the test module at a file's end.
fn lines_of_code(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_test_module =
        |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{');
    let end = lines.windows(2).position(is_test_module).unwrap_or(lines.len());
    lines[..end].iter().filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

/// Whether `word` stands in `code` as a whole identifier.
fn has_word(code: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(start, _)| {
        !code[..start].chars().next_back().is_some_and(is_part)
            && !code[start + word.len()..].chars().next().is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: &str, text: &str) -> (Vec<String>, Vec<String>) {
        let (mut findings, mut notes) = (Vec::new(), Vec::new());
        check_file(Path::new(file), text, &mut findings, &mut notes);
        (findings, notes)
    }

    #[test]
    fn long_files_are_noted_and_longer_ones_fail() {
        let text = |lines: usize| {
            format!(
                "// a comment\n\n{}#[cfg(test)]\nmod tests {{\n{}",
                "x();\n".repeat(lines),
                "y();\n".repeat(900)
            )
        };
        assert_eq!(check("agent/src/a.rs", &text(400)), (vec![], vec![]));
        assert_eq!(check("agent/src/a.rs", &text(401)).1, ["agent/src/a.rs has 401 lines of code"]);
        let (findings, notes) = check("tests/src/a.rs", &text(801));
        assert_eq!(findings, ["tests/src/a.rs has 801 lines of code; at most 800 are allowed"]);
        assert!(notes.is_empty());
        assert_eq!(check("tests/tests/system/a.rs", &text(801)), (vec![], vec![]));
        assert_eq!(check("agent/src/link/tests.rs", &text(801)), (vec![], vec![]));
    }

    #[test]
    fn sql_stays_in_the_store() {
        let line = "use sqlx::Row;\n";
        assert_eq!(check("server/src/store/users.rs", line).0, Vec::<String>::new());
        assert_eq!(check("server/tests/store/main.rs", line).0, Vec::<String>::new());
        assert_eq!(
            check("server/src/app/users.rs", line).0,
            ["server/src/app/users.rs:1: sqlx is only for server/src/store"]
        );
        assert_eq!(check("server/src/app/users.rs", "// not sqlx::Row\n").0, Vec::<String>::new());
    }

    #[test]
    fn shared_stays_pure() {
        let found =
            check("shared/src/a.rs", "use std::time::{Duration, Instant};\nlet a = tokio::spawn();\n").0;
        assert_eq!(
            found,
            [
                "shared/src/a.rs:1: Instant does not belong into shared",
                "shared/src/a.rs:2: tokio does not belong into shared"
            ]
        );
        assert!(
            check("shared/src/a.rs", "struct InstantNoodles; let tokio_like = 1; // tokio\n").0.is_empty()
        );
        assert!(check("agent/src/a.rs", "use tokio::time::Instant;\n").0.is_empty());
    }

    #[test]
    fn crates_meet_only_in_shared() {
        let package = |name: &str, dependencies: &[&str]| {
            let dependencies: Vec<_> =
                dependencies.iter().map(|name| serde_json::json!({ "name": name })).collect();
            serde_json::from_value(serde_json::json!({
                "name": name, "manifest_path": "x", "dependencies": dependencies, "targets": [],
            }))
            .unwrap()
        };
        let good = [
            package("shared", &["serde"]),
            package("server", &["shared", "tokio"]),
            package("agent", &["shared"]),
            package("frontend", &["shared", "leptos"]),
            package("tests", &["server", "agent", "shared"]),
            package("xtask", &["clap"]),
        ];
        assert_eq!(dependency_rules(&good), Vec::<String>::new());
        let bad = [
            package("shared", &["server"]),
            package("server", &["agent"]),
            package("agent", &["tests"]),
            package("frontend", &["server"]),
            package("tests", &[]),
            package("xtask", &["shared"]),
        ];
        assert_eq!(dependency_rules(&bad).len(), 5);
    }
}
