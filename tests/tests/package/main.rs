//! The npm packages as their users have them: installed into a project, in Node.js and under TypeScript.
//!
//! `cargo xtask packages` builds them. `EXITPILOT_MALFORMED` (10000) says how many malformed inputs each function gets,
//! `EXITPILOT_SEED` (1) which.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall fail where it stands")]

mod project;

use project::Project;

/// The example says what its calls promise.
#[test]
fn the_example_for_node_runs() {
    let Some(project) = Project::new() else { return };
    let said = project.node(&project.package().join("examples/node.mjs"), &[]);
    for line in [
        "fifo: Failover (主备). Always the first usable node; the others stand by.",
        "exit.strategy: at character 19: expected milliseconds such as 50 or 50ms, at most 30 days, found `soon` \
         [strategy_syntax]",
        "strategy_syntax policy character 19",
        "5000 ms: switched from exit 1 to exit 2, better by 140 ms",
        "applied: 2, 1",
        "best, classic: 1 switches",
    ] {
        assert!(said.contains(line), "no `{line}` in\n{said}");
    }
}

/// The vectors that pass natively and in the crate's own WebAssembly tests pass through the package, too; and what it
/// answers is what index.d.ts says.
#[test]
fn the_vectors_come_out_the_same_and_have_the_declared_types() {
    let Some(project) = Project::new() else { return };
    let vectors = project::root().join("shared/tests/vectors");
    let seen = project.folder().join("seen.ts");
    std::fs::copy(project::script("vectors.mjs"), project.folder().join("vectors.mjs")).unwrap();
    let said = project.node(&project::script("vectors_in_node.mjs"), &[&vectors, &seen]);
    println!("REPORT: {}", said.trim());
    project.compile(&["seen.ts"]);
}

/// 10,000 malformed inputs into every function: an `Error` with code and field each time, and the module still works.
#[test]
fn malformed_inputs_are_errors_with_code_and_field() {
    let Some(project) = Project::new() else { return };
    let said = project.node(&project::script("malformed.mjs"), &[]);
    println!("REPORT: {}", said.trim());
}

/// The examples compile under TypeScript's strict rules, in a project for browsers and in one for Node.js; what must not
/// compile does not.
#[test]
fn a_typescript_project_compiles() {
    let Some(project) = Project::new() else { return };
    for name in ["use.ts", "refused.ts"] {
        std::fs::copy(project::script("typescript").join(name), project.folder().join(name)).unwrap();
    }
    let example = project.folder().join("StrategyField.tsx");
    std::fs::copy(project.package().join("examples/StrategyField.tsx"), example).unwrap();
    if project.compile(&["use.ts", "refused.ts"]) {
        project.compile(&["StrategyField.tsx"]);
        project.node(&project.folder().join("out/use.js"), &[]);
    }
}

/// The editor's types and its React example compile under TypeScript's strict rules; what must not compile does not. Where
/// there is no document, the package can be loaded all the same: pages are also drawn on servers.
#[test]
fn a_typescript_project_with_the_editor_compiles() {
    let Some(project) = Project::with("tunnel-editor") else { return };
    let example = project.package().join("examples/react/TunnelEditor.tsx");
    std::fs::copy(example, project.folder().join("TunnelEditor.tsx")).unwrap();
    std::fs::copy(project::script("typescript").join("editor.tsx"), project.folder().join("editor.tsx"))
        .unwrap();
    project.compile(&["TunnelEditor.tsx", "editor.tsx"]);
    let script = project.folder().join("load.mjs");
    std::fs::write(&script, "import { mountTunnelEditor } from '@exitpilot/tunnel-editor'; console.log(typeof mountTunnelEditor);")
        .unwrap();
    assert_eq!(project.node(&script, &[]).trim(), "function");
}
