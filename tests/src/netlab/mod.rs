//! The network lab: hosts that are Linux network namespaces, and a network between them that is as bad as asked.
//!
//! ```text
//!   namespace a                     this process                     namespace b
//!  ┌────────────────────┐   ┌───────────────────────────────┐   ┌────────────────────┐
//!  │ programs, sockets  │   │  one thread (engine)          │   │ programs, sockets  │
//!  │ kernel's TCP       │   │  ┌──────────┐   ┌──────────┐  │   │ kernel's TCP       │
//!  │ lab0 10.66.0.1 ────┼──►│  │ link a→b │──►│  delay   │──┼──►│ lab0 10.66.0.2     │
//!  │       (TUN)        │   │  │ decides  │   │  queue   │  │   │       (TUN)        │
//!  └────────────────────┘   │  └──────────┘   └──────────┘  │   └────────────────────┘
//!                           └───────────────────────────────┘
//! ```
//!
//! Each host has one TUN device, and this process holds the other end. A packet is read once into a buffer; the link
//! from its sender to its receiver decides when it arrives or why it does not; the buffer waits in a heap until then
//! and is written once. Handshakes, retransmissions and resets are the kernel's own, so what is measured here is
//! measured as outside.
//!
//! - `wire` reads the header, `link` decides, `queue` keeps order, `network` joins them: pure, time and seed
//!   are given, tested without a network.
//! - `engine` is the thread that owns all of that and the devices; changes are closures sent to it, so a change is
//!   in effect when the call that made it returns.
//! - `namespace` and `host` make the namespaces, and sockets and processes in them; `publish` lets a browser in.
//! - `script` and `trace` change links over time.
//!
//! **Same seed, same fate**: each direction draws from its own generator, seeded by the lab's seed and both names, a
//! fixed number of values for each packet. The n-th packet of a direction has the same fate in each run.
//!
//! **Time**: the thread asks for real-time scheduling ([`be_punctual`]), so that what is tested cannot slow down the
//! network it is tested on. Packets are never early; rootless and on a busy machine they may be milliseconds late, which
//! [`LabStats::lateness`] tells.
//!
//! **Order** is kept unless reordering is asked for, also when a delay is shortened: packets do not overtake.
//!
//! **Names**: namespaces are called `netlab-PID.START-N-LAB-HOST`; what a dead process left is removed when the next
//! lab starts. All labs use the addresses 10.66.0.1 and up, which do not meet.
//!
//! **Rights**: root, or `unshare --user --map-root-user --mount sh -c 'mount -t tmpfs none /run && exec PROGRAM'` where
//! /dev/net/tun may be opened. (`--net` is not needed, and without it published ports can be reached from outside.)
//!
//! ```no_run
//! # use std::time::Duration;
//! # use tests::netlab::{Impairment, Lab, LabError};
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let lab = Lab::new("example")?;
//! let (entry, exit) = (lab.host("entry")?, lab.host("exit")?);
//! lab.link(&entry, &exit).set_both(Impairment::delay(Duration::from_millis(25)).loss(0.01))?;
//! let listener = tokio::net::TcpListener::from_std(exit.tcp_listener(443)?)?;
//! let (client, server) = tokio::try_join!(entry.connect(exit.addr(443)), listener.accept())?; // takes 50 ms
//! lab.link(&entry, &exit).cut()?;
//! # Ok(()) }
//! ```

mod engine;
mod error;
mod host;
mod impairment;
mod link;
mod namespace;
mod network;
mod publish;
mod punctual;
mod queue;
mod script;
mod stats;
mod trace;
mod wire;

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use error::LabError;
pub use host::Host;
pub use impairment::{Burst, Impairment, ImpairmentError, MAX_TIME, Rate, Reorder};
pub use link::Passage;
pub use namespace::sweep;
pub use punctual::be_punctual;
pub use script::{Applied, Change, Playback, Script};
pub use stats::{DropReason, LabStats, Lateness, LinkStats};
pub use trace::{Trace, TraceError, TracePoint};

use engine::EngineHandle;
use namespace::Namespace;
use script::Playing;

/// Hosts of one lab: two bytes of the address, and a good deal fewer than the system has descriptors.
pub const HOST_LIMIT: usize = 1000;
/// Packets on the way in one direction of a link; 150 ms at 2.5 Gbit/s, and 64 MB.
pub const IN_FLIGHT_LIMIT: u64 = 32_768;
/// The seed of a lab that was given none.
pub const DEFAULT_SEED: u64 = 1;

