//! Connections that live for a while and say something now and then, and datagrams that do.

use super::Timings;
use super::entry::{Entry, Way};
use super::exits::{Exits, OCTETS, Seen};
use crate::clock;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Longest time without an answer. Loopback needs far less than a millisecond, but the machine may have other work.
const PATIENCE: Duration = Duration::from_secs(30);
/// A datagram that is not answered by then is lost.
const LATE: Duration = Duration::from_secs(5);
const SHORT_BYTES: usize = 8;
const LONG_BYTES: usize = 16 * 1024;
/// One of so many exchanges is a long one.
const PER_LONG: u64 = 10;
/// Failures that are told one by one.
const TOLD: usize = 20;

/// Numbers that spread things out; the same in every run.
struct Spread(u64);

impl Spread {
    /// The next one, from the generator SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Somewhere between the two.
    fn between(&mut self, (least, most): (Duration, Duration)) -> Duration {
        let share = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        least + (most - least).mul_f64(share)
    }
}

/// What became of connections and datagrams.
pub(super) struct Counts {
    /// Connections that are open, as the clients see it.
    pub(super) open: AtomicU64,
    pub(super) opened: AtomicU64,
    /// Closed by the client when their time was over.
    pub(super) closed: AtomicU64,
    pub(super) exchanges: AtomicU64,
    /// Broken by the death of the exit they went through.
    pub(super) died: AtomicU64,
    /// That could not be opened while an exit was dying.
    pub(super) unopened: AtomicU64,
    pub(super) datagrams: AtomicU64,
    /// Unanswered while an exit died.
    pub(super) datagrams_died: AtomicU64,
    /// Unanswered without such a reason.
    pub(super) datagrams_lost: AtomicU64,
    /// Everything else, which is nobody's fault but the product's.
    pub(super) failed: AtomicU64,
    told: Mutex<Vec<String>>,
    begun: Instant,
}

impl Counts {
    pub(super) fn new() -> Self {
        let zero = AtomicU64::default;
        Self {
            open: zero(),
            opened: zero(),
            closed: zero(),
            exchanges: zero(),
            died: zero(),
            unopened: zero(),
            datagrams: zero(),
            datagrams_died: zero(),
            datagrams_lost: zero(),
            failed: zero(),
            told: Mutex::default(),
            begun: clock::now(),
        }
    }

    fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn fail(&self, what: String) {
        Self::add(&self.failed);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < TOLD {
            println!("bench: {:>7.1} s: {what}", self.begun.elapsed().as_secs_f64());
            told.push(what);
        }
    }

    /// The first failures, in words.
    pub(super) fn told(&self) -> Vec<String> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What all clients share.
pub(super) struct Clients {
    pub(super) counts: Counts,
    pub(super) exits: Arc<Exits>,
    pub(super) timings: Timings,
    pub(super) stop: watch::Receiver<bool>,
}

enum End {
    /// Its time was over.
    Over,
    Stopped,
    Broken(io::Error),
}

impl Clients {
    /// Starts the connections and the sessions of datagrams, spread over the entries; they end with `stop`.
    pub(super) fn start(self: &Arc<Self>, entries: &[Entry], connections: usize, sessions: usize) {
        for number in 0..connections {
            let entry = &entries[number / super::entry::PER_PLAIN % entries.len()];
            let (way, clients) = (Way::of(number), self.clone());
            let begin = self.timings.ramp.mul_f64(number as f64 / connections as f64);
            let mut stop = self.stop.clone();
            let addr = entry.listens(way);
            tokio::spawn(async move {
                tokio::select! {
                    _ = stop.wait_for(|stop| *stop) => {}
                    () = async {
                        sleep(begin).await;
                        clients.connect_again_and_again(addr, way, Spread(number as u64)).await;
                    } => {}
                }
            });
        }
        for number in 0..sessions {
            let (addr, clients) = (entries[number % entries.len()].datagrams, self.clone());
            let mut stop = self.stop.clone();
            tokio::spawn(async move {
                tokio::select! {
                    _ = stop.wait_for(|stop| *stop) => {}
                    () = clients.send_datagrams(addr, Spread(!(number as u64))) => {}
                }
            });
        }
    }

