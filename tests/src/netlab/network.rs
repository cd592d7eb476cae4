//! The network between the hosts: who has which address, what each link does, and what is on the way. No I/O: the
//! engine hands in packets with their time and takes out those that are due.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use super::IN_FLIGHT_LIMIT;
use super::error::LabError;
use super::link::{LinkModel, Passage, Verdict, link_seed};
use super::queue::DelayQueue;
use super::script::{Action, Change, Playing};
use super::stats::{DropReason, LabStats, Lateness, LinkStats};
use super::wire;

/// Room for a packet; read into once, written from once, never copied.
pub(crate) type Buffer = Box<[u8; BUFFER_BYTES]>;
/// A packet of the largest size fits.
pub(crate) const BUFFER_BYTES: usize = 2048;

/// A packet on its way.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) buffer: Buffer,
    pub(crate) length: usize,
    link: LinkId,
}

impl Packet {
    /// Index of the host it goes to.
    pub(crate) fn destination(&self) -> usize {
        self.link.1
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.length]
    }
}

/// Indices of the host it comes from and the one it goes to.
type LinkId = (usize, usize);

#[derive(Debug)]
struct Link {
    model: LinkModel,
    stats: LinkStats,
}

#[derive(Debug)]
pub(crate) struct Network {
    hosts: Vec<String>,
    by_address: BTreeMap<Ipv4Addr, usize>,
    links: BTreeMap<LinkId, Link>,
    on_the_way: DelayQueue<Packet>,
    unused: Vec<Buffer>,
    playing: Vec<Playing>,
    seed: u64,
    no_route: u64,
    not_ipv4: u64,
    lateness: Lateness,
}

/// Buffers kept for later; what a burst needed beyond this goes back to the system.
const UNUSED_LIMIT: usize = 1024;