/// A network of its own. Dropping it removes everything it made; programs started by [`Host::command`] are the
/// caller's to end.
#[derive(Debug)]
pub struct Lab {
    name: String,
    engine: EngineHandle,
    engine_thread: Option<JoinHandle<()>>,
    hosts: Mutex<BTreeMap<String, Member>>,
    relays: TaskTracker,
    cancel: CancellationToken,
}

#[derive(Debug)]
struct Member {
    host: Host,
    thread: JoinHandle<()>,
    namespace: Namespace,
}

impl Lab {
    /// A lab without hosts. The name helps a reader of `ip netns`; it need not be unique.
    ///
    /// # Errors
    /// [`LabError::Unavailable`] where namespaces or TUN devices cannot be made; [`LabError::Name`].
    pub fn new(name: &str) -> Result<Self, LabError> {
        check_name(name)?;
        namespace::check_available()?;
        let (engine, thread) = EngineHandle::start(name, DEFAULT_SEED)?;
        Ok(Self {
            name: name.to_owned(),
            engine,
            engine_thread: Some(thread),
            hosts: Mutex::default(),
            relays: TaskTracker::new(),
            cancel: CancellationToken::new(),
        })
    }

    /// The host of this name; made when there is none yet, with perfect links to all others.
    ///
    /// # Errors
    /// [`LabError::Name`], [`LabError::Full`], and what the system says.
    pub fn host(&self, name: &str) -> Result<Host, LabError> {
        check_name(name)?;
        let mut hosts = self.lock_hosts();
        if let Some(member) = hosts.get(name) {
            return Ok(member.host.clone());
        }
        if hosts.len() >= HOST_LIMIT {
            return Err(LabError::Full { limit: HOST_LIMIT });
        }
        let [high, low] = u16::try_from(hosts.len() + 1).unwrap_or(u16::MAX).to_be_bytes();
        let address = Ipv4Addr::new(10, 66, high, low);
        let namespace = Namespace::create(&self.name, name)?;
        let (host, device, thread) = Host::start(name, address, &namespace)?;
        let member = Member { host: host.clone(), thread, namespace };
        member.namespace.configure(address)?;
        let added = name.to_owned();
        self.engine.call(move |engine| engine.add_host(added, address, device))?;
        hosts.insert(name.to_owned(), member);
        let names = hosts_file(&hosts);
        for member in hosts.values() {
            member.namespace.write_hosts(&names);
        }
        Ok(host)
    }

    /// The link between two hosts, seen from `from`. Unknown names are errors when it is used.
    pub fn link(&self, from: impl AsRef<str>, to: impl AsRef<str>) -> Link<'_> {
        Link { lab: self, from: from.as_ref().to_owned(), to: to.as_ref().to_owned() }
    }

    /// Starts all random decisions anew from this seed.
    ///
    /// # Errors
    /// [`LabError::Stopped`].
    pub fn set_seed(&self, seed: u64) -> Result<(), LabError> {
        self.engine.call(move |engine| engine.network.set_seed(seed))
    }

    /// Makes one change now.
    ///
    /// # Errors
    /// [`LabError::UnknownHost`], [`LabError::Impairment`].
    pub fn apply(&self, change: Change) -> Result<(), LabError> {
        self.engine.call(move |engine| {
            engine.network.check(&change)?;
            engine.network.apply(&change);
            Ok(())
        })?
    }

    /// Plays a script from now on, besides others that are played already.
    ///
    /// # Errors
    /// [`LabError::UnknownHost`], [`LabError::Impairment`]; then nothing is played.
    pub fn play(&self, script: Script) -> Result<Playback, LabError> {
        let steps = VecDeque::from(script.into_steps());
        let total = steps.len();
        let (sender, applied) = watch::channel(Vec::new());
        self.engine.call(move |engine| {
            steps.iter().try_for_each(|(_, change)| engine.network.check(change))?;
            let start = engine.now();
            engine.network.play(Playing { start, steps, applied: sender });
            Ok::<(), LabError>(())
        })??;
        Ok(Playback { total, applied })
    }

    /// Forgets the changes that scripts have not made yet.
    ///
    /// # Errors
    /// [`LabError::Stopped`].
    pub fn stop_scripts(&self) -> Result<(), LabError> {
        self.engine.call(|engine| engine.network.stop_scripts())
    }

    /// All counts until now.
    ///
    /// # Errors
    /// [`LabError::Stopped`].
    pub fn stats(&self) -> Result<LabStats, LabError> {
        self.engine.call(|engine| engine.network.stats())
    }

    /// Lets programs outside reach `port` of `host`: the address returned, on this machine's loopback, is relayed to
    /// it until the lab is dropped. Needs a tokio runtime, in which it relays.
    ///
    /// # Errors
    /// [`LabError::NoRuntime`], and what the system says.
    pub fn publish(&self, host: &Host, port: u16) -> Result<SocketAddr, LabError> {
        self.publish_at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), host, port)
    }

    /// The same with an address to listen on.
    ///
    /// # Errors
    /// [`LabError::NoRuntime`], and what the system says.
    pub fn publish_at(&self, listen: SocketAddr, host: &Host, port: u16) -> Result<SocketAddr, LabError> {
        publish::publish(listen, host, port, &self.relays, &self.cancel)
    }

    /// Drops the lab after its relays have ended.
    pub async fn close(self) {
        self.cancel.cancel();
        self.relays.close();
        self.relays.wait().await;
    }

    fn lock_hosts(&self) -> MutexGuard<'_, BTreeMap<String, Member>> {
        // Nothing panics while the map is half changed.
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.cancel.cancel();
        self.engine.stop();
        if let Some(thread) = self.engine_thread.take()
            && thread.join().is_err()
        {
            tracing::error!(lab = self.name, "the network's thread panicked");
        }
        for (_, Member { host, thread, namespace }) in std::mem::take(&mut *self.lock_hosts()) {
            host.stop();
            // It only makes sockets and does not panic.
            let _ = thread.join();
            drop(namespace);
        }
    }
}

