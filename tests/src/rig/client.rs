//! Users: they open connections all the time and remember how each of them went.

use super::place::Place;
use crate::clock;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::Semaphore;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// For one connection from the first packet to the last. On a lossy link TCP may need seconds: that is slow, and not
/// failed. A packet lost seven times in a row (6 of 100,000 where a quarter is lost) costs 25 s of the kernel's timers.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Connections at the same time; a tick without a free place waits for one.
const AT_ONCE: usize = 1024;
/// Longest name that a target may say.
const MAX_TAG: u64 = 64;

/// How a connection went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Through this exit, and everything sent came back.
    Served(String),
    /// It reached the target from a host that is no exit.
    Direct(String),
    /// It never got to the target.
    Failed(String),
    /// It was through this exit, and broke.
    Broken {
        /// The exit.
        exit: String,
        /// How.
        error: String,
    },
}

/// One connection. Times since the client's start.
#[derive(Clone, Debug)]
pub struct Connection {
    /// When its first packet was sent.
    pub started: Duration,
    /// When it was over.
    pub ended: Duration,
    /// Where it went.
    pub to: SocketAddr,
    /// How it went.
    pub outcome: Outcome,
}

impl Connection {
    /// Whether any part of its life was within these times.
    #[must_use]
    pub fn overlaps(&self, from: Duration, to: Duration) -> bool {
        self.started <= to && self.ended >= from
    }
}

/// What one connection needs to know.
#[derive(Clone, Debug)]
pub struct Visit {
    /// Where it starts.
    pub place: Place,
    /// Names that are exits.
    pub exits: Arc<BTreeSet<String>>,
    /// What is sent and must come back.
    pub payload: Arc<[u8]>,
}

impl Visit {
    /// One connection, from the first packet to the last.
    pub async fn pay(&self, to: SocketAddr) -> Outcome {
        let mut tag = None;
        let visit = Box::pin(self.talk(to, &mut tag));
        let result = match tokio::time::timeout(PATIENCE, visit).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("not done within {PATIENCE:?}")),
        };
        match (tag, result) {
            (Some(name), _) if !self.exits.contains(&name) => Outcome::Direct(name),
            (Some(exit), Ok(())) => Outcome::Served(exit),
            (Some(exit), Err(error)) => Outcome::Broken { exit, error },
            (None, Ok(())) => Outcome::Failed("nobody said anything".to_owned()),
            (None, Err(error)) => Outcome::Failed(error),
        }
    }

    async fn talk(&self, to: SocketAddr, tag: &mut Option<String>) -> std::io::Result<()> {
        let eof = |what: &str| std::io::Error::new(std::io::ErrorKind::UnexpectedEof, what.to_owned());
        let stream = self
            .place
            .connect(to)
            .await
            .map_err(|e| std::io::Error::new(e.kind(), format!("connect: {e}")))?;
        stream.set_nodelay(true)?;
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        (&mut stream).take(MAX_TAG).read_line(&mut line).await?;
        let Some(name) = line.strip_suffix('\n') else {
            return Err(eof("closed before the target said anything"));
        };
        *tag = Some(name.to_owned());
        stream.get_mut().write_all(&self.payload).await?;
        let mut back = vec![0; self.payload.len()];
        stream.read_exact(&mut back).await?;
        if back[..] != self.payload[..] {
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "something else came back"));
        }
        stream.get_mut().shutdown().await?;
        if stream.read(&mut back).await? != 0 {
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "more came back than was sent"));
        }
        Ok(())
    }
}

