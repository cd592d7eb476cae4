//! The clients: many short connections, each checked to its end, and a few that stay.

use crate::target::{ExitName, LONG, SHORT, SHORT_BYTES};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::{CancellationToken, DropGuard};

/// For one short connection, or one echo on a long-lived one. Longer than the agent's own limits, so that its reasons
/// come first.
const PATIENCE: Duration = Duration::from_secs(45);
/// Between two echoes on a long-lived connection: so many that every swap happens beside some, so few that they are
/// not the load.
const PACE: Duration = Duration::from_millis(20);
/// Reasons kept for the message.
const REASONS: usize = 20;

/// Why a connection did not do all that was asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Trouble {
    /// No target answered.
    Failed(String),
    /// A target answered, but not to the end.
    Cut(String),
}

/// What became of all short connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) through_a: usize,
    pub(crate) through_b: usize,
    pub(crate) failed: usize,
    pub(crate) cut: usize,
    pub(crate) reasons: Vec<String>,
}

impl Counts {
    pub(crate) fn total(&self) -> usize {
        self.through_a + self.through_b + self.failed + self.cut
    }

    fn add(&mut self, outcome: Result<ExitName, Trouble>) {
        match outcome {
            Ok(ExitName::A) => self.through_a += 1,
            Ok(ExitName::B) => self.through_b += 1,
            Err(trouble) => {
                match &trouble {
                    Trouble::Failed(_) => self.failed += 1,
                    Trouble::Cut(_) => self.cut += 1,
                }
                if self.reasons.len() < REASONS {
                    self.reasons.push(format!("{trouble:?}"));
                }
            }
        }
    }
}

/// Short connections that are being made.
pub(crate) struct Traffic {
    finished: Arc<Semaphore>,
    clients: JoinSet<Counts>,
}

impl Traffic {
    /// `clients` at a time, one after another each, until there were `connections`.
    pub(crate) fn start(entry: SocketAddr, clients: usize, connections: usize) -> Self {
        let finished = Arc::new(Semaphore::new(0));
        let left = Arc::new(AtomicUsize::new(connections));
        let mut tasks = JoinSet::new();
        for client in 1..=clients {
            let (finished, left) = (finished.clone(), left.clone());
            tasks.spawn(async move {
                let mut counts = Counts::default();
                let take = |left: usize| left.checked_sub(1);
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                    counts.add(once(entry, client).await);
                    finished.add_permits(1);
                }
                counts
            });
        }
        Self { finished, clients: tasks }
    }

    /// Waits until `count` more connections have come to their end, whichever it was.
    pub(crate) async fn finished(&self, count: usize) {
        let count = u32::try_from(count).unwrap();
        self.finished.acquire_many(count).await.unwrap().forget();
    }

    /// Waits for all of them.
    pub(crate) async fn end(self) -> Counts {
        let mut all = Counts::default();
        for counts in self.clients.join_all().await {
            all.through_a += counts.through_a;
            all.through_b += counts.through_b;
            all.failed += counts.failed;
            all.cut += counts.cut;
            all.reasons.extend(counts.reasons);
        }
        all
    }
}

/// One short connection to its end.
pub(crate) async fn once(entry: SocketAddr, client: usize) -> Result<ExitName, Trouble> {
    match tokio::time::timeout(PATIENCE, echo(entry, client)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Trouble::Failed(format!("nothing within {PATIENCE:?}"))),
    }
}