/// Two hosts, in order; see [`Lab::link`]. All changes are in effect when the call returns.
#[derive(Debug)]
pub struct Link<'a> {
    lab: &'a Lab,
    from: String,
    to: String,
}

impl Link<'_> {
    /// Sets what packets in this direction suffer.
    ///
    /// # Errors
    /// As [`Lab::apply`], like all of these.
    pub fn set(&self, impairment: Impairment) -> Result<(), LabError> {
        self.lab.apply(Change::set(&self.from, &self.to, impairment))
    }

    /// Sets what packets in both directions suffer, each.
    ///
    /// # Errors
    /// As [`Lab::apply`].
    pub fn set_both(&self, impairment: Impairment) -> Result<(), LabError> {
        self.lab.apply(Change::set_both(&self.from, &self.to, impairment))
    }

    /// Cuts both directions; what is on the way is lost too.
    ///
    /// # Errors
    /// As [`Lab::apply`].
    pub fn cut(&self) -> Result<(), LabError> {
        self.lab.apply(Change::cut(&self.from, &self.to))
    }

    /// Swallows everything in this direction.
    ///
    /// # Errors
    /// As [`Lab::apply`].
    pub fn black_hole(&self) -> Result<(), LabError> {
        self.lab.apply(Change::black_hole(&self.from, &self.to))
    }

    /// Opens both directions again; impairments are what they were.
    ///
    /// # Errors
    /// As [`Lab::apply`].
    pub fn repair(&self) -> Result<(), LabError> {
        self.lab.apply(Change::repair(&self.from, &self.to))
    }

    /// What packets in this direction suffer now.
    ///
    /// # Errors
    /// As [`Lab::apply`].
    pub fn impairment(&self) -> Result<Impairment, LabError> {
        self.ask(|network, from, to| network.model(from, to).map(|model| model.impairment().clone()))
    }

    /// Whether this direction is open.
    ///
    /// # Errors
    /// As [`Lab::apply`].
    pub fn passage(&self) -> Result<Passage, LabError> {
        self.ask(|network, from, to| network.model(from, to).map(|model| model.passage))
    }

    /// Counts of this direction until now.
    ///
    /// # Errors
    /// As [`Lab::apply`].
    pub fn stats(&self) -> Result<LinkStats, LabError> {
        self.ask(network::Network::link_stats)
    }

    fn ask<R: Send + 'static>(
        &self,
        question: impl FnOnce(&mut network::Network, &str, &str) -> Result<R, LabError> + Send + 'static,
    ) -> Result<R, LabError> {
        let (from, to) = (self.from.clone(), self.to.clone());
        self.lab.engine.call(move |engine| question(&mut engine.network, &from, &to))?
    }
}

fn check_name(name: &str) -> Result<(), LabError> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if (1..=32).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(());
    }
    Err(LabError::Name { name: name.to_owned() })
}

fn hosts_file(hosts: &BTreeMap<String, Member>) -> String {
    let lines = hosts
        .values()
        .map(|member| format!("{} {name} {name}.lab\n", member.host.ip(), name = member.host.name()));
    std::iter::once("127.0.0.1 localhost\n".to_owned()).chain(lines).collect()
}
