//! `cargo xtask bench panel`: the panel with 1,000 agents and 10,000 `best` tunnels.
//!
//! The panel is a process of its own. This one plays the agents: they speak the link as real ones do, and measure what a
//! seeded world says, in which some tunnels have a better exit every round. What is looked at: what a round costs, how soon a
//! decision is on the wire, how much memory that takes, how the API answers meanwhile, and what a restart does.
mod agent;
mod client;
mod process;
mod told;
mod world;

use agent::{Agent, Shared};
use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use client::Client;
use process::Panel;
use server::store::Db;
use shared::best_exit::Settings;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use told::Told;
use world::{Size, World};

/// For what must happen in the end.
const PATIENCE: Duration = Duration::from_secs(300);
/// Between looks at what is waited for.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Parser)]
struct Arguments {
    /// Write the results to this file
    #[arg(long)]
    json: Option<PathBuf>,
    /// Only show that it works: few agents, few and short rounds
    #[arg(long)]
    quick: bool,
    /// Rounds of which each part consists
    #[arg(long, default_value_t = 12)]
    rounds: u32,
    /// Only the sizes whose names hold this: "10000 tunnels" and so on
    #[arg(long)]
    only: Option<String>,
    /// Keep the panel's files here, for whoever wants to look at them
    #[arg(long)]
    keep: bool,
    /// `cargo bench` says so.
    #[arg(long, hide = true)]
    bench: bool,
}

/// How long everything lasts, in rounds.
#[derive(Clone)]
struct Plan {
    settings: Settings,
    first_wait: Duration,
    settle: u32,
    measure: u32,
    calm: u32,
}

impl Plan {
    fn new(arguments: &Arguments) -> Self {
        let settings = Settings::default();
        let rounds = arguments.rounds.max(2);
        if arguments.quick {
            let quick = Settings {
                round_interval_ms: 500,
                ping_count: 2,
                cooldown_ms: 500,
                confirmations: 1,
                ..Settings::default()
            };
            return Self {
                settings: quick,
                first_wait: Duration::from_millis(200),
                settle: 3,
                measure: 4,
                calm: 5,
            };
        }
        // What is under way when the networks come to rest ends with the confirmations and a cooldown.
        Self { settings, first_wait: Duration::from_secs(2), settle: 9, measure: rounds, calm: 12 }
    }

    fn interval(&self) -> Duration {
        Duration::from_millis(self.settings.round_interval_ms)
    }

    async fn rounds(&self, count: u32) {
        tokio::time::sleep(self.interval() * count).await;
    }
}

// One thread for all played agents: the panel has the other core.
#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let plan = Plan::new(&arguments);
    let mut told = Told::default();
    let sizes: Vec<(String, Size, bool)> = if arguments.quick {
        vec![("200 tunnels".to_owned(), Size::of(200), true)]
    } else {
        let of = |tunnels| (format!("{tunnels} tunnels"), Size::of(tunnels), tunnels == 10_000);
        let apart = ("10000 tunnels apart".to_owned(), Size::of(10_000).apart(), false);
        vec![of(10_000), of(1000), of(100), apart]
    };
    for (name, size, whole) in sizes {
        if arguments.only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        let mut stage = Stage::start(&name, size, &plan).await.with_context(|| name.clone())?;
        stage.quiet(&mut told).await.with_context(|| name.clone())?;
        if whole {
            stage.busy(&mut told).await.context("with the API in use")?;
            stage = stage.restart(&mut told).await.context("the restart")?;
        }
        stage.end(arguments.keep).await?;
    }
    told.finish(arguments.json.as_deref())
}

/// A panel and its agents.
struct Stage {
    name: String,
    size: Size,
    plan: Plan,
    folder: TempDir,
    panel: Panel,
    shared: Arc<Shared>,
    stop: CancellationToken,
    tracker: TaskTracker,
}

