//! Whether the agent grows: many connections for a long time, while chains are replaced, probes come and go and exits
//! go down and up.
//!
//! Memory, descriptors and tasks of the entries and of the exit that stays up are looked at all the time; none may grow,
//! and when the clients have gone, no task and no descriptor may be left. A connection may break only by the death of
//! the exit that it goes through.

mod clients;
mod entry;
mod exits;
mod report;
mod sample;
mod target;
mod verdict;

use super::load::spawn;
use super::product::Product;
use super::running::{Listens, Running};
use super::{OTHER_FILES, Settings};
use crate::{clock, run};
use anyhow::{Context as _, Result, anyhow};
use clients::{Clients, Counts};
use entry::Entry;
use exits::{Exits, own_address, pause};
use report::{Outcome, Row};
use sample::Sample;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use tokio::sync::watch;

pub(crate) use target::serve as serve_target;

/// Sessions of datagrams at the same time, per entry.
const SESSIONS: usize = 40;
/// One entry has so many files per connection: more than the two that most need, since the agent keeps files for others.
const FILES_PER_CONNECTION: usize = 4;
/// For what is left when the clients have gone: sessions of datagrams end after 5 s of silence.
const LEAVING: Duration = Duration::from_secs(60);
/// Looks at the agents before the clients come.
const IDLE_LOOKS: usize = 12;
const IDLE_PAUSE: Duration = Duration::from_millis(250);

/// How long and how many.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Size {
    /// How long `soak` lasts
    #[arg(long, value_name = "N", default_value_t = 60)]
    minutes: u64,
    /// Connections of `soak`
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    connections: usize,
}

impl Default for Size {
    fn default() -> Self {
        Self { minutes: 60, connections: 10_000 }
    }
}

/// How often things happen.
#[derive(Clone, Copy)]
struct Timings {
    total: Duration,
    /// Until everything has been made that is made once.
    warm_up: Duration,
    sample: Duration,
    swap: Duration,
    exit_up: Duration,
    exit_down: Duration,
    /// The time in which all connections are opened.
    ramp: Duration,
    /// Least and most that a connection lives.
    life: (Duration, Duration),
    /// Least and most between two exchanges on a connection.
    pause: (Duration, Duration),
}

impl Timings {
    fn of(minutes: u64) -> Self {
        let total = Duration::from_secs(minutes * 60);
        let seconds = |least, most| (Duration::from_secs(least), Duration::from_secs(most));
        Self {
            total,
            warm_up: (total / 6).min(Duration::from_secs(600)),
            sample: Duration::from_secs(10).min(total / 60),
            swap: Duration::from_secs(2),
            exit_up: Duration::from_secs(17),
            exit_down: Duration::from_secs(8),
            ramp: (total / 12).min(Duration::from_secs(30)),
            life: seconds(60, 240),
            pause: seconds(10, 30),
        }
    }

    fn quick() -> Self {
        let (tenth, second) = (Duration::from_millis(100), Duration::from_secs(1));
        Self {
            total: 6 * second,
            warm_up: second,
            sample: 2 * tenth,
            swap: 2 * tenth,
            exit_up: second,
            exit_down: 5 * tenth,
            ramp: 5 * tenth,
            life: (second, 3 * second),
            pause: (2 * tenth, 5 * tenth),
        }
    }
}

/// Everything that runs.
struct Scene {
    exits: Arc<Exits>,
    entries: Arc<Vec<Entry>>,
    _target: Running,
}

impl Scene {
    fn start(settings: &Settings, product: &Product, entries: usize) -> Result<Self> {
        let dir = settings.folder(product.name)?;
        let target = own_address(4, 1)?;
        let mut far_end = Running::default();
        let mut command = run::command(std::env::current_exe()?);
        command.arg("soak-target").arg(target.to_string());
        far_end.add(command, &dir.join("target.log"), Listens::Tcp(target))?;
        let exits = Arc::new(Exits::start(product, &dir)?);
        let entry = |number: usize| {
            Entry::start(product, u8::try_from(number)?, exits.clone(), target, &dir)
                .with_context(|| format!("entry {number}"))
        };
        let entries = Arc::new((1..=entries).map(entry).collect::<Result<Vec<_>>>()?);
        Ok(Self { exits, entries, _target: far_end })
    }

    /// The agents that are there for the whole time: name, process, API.
    fn lasting(&self) -> Vec<(String, Option<u32>, SocketAddr)> {
        let entries = self.entries.iter().map(|entry| (entry.name.clone(), entry.process(), entry.api));
        let steady = self.exits.steady().map(|exit| ("lasting exit".to_owned(), exit.process(), exit.api));
        entries.chain(steady).collect()
    }