async fn echo(entry: SocketAddr, client: usize) -> Result<ExitName, Trouble> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error: std::io::Error| Trouble::Failed(format!("{what}: {error}"))
    };
    let mut stream = connect(entry, client).await.map_err(failed("connecting"))?;
    let local = stream.local_addr().map_err(failed("connecting"))?;
    // Different for each connection, so that no answer can be somebody else's.
    let mut request = [0; 1 + SHORT_BYTES];
    for (at, byte) in request.iter_mut().enumerate() {
        *byte = (at as u16).wrapping_mul(31).wrapping_add(local.port()).to_le_bytes()[at % 2];
    }
    request[0] = SHORT;
    stream.write_all(&request).await.map_err(failed("sending"))?;

    let mut tag = [0];
    stream.read_exact(&mut tag).await.map_err(failed("waiting for the target"))?;
    let Some(exit) = ExitName::from_tag(tag[0]) else {
        return Err(Trouble::Failed(format!("a target that says {tag:?}")));
    };
    let mut rest = Vec::with_capacity(SHORT_BYTES);
    if let Err(error) = stream.read_to_end(&mut rest).await {
        return Err(Trouble::Cut(format!("after {} bytes through {exit:?}: {error}", rest.len())));
    }
    if rest != request[1..] {
        return Err(Trouble::Cut(format!("{} bytes through {exit:?} instead of the echo", rest.len())));
    }
    Ok(exit)
}

/// From a source address of the client's own: together the clients have more ports than one address has.
async fn connect(entry: SocketAddr, client: usize) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    let own = u8::try_from(client).unwrap_or(u8::MAX);
    socket.bind((Ipv4Addr::new(127, 1, 1, own.max(1)), 0).into())?;
    let stream = socket.connect(entry).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A connection that echoes until it is ended.
pub(crate) struct LongLived {
    task: JoinHandle<Result<u64, String>>,
    stop: DropGuard,
}

impl LongLived {
    /// Opens one; it must go through `exit`.
    pub(crate) async fn open(entry: SocketAddr, exit: ExitName) -> Self {
        let mut stream = connect(entry, usize::from(u8::MAX)).await.unwrap();
        stream.write_all(&[LONG]).await.unwrap();
        let mut tag = [0];
        let read = tokio::time::timeout(PATIENCE, stream.read_exact(&mut tag)).await;
        read.expect("no answer").expect("no answer");
        assert_eq!(tag[0], exit.tag(), "a long-lived connection through another exit");
        let stop = CancellationToken::new();
        let task = tokio::spawn(echo_until(stream, stop.clone()));
        Self { task, stop: stop.drop_guard() }
    }

    /// Ends it in order and returns how many echoes there were. Fails when it was cut or an echo was wrong.
    pub(crate) async fn end(self) -> u64 {
        drop(self.stop);
        let rounds = self.task.await.unwrap().unwrap();
        assert!(rounds > 0, "a long-lived connection that did nothing");
        rounds
    }
}

async fn echo_until(mut stream: TcpStream, stop: CancellationToken) -> Result<u64, String> {
    let mut rounds = 0_u64;
    let mut pace = tokio::time::interval(PACE);
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while stop.run_until_cancelled(pace.tick()).await.is_some() {
        let sent = rounds.to_be_bytes();
        let mut answer = [0; 8];
        let round = async {
            stream.write_all(&sent).await?;
            stream.read_exact(&mut answer).await
        };
        match tokio::time::timeout(PATIENCE, round).await {
            Ok(Ok(_)) if answer == sent => rounds += 1,
            Ok(Ok(_)) => return Err(format!("echo {rounds} is wrong")),
            Ok(Err(error)) => return Err(format!("cut after {rounds} echoes: {error}")),
            Err(_) => return Err(format!("no echo {rounds} within {PATIENCE:?}")),
        }
    }
    let ending = async {
        stream.shutdown().await?;
        stream.read_to_end(&mut Vec::new()).await
    };
    match tokio::time::timeout(PATIENCE, ending).await {
        Ok(Ok(0)) => Ok(rounds),
        Ok(Ok(more)) => Err(format!("{more} bytes more than were sent")),
        Ok(Err(error)) => Err(format!("cut at its end, after {rounds} echoes: {error}")),
        Err(_) => Err(format!("no end within {PATIENCE:?}")),
    }
}