    async fn connect_again_and_again(&self, entry: SocketAddr, way: Way, mut spread: Spread) {
        // The first ones end as if they had been there for a while, so that the ends are spread out from the start.
        let mut life = self.timings.life.1.mul_f64((spread.next() % 1000) as f64 / 1000.0);
        while !*self.stop.borrow() {
            let all = self.exits.seen(None);
            let before = OCTETS.map(|octet| (octet, self.exits.seen(Some(octet))));
            match timeout(PATIENCE, reach(entry))
                .await
                .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            {
                Ok((stream, octet)) => {
                    Counts::add(&self.counts.opened);
                    let Some((_, seen)) = before.into_iter().find(|(exit, _)| *exit == octet) else {
                        self.counts
                            .fail(format!("{way:?}: a connection came from {octet}, which is no exit"));
                        continue;
                    };
                    self.counts.open.fetch_add(1, Ordering::Relaxed);
                    let end = self.talk(stream, life, &mut spread).await;
                    self.counts.open.fetch_sub(1, Ordering::Relaxed);
                    match end {
                        End::Over => Counts::add(&self.counts.closed),
                        End::Stopped => return,
                        End::Broken(_) if self.exits.explain(Some(octet), seen) => {
                            Counts::add(&self.counts.died)
                        }
                        End::Broken(error) => {
                            self.counts
                                .fail(format!("{way:?}: a connection through exit {octet} broke: {error}"));
                        }
                    }
                }
                Err(error) => {
                    self.unopened(way, all, &error);
                    sleep(Duration::from_millis(100)).await;
                }
            }
            life = spread.between(self.timings.life);
        }
    }

    fn unopened(&self, way: Way, all: Seen, error: &io::Error) {
        if self.exits.explain(None, all) {
            Counts::add(&self.counts.unopened);
        } else {
            self.counts.fail(format!("{way:?}: a connection could not be opened: {error}"));
        }
    }

    /// Says something now and then and checks the answer, until its time is over.
    async fn talk(&self, mut stream: TcpStream, mut life: Duration, spread: &mut Spread) -> End {
        let mut unasked = [0];
        loop {
            if *self.stop.borrow() {
                return End::Stopped;
            }
            let wait = spread.between(self.timings.pause);
            if wait >= life {
                // Whatever broke meanwhile is found by the read.
                return match timeout(life, stream.read(&mut unasked)).await {
                    Err(_) => End::Over,
                    Ok(read) => End::Broken(broken(read)),
                };
            }
            life -= wait;
            if let Ok(read) = timeout(wait, stream.read(&mut unasked)).await {
                return End::Broken(broken(read));
            }
            let number = spread.next();
            let bytes = if number.is_multiple_of(PER_LONG) { LONG_BYTES } else { SHORT_BYTES };
            let said: Vec<u8> = number.to_le_bytes().into_iter().cycle().take(bytes).collect();
            match timeout(PATIENCE, exchange(&mut stream, &said)).await {
                Ok(Ok(())) => Counts::add(&self.counts.exchanges),
                Ok(Err(error)) => return End::Broken(error),
                Err(_) => return End::Broken(io::ErrorKind::TimedOut.into()),
            }
        }
    }

    /// Session after session of a few datagrams each.
    async fn send_datagrams(&self, entry: SocketAddr, mut spread: Spread) {
        while !*self.stop.borrow() {
            let seen = self.exits.seen(None);
            if let Err(error) = self.session(entry, seen, &mut spread).await {
                self.counts.fail(format!("a session of datagrams: {error}"));
                sleep(Duration::from_secs(1)).await;
            }
        }
    }

    async fn session(&self, entry: SocketAddr, seen: Seen, spread: &mut Spread) -> io::Result<()> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        socket.connect(entry).await?;
        for _ in 0..3 + spread.next() % 8 {
            sleep(spread.between((self.timings.pause.0 / 10, self.timings.pause.1 / 10))).await;
            let said = spread.next().to_le_bytes();
            let mut answer = [0; 64];
            socket.send(&said).await?;
            match timeout(LATE, socket.recv(&mut answer)).await {
                Ok(read) => {
                    if answer[..read?] != said {
                        return Err(io::Error::other("it got the answer of another"));
                    }
                    Counts::add(&self.counts.datagrams);
                }
                Err(_) if self.exits.explain(None, seen) => {
                    Counts::add(&self.counts.datagrams_died);
                    return Ok(());
                }
                Err(_) => {
                    Counts::add(&self.counts.datagrams_lost);
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Connects and waits for the target's first byte, which says through which exit.
async fn reach(entry: SocketAddr) -> io::Result<(TcpStream, u8)> {
    let mut stream = TcpStream::connect(entry).await?;
    stream.set_nodelay(true)?;
    let mut first = [0];
    stream.read_exact(&mut first).await?;
    Ok((stream, first[0]))
}

async fn exchange(stream: &mut TcpStream, said: &[u8]) -> io::Result<()> {
    stream.write_all(said).await?;
    let mut answer = vec![0; said.len()];
    stream.read_exact(&mut answer).await?;
    if answer == said { Ok(()) } else { Err(io::Error::other("it got a wrong answer")) }
}

/// What a read means while nothing was asked for.
fn broken(read: io::Result<usize>) -> io::Error {
    match read {
        Ok(0) => io::ErrorKind::UnexpectedEof.into(),
        Ok(_) => io::Error::other("it got what nobody had asked for"),
        Err(error) => error,
    }
}
