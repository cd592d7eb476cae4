//! Records what agents really measure on links that change by a script, for replays.
//!
//! One panel, three exits, and one entry for each scene: a scene is what happens to the links from its entry to exit A.
//! All scenes run at once; what their legs showed is read from the panel at the end and written to one file each.

use crate::netlab::{Burst, Change, Impairment, Script};
use crate::rig::{Stage, StageOptions};
use anyhow::{Context as _, Result};
use shared::api::{LegHistory, SettingsInput};
use shared::best_exit::Settings;
use shared::ids::TunnelId;
use shared::replay::history::History;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Between two rounds.
const ROUND_MS: u64 = 2000;
/// One way to exits A, B and C while nothing happens, and how much it wanders.
const DELAYS_MS: [u64; 3] = [15, 25, 45];
const JITTER_MS: u64 = 2;
/// When a scene's change begins and ends, in seconds; before it the links are as they are for 150 s.
const FROM_S: u64 = 150;
const TO_S: u64 = 450;
/// How long everything is recorded.
const LENGTH_S: u64 = 600;

/// A scene: its name, and what happens to both directions between its entry and exit A, with the second.
type Scene = (&'static str, fn(&str) -> Vec<(u64, Change)>);

const SCENES: [Scene; 5] = [
    ("latency", |entry| {
        let slow = Impairment::delay(Duration::from_millis(60)).jitter(Duration::from_millis(JITTER_MS));
        vec![(FROM_S, to_a(entry, slow)), (TO_S, to_a(entry, usual(0)))]
    }),
    ("loss", |entry| vec![(FROM_S, to_a(entry, usual(0).loss(0.08))), (TO_S, to_a(entry, usual(0)))]),
    ("bursts", |entry| {
        let bursts = usual(0).burst(Burst::from_average(0.1, 8.0));
        vec![(FROM_S, to_a(entry, bursts)), (TO_S, to_a(entry, usual(0)))]
    }),
    ("death", |entry| {
        let (cut, repair) = (Change::cut(entry, EXITS[0]), Change::repair(entry, EXITS[0]));
        vec![(FROM_S, cut.clone()), (270, repair.clone()), (400, cut), (407, repair)]
    }),
    ("oscillation", |entry| {
        let slow = Impairment::delay(Duration::from_millis(65)).jitter(Duration::from_millis(JITTER_MS));
        let flip = |i: u64| to_a(entry, if i.is_multiple_of(2) { slow.clone() } else { usual(0) });
        (0..)
            .map(|i| (FROM_S + 20 * i, i))
            .take_while(|(at, _)| *at < 570)
            .map(|(at, i)| (at, flip(i)))
            .collect()
    }),
];

const EXITS: [&str; 3] = ["exit-a", "exit-b", "exit-c"];

fn usual(exit: usize) -> Impairment {
    Impairment::delay(Duration::from_millis(DELAYS_MS[exit])).jitter(Duration::from_millis(JITTER_MS))
}

fn to_a(entry: &str, impairment: Impairment) -> Change {
    Change::set_both(entry, EXITS[0], impairment)
}

/// Plays all scenes and writes `NAME.json` for each into `folder`.
///
/// # Errors
/// When the lab cannot be had, a program does not work, or a file cannot be written.
pub async fn record(folder: &Path) -> Result<()> {
    let entries: Vec<String> = SCENES.iter().map(|(name, _)| format!("entry-{name}")).collect();
    let settings = SettingsInput { round_interval_ms: Some(ROUND_MS), ..SettingsInput::default() };
    let options =
        StageOptions { entries: entries.clone(), mids: Vec::new(), settings, ..StageOptions::new("record") };
    let stage = Stage::start(options).await?;
    let mut script = Script::new();
    let mut tunnels = Vec::new();
    for ((name, scene), entry) in SCENES.iter().zip(&entries) {
        for (exit, at) in EXITS.iter().zip(0..) {
            stage.lab.link(entry, exit).set_both(usual(at))?;
        }
        for (second, change) in scene(entry) {
            script = script.at(Duration::from_secs(second), change);
        }
        let (tunnel, ..) = stage.open(&stage.best(name, &[entry], &[], &EXITS)?).await?;
        tunnels.push((*name, tunnel.id));
    }
    let mut playback = stage.lab.play(script)?;
    tokio::time::sleep(Duration::from_secs(LENGTH_S)).await;
    playback.finished().await?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for (name, tunnel) in tunnels {
        let history = history(&stage, name, tunnel).await?;
        let file = folder.join(format!("{name}.json"));
        fs::write(&file, serde_json::to_string(&history)? + "\n")
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    stage.close().await;
    Ok(())
}

async fn history(stage: &Stage, name: &str, tunnel: TunnelId) -> Result<History> {
    let legs: Vec<LegHistory> = stage.api.get(&format!("/api/v1/tunnels/{}/quality", tunnel.0)).await?;
    let settings = Settings { round_interval_ms: ROUND_MS, ..Settings::default() };
    let mut history = History::of_legs(name, &settings, &legs, &|id| stage.name(id));
    // Recordings are compared by what happens in them, not by when they were made.
    for owner in &mut history.owners {
        let start = owner.rounds.first().map_or(0, |(at, _)| *at);
        owner.rounds.iter_mut().for_each(|(at, _)| *at -= start);
    }
    history.check().context("what was recorded cannot be replayed")?;
    Ok(history)
}
