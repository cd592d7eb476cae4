//! The demo: everything that is needed to see the product work, and a story that shows what it is for.
//!
//! - [`plot`]: what the network does, and what must follow; pure
//! - [`scene`]: the nodes, the tunnels and the users
//! - [`story`]: plays the plot and tells it
//! - [`record`]: what happened, for the file of `--json`
//! - [`rootless`]: a network for those who are not root

pub mod plot;
pub mod record;
pub mod rootless;
pub mod scene;
pub mod story;
pub mod tell;

use anyhow::{Context as _, Result};
use scene::Scene;
use std::path::{Path, PathBuf};
use std::time::Duration;
use story::Story;
use tell::Teller;

/// Between two performances for visitors.
const PAUSE: Duration = Duration::from_secs(20);

/// The command line.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "exitpilot-demo", about = "Shows on a network with bad links how the best exit is chosen")]
pub struct Options {
    /// Play the story once, without waiting for a visitor, and end
    #[arg(long)]
    pub headless: bool,
    /// Write what happened to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The port of the panel's page on 127.0.0.1; otherwise 6365, or any free one
    #[arg(long)]
    pub port: Option<u16>,
}

/// Sets up everything and plays. Whether the story went as told.
///
/// # Errors
/// When something could not be set up, or stopped working.
pub async fn run(options: &Options) -> Result<bool> {
    let teller = Teller::new();
    teller.line("setting up: a network of 8 hosts, the panel, 5 agents, a target and users");
    let scene = Scene::set(options.port).await?;
    teller.line(&format!("page:  http://{}/", scene.page()));
    teller.line(&format!("login: admin   password: {}", scene.stage().panel.password()));
    let outcome = perform(&teller, &scene, options).await;
    if outcome.is_err() {
        teller.line(&scene.stage().logs(20));
    }
    scene.strike().await;
    outcome
}

async fn perform(teller: &Teller, scene: &Scene, options: &Options) -> Result<bool> {
    loop {
        let (record, broken_off) = Story::new(scene, teller).play().await?;
        let mut complaints = plot::complaints(&record);
        if let Some(error) = broken_off {
            teller.line(&scene.stage().logs(20));
            complaints.insert(0, format!("{error:#}"));
        }
        for complaint in &complaints {
            teller.line(&format!("NOT AS TOLD: {complaint}"));
        }
        if complaints.is_empty() {
            teller.line("the story went as told");
        }
        if let Some(file) = &options.json {
            write(file, &record::Record { ok: complaints.is_empty(), ..record })?;
        }
        if options.headless {
            return Ok(complaints.is_empty());
        }
        teller.line(&format!("again in {} s; Ctrl-C ends", PAUSE.as_secs()));
        tokio::time::sleep(PAUSE).await;
    }
}

fn write(file: &Path, record: &record::Record) -> Result<()> {
    let text = serde_json::to_string_pretty(record)? + "\n";
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}