/// Opens connections at a steady pace until it is stopped.
#[derive(Debug)]
pub struct Client {
    start: Instant,
    done: Arc<Mutex<Vec<Connection>>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Client {
    /// Starts: every `pace` one connection to the next of `to`. Times are counted from `start`.
    #[must_use]
    pub fn start(
        place: impl Into<Place>,
        to: Vec<SocketAddr>,
        exits: impl IntoIterator<Item = String>,
        pace: Duration,
        start: Instant,
    ) -> Self {
        let payload: Vec<u8> = (0..=255).collect();
        let exits = Arc::new(exits.into_iter().collect());
        let visit = Visit { place: place.into(), exits, payload: payload.into() };
        let client =
            Self { start, done: Arc::default(), tasks: TaskTracker::new(), stop: CancellationToken::new() };
        let (done, tasks) = (client.done.clone(), client.tasks.clone());
        let room = Arc::new(Semaphore::new(AT_ONCE));
        client.tasks.spawn(client.stop.clone().run_until_cancelled_owned(async move {
            let mut ticks = tokio::time::interval(pace);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            for to in to.iter().copied().cycle() {
                ticks.tick().await;
                // The semaphore is never closed.
                let Ok(place) = room.clone().acquire_owned().await else { return };
                let (visit, done) = (visit.clone(), done.clone());
                // Not cancelled with the pacemaker: a connection that was begun is seen to its end.
                tasks.spawn(async move {
                    let started = start.elapsed();
                    let outcome = visit.pay(to).await;
                    let connection = Connection { started, ended: start.elapsed(), to, outcome };
                    done.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
                    drop(place);
                });
            }
        }));
        client
    }

    /// What is over so far, in the order in which it ended.
    #[must_use]
    pub fn so_far(&self) -> Vec<Connection> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many are over so far.
    #[must_use]
    pub fn count(&self) -> usize {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Time since the start, as in the connections.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Opens no more, waits for the open ones, and returns all.
    pub async fn stop(self) -> Vec<Connection> {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.so_far()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// How many connections went how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All.
    pub total: usize,
    /// Never got to the target, or broke.
    pub failed: usize,
    /// Reached the target past the exits.
    pub direct: usize,
    /// Broke after an exit was reached; part of `failed`.
    pub broken: usize,
    /// By exit, of those that were served.
    pub per_exit: std::collections::BTreeMap<String, usize>,
}

impl Tally {
    /// Counts.
    #[must_use]
    pub fn of<'a>(connections: impl IntoIterator<Item = &'a Connection>) -> Self {
        let mut tally = Self::default();
        for connection in connections {
            tally.total += 1;
            match &connection.outcome {
                Outcome::Served(exit) => *tally.per_exit.entry(exit.clone()).or_insert(0) += 1,
                Outcome::Direct(_) => tally.direct += 1,
                Outcome::Failed(_) => tally.failed += 1,
                Outcome::Broken { .. } => {
                    tally.failed += 1;
                    tally.broken += 1;
                }
            }
        }
        tally
    }
}

/// Monotonic start for clients and stories.
#[must_use]
pub fn start() -> Instant {
    clock::now()
}

#[cfg(test)]
mod tests {
    use super::super::target::Target;
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    fn visit(exits: &[&str]) -> Visit {
        Visit {
            place: Place::Loopback,
            exits: Arc::new(exits.iter().map(|exit| (*exit).to_owned()).collect()),
            payload: Arc::from(vec![7; 5000]),
        }
    }

    fn target(name: &str) -> Target {
        let names = [(IpAddr::V4(Ipv4Addr::LOCALHOST), name.to_owned())];
        Target::start(Place::Loopback, names.into()).unwrap()
    }

    #[tokio::test]
    async fn who_came_is_told_and_direct_is_seen() {
        let target = target("exit-a");
        assert_eq!(visit(&["exit-a"]).pay(target.service()).await, Outcome::Served("exit-a".into()));
        assert_eq!(visit(&["exit-b"]).pay(target.service()).await, Outcome::Direct("exit-a".into()));
        assert_eq!(target.served(), [("exit-a".to_owned(), 2)].into());
    }

    #[tokio::test]
    async fn a_refused_connection_has_failed() {
        let listener = Place::Loopback.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        assert!(
            matches!(visit(&[]).pay(address).await, Outcome::Failed(error) if error.starts_with("connect"))
        );
    }

    #[tokio::test]
    async fn a_connection_that_ends_before_everything_came_back_is_broken() {
        let listener = Place::Loopback.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"exit-a\nonly this").await.unwrap();
        });
        let outcome = visit(&["exit-a"]).pay(address).await;
        assert!(matches!(outcome, Outcome::Broken { exit, .. } if exit == "exit-a"));
    }

    #[tokio::test]
    async fn a_client_sees_its_connections_to_their_end() {
        let target = target("exit-a");
        let pace = Duration::from_millis(1);
        let exits = ["exit-a".to_owned()];
        let client = Client::start(Place::Loopback, vec![target.service()], exits, pace, start());
        super::super::eventually("some connections", Duration::from_secs(20), async || {
            anyhow::ensure!(client.count() > 20);
            Ok(())
        })
        .await
        .unwrap();
        let tally = Tally::of(&client.stop().await);
        assert!(tally.total > 20);
        assert_eq!(tally.per_exit["exit-a"], tally.total);
        assert_eq!(target.served()["exit-a"], tally.total as u64);
    }
}
