//! The thread that is the network: it reads what hosts send, waits, and hands over what is due.
//!
//! It alone owns the [`Network`], so there is no lock; everyone else sends it closures. One `ppoll` waits for
//! packets, for closures and, to the nanosecond the kernel's timer gives, for the next thing due.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use tun_rs::SyncDevice;

use super::error::LabError;
use super::network::Network;
use super::punctual::be_punctual;
use crate::clock;

/// Packets read from one host before the others and what is due get their turn.
const BATCH: usize = 64;
/// Closures that may wait for the thread; it takes them within microseconds.
const CALLS: usize = 64;

type Call = Box<dyn FnOnce(&mut Engine) + Send>;

/// What the thread owns.
pub(crate) struct Engine {
    pub(crate) network: Network,
    /// By host index.
    devices: Vec<Device>,
    start: Instant,
    stopping: bool,
}

struct Device {
    tun: SyncDevice,
    /// Reading failed for good: the host's interface is gone.
    gone: bool,
}

impl Engine {
    pub(crate) fn add_host(&mut self, name: String, address: Ipv4Addr, tun: SyncDevice) {
        self.network.add_host(name, address);
        self.devices.push(Device { tun, gone: false });
    }

    /// Time since the lab's start.
    pub(crate) fn now(&self) -> Duration {
        clock::now().saturating_duration_since(self.start)
    }

    fn run(mut self, calls: &Receiver<Call>, wake: &EventFd) {
        be_punctual();
        let mut ready = Vec::new();
        while !self.stopping {
            if let Err(error) = self.wait(wake, &mut ready) {
                tracing::error!(%error, "the lab cannot wait for packets and stops");
                return;
            }
            loop {
                match calls.try_recv() {
                    Ok(call) => call(&mut self),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
            // Before the packets: a change and a packet that are due together meet in this order.
            let now = self.now();
            self.network.play_due(now);
            for &host in &ready {
                self.read(host);
            }
            self.deliver();
        }
    }

    /// Waits until a host has sent something (its index is in `ready`), a closure came, or something is due.
    fn wait(&self, wake: &EventFd, ready: &mut Vec<usize>) -> nix::Result<()> {
        ready.clear();
        let timeout =
            self.network.next_due().map(|due| TimeSpec::from_duration(due.saturating_sub(self.now())));
        let mut hosts = Vec::with_capacity(self.devices.len());
        let mut fds = Vec::with_capacity(self.devices.len() + 1);
        fds.push(PollFd::new(wake.as_fd(), PollFlags::POLLIN));
        for (host, device) in self.devices.iter().enumerate().filter(|(_, device)| !device.gone) {
            hosts.push(host);
            fds.push(PollFd::new(device.tun.as_fd(), PollFlags::POLLIN));
        }
        match ppoll(&mut fds, timeout, None) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(()),
            Err(error) => return Err(error),
        }
        if fds[0].any() == Some(true) {
            // Only resets the counter; it is non-blocking and was readable.
            let _ = wake.read();
        }
        ready.extend(
            hosts.iter().zip(&fds[1..]).filter(|(_, fd)| fd.any() != Some(false)).map(|(&host, _)| host),
        );
        Ok(())
    }

    fn read(&mut self, host: usize) {
        for _ in 0..BATCH {
            let mut buffer = self.network.buffer();
            let received = self.devices[host].tun.recv(buffer.as_mut_slice());
            match received {
                Ok(length) => {
                    let now = self.now();
                    self.network.send(now, host, buffer, length);
                }
                Err(error) => {
                    self.network.recycle(buffer);
                    match error.kind() {
                        io::ErrorKind::WouldBlock => return,
                        io::ErrorKind::Interrupted => {}
                        _ => {
                            tracing::warn!(host, %error, "the interface of a host is gone");
                            self.devices[host].gone = true;
                            return;
                        }
                    }
                }
            }
        }
    }

    fn deliver(&mut self) {
        // The time is taken once, so a flood that is always due cannot keep readers waiting.
        let now = self.now();
        while let Some((due, packet)) = self.network.pop_due(now) {
            let accepted = self.devices[packet.destination()].tun.send(packet.bytes()).is_ok();
            let late = self.now().saturating_sub(due);
            self.network.delivered(packet, late, accepted);
        }
    }
}

/// The way to the thread.
#[derive(Debug, Clone)]
pub(crate) struct EngineHandle {
    calls: SyncSender<Call>,
    wake: Arc<EventFd>,
}

impl EngineHandle {
    /// Starts the thread.
    pub(crate) fn start(name: &str, seed: u64) -> Result<(Self, JoinHandle<()>), LabError> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let wake =
            EventFd::from_flags(flags).map_err(|errno| LabError::io("making an eventfd")(errno.into()))?;
        let wake = Arc::new(wake);
        let (calls, waiting) = sync_channel(CALLS);
        let engine =
            Engine { network: Network::new(seed), devices: Vec::new(), start: clock::now(), stopping: false };
        let handle = Self { calls, wake: Arc::clone(&wake) };
        let thread = thread::Builder::new()
            .name(format!("netlab {name}"))
            .spawn(move || engine.run(&waiting, &wake))
            .map_err(LabError::io("starting the network's thread"))?;
        Ok((handle, thread))
    }

    /// Runs a closure on the thread, between packets, and waits for its result; some 100 µs.
    pub(crate) fn call<R: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Engine) -> R + Send + 'static,
    ) -> Result<R, LabError> {
        let (reply, result) = sync_channel(1);
        let call: Call = Box::new(move |engine| {
            // Nobody may be waiting any more.
            let _ = reply.send(call(engine));
        });
        self.calls.send(call).map_err(|_| LabError::Stopped)?;
        self.wake.write(1).map_err(|errno| LabError::io("waking the network's thread")(errno.into()))?;
        result.recv().map_err(|_| LabError::Stopped)
    }

    /// Ends the thread after the closures before.
    pub(crate) fn stop(&self) {
        // Already stopped is stopped.
        let _ = self.call(|engine| engine.stopping = true);
    }
}