    fn samples(&self) -> Result<Vec<Sample>> {
        let take = |(name, process, api): (String, _, _)| Sample::take(process, api).context(name);
        self.lasting().into_iter().map(take).collect()
    }
}

/// Runs it with the project's own agent alone.
pub(super) fn run(settings: &Settings, size: Size) -> Result<bool> {
    let product = settings.products.there.iter().find(|product| product.is_ours());
    let product = product.context("the agent is not built")?;
    let wanted = if settings.quick { 120 } else { size.connections };
    let connections = wanted.min(settings.files.saturating_sub(OTHER_FILES));
    if connections < wanted {
        println!(
            "bench: {connections} instead of {wanted} connections: the limit on open files allows no more"
        );
    }
    let timings = if settings.quick { Timings::quick() } else { Timings::of(size.minutes) };
    let per_entry = (settings.files / FILES_PER_CONNECTION).max(1);
    let scene = Scene::start(settings, product, connections.div_ceil(per_entry))?;
    let mut outcome = Outcome::new(settings, connections, timings);

    let mut idle = vec![Sample::default(); scene.lasting().len()];
    for _ in 0..IDLE_LOOKS {
        thread::sleep(IDLE_PAUSE);
        for (most, now) in idle.iter_mut().zip(scene.samples()?) {
            most.raise(&now);
        }
    }
    let counts = soak(&scene, product, connections, timings, &mut outcome)?;
    scene.entries.iter().try_for_each(Entry::begin_anew)?;
    let left = leave(&scene, &idle)?;
    for ((name, ..), (idle, left)) in scene.lasting().into_iter().zip(idle.into_iter().zip(left)) {
        outcome.end(name, idle, left);
    }
    scene.entries.iter().for_each(|entry| outcome.said(&entry.name, &entry.log()));
    outcome.finish(&counts, settings.json.as_deref(), settings.quick)
}

/// The time with clients.
fn soak(
    scene: &Scene,
    product: &Product,
    connections: usize,
    timings: Timings,
    outcome: &mut Outcome,
) -> Result<Arc<Clients>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let (stop_clients, stop) = watch::channel(false);
    let clients = Arc::new(Clients { counts: Counts::new(), exits: scene.exits.clone(), timings, stop });
    let stop = Arc::new(AtomicBool::new(false));
    let swaps = Arc::new(AtomicU64::new(0));
    let swapping = {
        let (entries, stop, swaps) = (scene.entries.clone(), stop.clone(), swaps.clone());
        spawn(move || -> Result<()> {
            while pause(timings.swap, &stop) {
                let number = swaps.fetch_add(1, Ordering::Relaxed) as usize + 1;
                entries.iter().try_for_each(|entry| entry.replace(number))?;
            }
            Ok(())
        })?
    };
    let dying = scene.exits.go_up_and_down(product, timings, &stop)?;
    let start = clock::now();
    {
        let _entered = runtime.enter();
        clients.start(&scene.entries, connections, SESSIONS * scene.entries.len());
    }
    let sampled = loop {
        thread::sleep(timings.sample);
        let seconds = start.elapsed().as_secs_f64();
        let row = scene.samples().map(|samples| Row {
            seconds,
            swaps: swaps.load(Ordering::Relaxed),
            deaths: scene.exits.seen(None).deaths(),
            open: clients.counts.open.load(Ordering::Relaxed),
            processes: scene.lasting().into_iter().map(|(name, ..)| name).zip(samples).collect(),
        });
        match row {
            Ok(row) => outcome.add(row),
            Err(error) => break Err(error),
        }
        if start.elapsed() >= timings.total || swapping.is_finished() || dying.is_finished() {
            break Ok(());
        }
    };
    // First what breaks connections, so that the last one of them is still counted rightly.
    stop.store(true, Ordering::Relaxed);
    let swapped = swapping.join().map_err(|_| anyhow!("the replacing panicked"))?;
    let deaths = dying.join().map_err(|_| anyhow!("the ending of exits panicked"))?;
    stop_clients.send_replace(true);
    runtime.shutdown_timeout(super::load::PATIENCE);
    sampled?;
    swapped?;
    outcome.happened(swaps.load(Ordering::Relaxed), deaths?);
    Ok(clients)
}

/// Waits until nothing is left of what the clients caused; returns what is left then, or after some patience.
fn leave(scene: &Scene, idle: &[Sample]) -> Result<Vec<Sample>> {
    let start = clock::now();
    loop {
        let left = scene.samples()?;
        if left.iter().zip(idle).all(|(left, idle)| left.is_back(idle)) || start.elapsed() > LEAVING {
            return Ok(left);
        }
        thread::sleep(IDLE_PAUSE);
    }
}