impl Stage {
    /// Fills a panel, starts it, and has every agent run what it should.
    async fn start(name: &str, size: Size, plan: &Plan) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("exitpilot-bench-").tempdir()?;
        let db = Db::open(&process::url(folder.path())).await?;
        let world = World::fill(&db, size, &plan.settings).await?;
        db.close().await;
        let panel = Panel::start(folder.path(), 0)?;
        println!("{name}: {} agents, {} legs, {} objects", size.nodes(), world.legs, size.objects());
        let shared = Arc::new(Shared::new(world, panel.address, plan.interval(), plan.first_wait));
        let (stop, tracker) = (CancellationToken::new(), TaskTracker::new());
        for number in 0..size.nodes() {
            tracker.spawn(Agent::new(shared.clone(), number).live(stop.clone()));
        }
        let stage =
            Self { name: name.to_owned(), size, plan: plan.clone(), folder, panel, shared, stop, tracker };
        let took = until("everything is deployed", || {
            stage.shared.objects.load(Ordering::Relaxed) == size.objects()
        });
        println!("{name}: everything is deployed after {:.1} s", took.await?.as_secs_f64());
        plan.rounds(plan.settle).await;
        Ok(stage)
    }

    /// What a round costs while nobody looks.
    async fn quiet(&mut self, told: &mut Told) -> Result<()> {
        let mut client = Client::login(self.panel.address)?;
        let before = self.numbers(&mut client)?;
        self.plan.rounds(self.plan.measure).await;
        let after = self.numbers(&mut client)?;
        let rounds = after.rounds - before.rounds;
        ensure!(rounds >= 1.0, "no round ended");
        let processor_ms = (after.processor_s - before.processor_s) * 1000.0 / rounds;
        let legs = self.shared.world.legs as f64;
        told.number(&self.name, "legs", legs);
        told.number(&self.name, "processor time of a round, ms", processor_ms);
        told.number(&self.name, "of it per leg, µs", processor_ms * 1000.0 / legs);
        told.number(&self.name, "switches of a round", (after.switches - before.switches) / rounds);
        told.number(&self.name, "resident memory, MB", self.panel.memory_mb()?.0);
        Ok(())
    }

    /// Decisions on their way to the agents, and the API beside them.
    async fn busy(&mut self, told: &mut Told) -> Result<()> {
        let stop = Arc::new(AtomicBool::new(false));
        let asking = {
            let (panel, stop) = (self.panel.address, stop.clone());
            let tunnels: Vec<i64> = self.shared.world.exits.keys().copied().collect();
            std::thread::spawn(move || client::ask_on(panel, &tunnels, &stop))
        };
        self.shared.take_pushes();
        self.shared.noting.store(true, Ordering::Relaxed);
        let mut most: f64 = 0.0;
        for _ in 0..self.plan.measure {
            self.plan.rounds(1).await;
            most = most.max(self.panel.memory_mb()?.0);
        }
        until("a tunnel is switched", || self.shared.has_pushes()).await?;
        self.shared.noting.store(false, Ordering::Relaxed);
        stop.store(true, Ordering::Relaxed);
        let latencies = tokio::task::spawn_blocking(move || asking.join()).await?;
        let latencies = latencies.map_err(|_| anyhow::anyhow!("the API's client panicked"))??;
        let pushes = self.shared.take_pushes();
        told.latencies(&self.name, "answer to UpdateChains at the agent", pushes);
        told.latencies(&self.name, "API, all", latencies.values().flatten().copied().collect());
        let reads = latencies.iter().filter(|(what, _)| what.starts_with("GET"));
        told.latencies(&self.name, "API, reading", reads.flat_map(|(_, ms)| ms.clone()).collect());
        for (what, ms) in latencies {
            told.latencies(&self.name, &format!("API, {what}"), ms);
        }
        told.number(&self.name, "resident memory with the API in use, MB", most);
        told.number(&self.name, "most memory since the start, MB", self.panel.memory_mb()?.1);
        Ok(())
    }

    /// The networks come to rest, the panel stops and starts, and nobody may be told to change anything.
    async fn restart(self, told: &mut Told) -> Result<Self> {
        self.shared.freeze();
        self.plan.rounds(self.plan.calm).await;
        let changes = self.shared.changes.load(Ordering::Relaxed);
        self.plan.rounds(3).await;
        ensure!(
            self.shared.changes.load(Ordering::Relaxed) == changes,
            "there was no rest before the restart"
        );
        let Self { name, size, plan, folder, panel, shared, stop, tracker } = self;
        let port = panel.address.port();
        panel.stop().await?;
        until("all agents have seen the end", || shared.online.load(Ordering::Relaxed) == 0).await?;
        let start = now();
        let panel = Panel::start(folder.path(), port)?;
        let listening = start.elapsed();
        let back = || shared.online.load(Ordering::Relaxed) == size.nodes();
        until("all agents are back", back).await?;
        let connected = start.elapsed();
        until("all agents are asked again", || shared.asked.load(Ordering::Relaxed) == size.nodes()).await?;
        let asked = start.elapsed();
        plan.rounds(plan.calm).await;
        let mut client = Client::login(panel.address)?;
        let changed = shared.changes.load(Ordering::Relaxed) - changes;
        for (what, took) in
            [("listens", listening), ("all are connected", connected), ("all measure again", asked)]
        {
            told.number(
                &name,
                &format!("restart, s until it {what}").replace("it all", "all"),
                took.as_secs_f64(),
            );
        }
        told.number(&name, "restart, switches", client.metric("exitpilot_switches_total")?);
        told.number(&name, "restart, commands that change something", changed as f64);
        told.number(
            &name,
            "restart, agents lost",
            (size.nodes() - shared.online.load(Ordering::Relaxed)) as f64,
        );
        ensure!(changed == 0, "agents were told to change something that they ran already");
        Ok(Self { name, size, plan, folder, panel, shared, stop, tracker })
    }

    async fn end(self, keep: bool) -> Result<()> {
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
        self.panel.stop().await?;
        if keep {
            println!("{}: files are in {}", self.name, self.folder.keep().display());
        }
        Ok(())
    }

    fn numbers(&self, client: &mut Client) -> Result<Numbers> {
        Ok(Numbers {
            rounds: client.metric("exitpilot_rounds_total")?,
            switches: client.metric("exitpilot_switches_total")?,
            processor_s: self.panel.processor_s()?,
        })
    }
}

struct Numbers {
    rounds: f64,
    switches: f64,
    processor_s: f64,
}

/// Waits until something holds; answers how long that took.
async fn until(what: &str, condition: impl Fn() -> bool) -> Result<Duration> {
    let start = now();
    while !condition() {
        ensure!(start.elapsed() < PATIENCE, "never happened: {what}");
        tokio::time::sleep(LOOK).await;
    }
    Ok(start.elapsed())
}

/// A benchmark reads the clock and nothing else does with it.
#[expect(clippy::disallowed_methods, reason = "what is measured is time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
