//! Exits that go down and come up again, one after another.

use super::super::load::{self, spawn};
use super::super::product::Product;
use super::super::running::{Listens, Running};
use super::Timings;
use crate::clock;
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Last octets of the addresses that the exits dial from. The last one stays up, so that an exit too is watched for the
/// whole time.
pub(super) const OCTETS: [u8; 4] = [21, 22, 23, 24];
/// Transports that every exit listens with.
pub(super) const TRANSPORTS: [&str; 4] = ["mtcp", "mtls", "tcp", "tls"];

/// A port on an address of its own. Of the ports on 127.0.0.1 most are taken by the other ends of so many connections,
/// and one that was free when an exit went down would not be when it comes up again.
pub(super) fn own_address(third: u8, last: u8) -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::new(127, 0, third, last), 0))?.local_addr()?)
}

/// One exit; the same addresses for as long as the benchmark lasts.
pub(super) struct Exit {
    pub(super) octet: u8,
    /// Where it listens, in the order of [`TRANSPORTS`].
    pub(super) addrs: [SocketAddr; 4],
    pub(super) api: SocketAddr,
    file: PathBuf,
    log: PathBuf,
    running: Mutex<Option<Running>>,
    deaths: Deaths,
}

/// When an exit was told to end, as the connections through it see it.
#[derive(Default)]
struct Deaths {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// What was known about deaths at some moment.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    begun: u64,
    dying: bool,
}

impl Deaths {
    fn seen(&self) -> Seen {
        // In this order one that begins in between counts as dying.
        let ended = self.ended.load(Ordering::SeqCst);
        let begun = self.begun.load(Ordering::SeqCst);
        Seen { begun, dying: begun != ended }
    }
}

impl Seen {
    /// Deaths that had begun.
    pub(super) fn deaths(self) -> u64 {
        self.begun
    }

    /// Whether a death explains that something broke by `now` that began when this was seen.
    fn explains(self, now: Self) -> bool {
        self.dying || now.begun != self.begun
    }
}

impl Exit {
    fn new(octet: u8, dir: &Path) -> Result<Self> {
        let ports =
            (own_address(2, octet)?, own_address(2, octet)?, own_address(2, octet)?, own_address(2, octet)?);
        let exit = Self {
            octet,
            addrs: [ports.0, ports.1, ports.2, ports.3],
            api: own_address(2, octet)?,
            file: dir.join(format!("exit-{octet}.json")),
            log: dir.join(format!("exit-{octet}.log")),
            running: Mutex::default(),
            deaths: Deaths::default(),
        };
        let service = |(addr, transport): (&SocketAddr, &str)| {
            json!({
                "name": transport, "addr": addr.to_string(), "listener": { "type": transport },
                "handler": { "type": "relay", "metadata": { "nodelay": true } },
                "metadata": { "interface": IpAddr::from([127, 0, 1, octet]).to_string() },
            })
        };
        let services: Vec<_> = exit.addrs.iter().zip(TRANSPORTS).map(service).collect();
        fs::write(&exit.file, json!({ "services": services }).to_string())?;
        Ok(exit)
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, product: &Product) -> Result<()> {
        let mut command: Command = product.command();
        command.arg("-C").arg(&self.file).arg("--api").arg(self.api.to_string());
        let mut running = Running::default();
        running.add(command, &self.log, Listens::Tcp(self.addrs[3]))?;
        *self.running() = Some(running);
        Ok(())
    }

    /// Its process, unless it is down.
    pub(super) fn process(&self) -> Option<u32> {
        self.running().as_ref()?.id(0)
    }

    /// Ends it: asks, or does not ask.
    fn stop(&self, asks: bool) -> Result<()> {
        self.deaths.begun.fetch_add(1, Ordering::SeqCst);
        let stopped = self.running().take();
        let mut running = stopped.context("the exit does not run")?;
        let ended = if asks { running.terminate(0, load::PATIENCE) } else { Ok(true) };
        drop(running);
        self.deaths.ended.fetch_add(1, Ordering::SeqCst);
        ensure!(ended?, "exit {} did not end when told to", self.octet);
        Ok(())
    }
}

/// All of them.
pub(super) struct Exits {
    pub(super) all: Vec<Exit>,
}

impl Exits {
    pub(super) fn start(product: &Product, dir: &Path) -> Result<Self> {
        let all = OCTETS.into_iter().map(|octet| Exit::new(octet, dir)).collect::<Result<Vec<_>>>()?;
        all.iter().try_for_each(|exit| exit.start(product))?;
        Ok(Self { all })
    }

    /// The one that stays up.
    pub(super) fn steady(&self) -> Option<&Exit> {
        self.all.last()
    }

    /// What is known now about the deaths of that exit; of all of them without one.
    pub(super) fn seen(&self, octet: Option<u8>) -> Seen {
        self.of(octet).fold(Seen { begun: 0, dying: false }, |sum, exit| {
            let seen = exit.deaths.seen();
            Seen { begun: sum.begun + seen.begun, dying: sum.dying | seen.dying }
        })
    }

    /// Whether a death of that exit, or of any, explains why something broke that began when this was seen.
    pub(super) fn explain(&self, octet: Option<u8>, seen: Seen) -> bool {
        seen.explains(self.seen(octet))
    }

    fn of(&self, octet: Option<u8>) -> impl Iterator<Item = &Exit> {
        self.all.iter().filter(move |exit| octet.is_none_or(|octet| exit.octet == octet))
    }

    /// Ends one after another and starts it again, until told to stop; returns how many died. All run then.
    pub(super) fn go_up_and_down(
        self: &Arc<Self>,
        product: &Product,
        timings: Timings,
        stop: &Arc<AtomicBool>,
    ) -> Result<JoinHandle<Result<u64>>> {
        let (exits, stop, product) = (self.clone(), stop.clone(), product.clone());
        spawn(move || {
            let mortal = exits.all.len() - 1;
            let mut deaths = 0_u64;
            while pause(timings.exit_up, &stop) {
                let exit = &exits.all[deaths as usize % mortal];
                // Their number is odd, so each dies in both ways by turns.
                exit.stop(deaths.is_multiple_of(2))?;
                deaths += 1;
                pause(timings.exit_down, &stop);
                exit.start(&product)?;
            }
            Ok(deaths)
        })
    }
}

/// Waits; false when told to stop.
pub(super) fn pause(time: std::time::Duration, stop: &AtomicBool) -> bool {
    let start = clock::now();
    while start.elapsed() < time && !stop.load(Ordering::Relaxed) {
        thread::sleep((time - start.elapsed().min(time)).min(std::time::Duration::from_millis(20)));
    }
    !stop.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_death_meanwhile_explains_what_broke() {
        let deaths = Deaths::default();
        let before = deaths.seen();
        assert!(!before.explains(deaths.seen()));
        deaths.begun.fetch_add(1, Ordering::SeqCst);
        let during = deaths.seen();
        assert!(before.explains(during), "it had begun before");
        assert!(during.explains(deaths.seen()), "it came to an exit that was ending");
        deaths.ended.fetch_add(1, Ordering::SeqCst);
        let after = deaths.seen();
        assert!(before.explains(after) && during.explains(after));
        assert!(!after.explains(deaths.seen()), "whoever is down cannot be reached any more");
        assert_eq!(after.deaths(), 1);
    }
}
