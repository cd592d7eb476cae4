//! The commands of the workspace: `cargo xtask <command>`.
//!
//! Nothing here knows the product's code; it knows how to build, check and run it.

mod bench;
mod bundle;
mod cache;
mod clock;
mod commands;
mod fuzz;
mod lockfile;
mod modules;
mod outcome;
mod packages;
mod page;
mod project;
mod run;
mod setup;
mod site;
mod stamp;
mod styles;

use clap::{Parser, Subcommand};
use std::net::SocketAddr;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Builds, checks and shows ExitPilot")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install what `demo` and `test` need and the machine lacks
    Setup(commands::setup::Arguments),
    /// Build everything and show the product on a simulated bad network
    Demo(commands::demo::Arguments),
    /// Run the test suites; without a name all of them
    Test(commands::test::Arguments),
    /// Release binaries of the panel (page embedded) and the agent into target/dist/
    Build,
    /// Run the benchmarks; without a name all of them
    Bench(commands::bench::Arguments),
    /// Feed the decoders with what reaches more and more of them; without a name all of them
    Fuzz(commands::fuzz::Arguments),
    /// Take the pictures of docs/screens.md anew
    Screenshots,
    /// Everything a change has to pass: format, tidy, page, clippy, tests, build
    Ci,
    /// Check the rules of the layout that no compiler knows
    Tidy,
    /// Build the npm packages into target/dist/npm/ when one of their inputs changed
    Packages,
    /// Build the page into target/site/ when one of its inputs changed
    Page,
    /// What the connections of `bench soak` lead to
    #[command(hide = true)]
    SoakTarget { address: SocketAddr },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = project::Project::load().and_then(|project| match arguments.command {
        Command::Setup(arguments) => commands::setup::run(&project, &arguments),
        Command::Demo(arguments) => commands::demo::run(&project, &arguments),
        Command::Test(arguments) => commands::test::run(&project, &arguments),
        Command::Build => commands::build::run(&project),
        Command::Bench(arguments) => commands::bench::run(&project, &arguments),
        Command::Fuzz(arguments) => commands::fuzz::run(&project, &arguments),
        Command::Screenshots => commands::screenshots::run(&project),
        Command::Ci => commands::ci::run(&project),
        Command::Tidy => commands::tidy::run(&project),
        Command::Packages => commands::build::packages(&project),
        Command::Page => commands::build::page(&project),
        Command::SoakTarget { address } => bench::soak::serve_target(address),
    });
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