impl Network {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            hosts: Vec::new(),
            by_address: BTreeMap::new(),
            links: BTreeMap::new(),
            on_the_way: DelayQueue::new(),
            unused: Vec::new(),
            playing: Vec::new(),
            seed,
            no_route: 0,
            not_ipv4: 0,
            lateness: Lateness::default(),
        }
    }

    /// Adds a host; indices count from 0 in the order of adding.
    pub(crate) fn add_host(&mut self, name: String, address: Ipv4Addr) {
        self.by_address.insert(address, self.hosts.len());
        self.hosts.push(name);
    }

    pub(crate) fn buffer(&mut self) -> Buffer {
        self.unused.pop().unwrap_or_else(|| Box::new([0; BUFFER_BYTES]))
    }

    pub(crate) fn recycle(&mut self, buffer: Buffer) {
        if self.unused.len() < UNUSED_LIMIT {
            self.unused.push(buffer);
        }
    }

    /// Takes a packet that host `from` sent at `now`.
    pub(crate) fn send(&mut self, now: Duration, from: usize, buffer: Buffer, length: usize) {
        let Ok(header) = wire::parse_ipv4(&buffer[..length]) else {
            self.not_ipv4 += 1;
            return self.recycle(buffer);
        };
        let Some(&to) = self.by_address.get(&header.destination) else {
            self.no_route += 1;
            return self.recycle(buffer);
        };
        let link = self.link((from, to));
        link.stats.packets += 1;
        link.stats.bytes += header.total_len as u64;
        let verdict = match link.model.decide(now, header.total_len) {
            Verdict::Deliver { .. } if link.stats.in_flight >= IN_FLIGHT_LIMIT => {
                Verdict::Drop(DropReason::Overflow)
            }
            verdict => verdict,
        };
        match verdict {
            Verdict::Drop(reason) => {
                link.stats.drop_one(reason);
                self.recycle(buffer);
            }
            Verdict::Deliver { at, held } => {
                link.stats.in_flight += 1;
                link.stats.held += u64::from(held);
                self.on_the_way.push(at, Packet { buffer, length: header.total_len, link: (from, to) });
            }
        }
    }

    /// The next packet whose time has come, with that time. The caller hands it over and calls
    /// [`Self::delivered`].
    pub(crate) fn pop_due(&mut self, now: Duration) -> Option<(Duration, Packet)> {
        loop {
            let (due, packet) = self.on_the_way.pop_due(now)?;
            let link = self.link(packet.link);
            link.stats.in_flight -= 1;
            // A cut hits what is on the wire, too.
            let reason = match link.model.passage {
                Passage::Open => return Some((due, packet)),
                Passage::Cut => DropReason::Cut,
                Passage::BlackHole => DropReason::BlackHole,
            };
            link.stats.drop_one(reason);
            self.recycle(packet.buffer);
        }
    }

    /// Counts a packet from [`Self::pop_due`], `late` after its time.
    pub(crate) fn delivered(&mut self, packet: Packet, late: Duration, accepted: bool) {
        self.lateness.record(late);
        let stats = &mut self.link(packet.link).stats;
        if accepted {
            stats.delivered += 1;
        } else {
            stats.drop_one(DropReason::Refused);
        }
        self.recycle(packet.buffer);
    }

    /// When something is to be done next.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.on_the_way.next_due().into_iter().chain(self.playing.iter().filter_map(Playing::next_due)).min()
    }

    /// Makes the changes of scripts that are due.
    pub(crate) fn play_due(&mut self, now: Duration) {
        let mut playing = std::mem::take(&mut self.playing);
        for script in &mut playing {
            while let Some((asked, change)) = script.pop_due(now) {
                self.apply(&change);
                script.note(asked, now, change);
            }
        }
        playing.retain(|script| !script.steps.is_empty());
        self.playing = playing;
    }

    /// Plays a script whose changes were [checked](Self::check).
    pub(crate) fn play(&mut self, script: Playing) {
        self.playing.push(script);
    }

    /// Forgets the changes that scripts have not made yet.
    pub(crate) fn stop_scripts(&mut self) {
        self.playing.clear();
    }

    /// Whether a change can be made: known hosts, possible values.
    pub(crate) fn check(&self, change: &Change) -> Result<(), LabError> {
        self.id(&change.from, &change.to)?;
        Ok(change.check()?)
    }

    /// Makes a change that was [checked](Self::check).
    pub(crate) fn apply(&mut self, change: &Change) {
        let Ok((from, to)) = self.id(&change.from, &change.to) else { return };
        let back = change.both.then_some((to, from));
        for id in std::iter::once((from, to)).chain(back) {
            let model = &mut self.link(id).model;
            match &change.action {
                Action::Set(impairment) => model.set(impairment.clone()),
                Action::Path { delay, loss } => {
                    let impairment = model.impairment().clone();
                    model.set(super::Impairment { delay: *delay, loss: *loss, ..impairment });
                }
                Action::Passage(passage) => model.passage = *passage,
            }
        }
    }

    /// Starts all sequences of random decisions anew.
    pub(crate) fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
        for (&(from, to), link) in &mut self.links {
            link.model.reseed(link_seed(seed, &self.hosts[from], &self.hosts[to]));
        }
    }

    /// The model of a direction, as it is now.
    pub(crate) fn model(&mut self, from: &str, to: &str) -> Result<&LinkModel, LabError> {
        let id = self.id(from, to)?;
        Ok(&self.link(id).model)
    }

    pub(crate) fn link_stats(&mut self, from: &str, to: &str) -> Result<LinkStats, LabError> {
        let id = self.id(from, to)?;
        Ok(self.link(id).stats.clone())
    }

    pub(crate) fn stats(&self) -> LabStats {
        let name = |index: usize| self.hosts[index].clone();
        let links = self.links.iter();
        LabStats {
            links: links.map(|(&(from, to), link)| ((name(from), name(to)), link.stats.clone())).collect(),
            no_route: self.no_route,
            not_ipv4: self.not_ipv4,
            lateness: self.lateness.clone(),
        }
    }

    fn id(&self, from: &str, to: &str) -> Result<LinkId, LabError> {
        let index = |name: &str| {
            let found = self.hosts.iter().position(|host| host == name);
            found.ok_or_else(|| LabError::UnknownHost { name: name.to_owned() })
        };
        Ok((index(from)?, index(to)?))
    }

    fn link(&mut self, id: LinkId) -> &mut Link {
        let Self { links, hosts, seed, .. } = self;
        links.entry(id).or_insert_with(|| Link {
            model: LinkModel::new(link_seed(*seed, &hosts[id.0], &hosts[id.1])),
            stats: LinkStats::default(),
        })
    }
}

#[cfg(test)]
#[path = "network_tests.rs"]
mod tests;
