//! The traffic: targets and clients, as threads with blocking sockets, so that no runtime of their own is measured along.

use super::numbers::percentile;
use crate::clock;
use anyhow::{Context as _, Result};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const BLOCK_BYTES: usize = 256 * 1024;
/// Threads of a target that answers: more than clients at once.
const ANSWERING: usize = 64;
/// Nothing on loopback takes so long unless it is broken.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// Stacks hold no buffers.
const STACK_BYTES: usize = 64 * 1024;

/// A thread of this module.
pub(super) fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    Ok(thread::Builder::new().stack_size(STACK_BYTES).spawn(body)?)
}

/// A listener with threads behind it, for as long as the process lives.
pub(super) struct Target {
    pub(super) addr: SocketAddr,
    /// Bytes read so far.
    pub(super) bytes: Arc<AtomicU64>,
    /// Connections that nobody serves.
    kept: Arc<Mutex<Vec<TcpStream>>>,
}

impl Target {
    /// Reads and throws away.
    pub(super) fn sink() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let target = Self { addr: listener.local_addr()?, bytes: Arc::default(), kept: Arc::default() };
        let bytes = target.bytes.clone();
        spawn(move || {
            for stream in listener.incoming().flatten() {
                let bytes = bytes.clone();
                let reader = spawn(move || {
                    let (mut stream, mut block) = (stream, vec![0; BLOCK_BYTES]);
                    while let Ok(read @ 1..) = stream.read(&mut block) {
                        bytes.fetch_add(read as u64, Ordering::Relaxed);
                    }
                });
                if reader.is_err() {
                    return;
                }
            }
        })?;
        Ok(target)
    }

    /// Sends the last octet of the peer's address, then sends back what it gets.
    pub(super) fn answering() -> Result<Self> {
        let listener = Arc::new(TcpListener::bind("127.0.0.1:0")?);
        let target = Self { addr: listener.local_addr()?, bytes: Arc::default(), kept: Arc::default() };
        for _ in 0..ANSWERING {
            let (listener, bytes) = (listener.clone(), target.bytes.clone());
            spawn(move || {
                while let Ok((mut stream, peer)) = listener.accept() {
                    let SocketAddr::V4(peer) = peer else { continue };
                    let _ = stream.set_nodelay(true);
                    let mut answer = [peer.ip().octets()[3]; 1];
                    if stream.write_all(&answer).is_err() {
                        continue;
                    }
                    while let Ok(1) = stream.read(&mut answer) {
                        bytes.fetch_add(1, Ordering::Relaxed);
                        if stream.write_all(&answer).is_err() {
                            break;
                        }
                    }
                }
            })?;
        }
        Ok(target)
    }

    /// Sends one byte to whoever comes, and keeps the connection until this is dropped.
    pub(super) fn keeping() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let target = Self { addr: listener.local_addr()?, bytes: Arc::default(), kept: Arc::default() };
        let kept = target.kept.clone();
        spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                let _ = stream.write_all(&[1]);
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
            }
        })?;
        Ok(target)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // The thread stays and waits for more.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Connects, with limits for everything that follows.
pub(super) fn connect(entry: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&entry, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Connects and waits for the target's first byte, which says how the connection came there.
pub(super) fn reach(entry: SocketAddr) -> Result<(TcpStream, u8)> {
    let mut stream = connect(entry)?;
    let mut first = [0];
    stream.read_exact(&mut first).context("no byte from the target")?;
    Ok((stream, first[0]))
}

/// Sends on some connections at once for a while; returns bytes per second that arrived at the sink. `mark` is called
/// when the measured time begins and when it ends.
pub(super) fn throughput(
    (entry, sink): (SocketAddr, &Target),
    connections: usize,
    time: Duration,
    mut mark: impl FnMut(),
) -> Result<f64> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut senders = Vec::new();
    for _ in 0..connections {
        let (mut stream, stop) = (connect(entry)?, stop.clone());
        senders.push(spawn(move || {
            let block = vec![0x5a; BLOCK_BYTES];
            while !stop.load(Ordering::Relaxed) {
                stream.write_all(&block)?;
            }
            std::io::Result::Ok(())
        })?);
    }
    // Windows grow first.
    thread::sleep(time / 5);
    mark();
    let (start, before) = (clock::now(), sink.bytes.load(Ordering::Relaxed));
    thread::sleep(time);
    let (took, after) = (start.elapsed(), sink.bytes.load(Ordering::Relaxed));
    mark();
    stop.store(true, Ordering::Relaxed);
    for sender in senders {
        sender.join().map_err(|_| anyhow::anyhow!("a sender panicked"))?.context("a sender was cut off")?;
    }
    Ok((after - before) as f64 / took.as_secs_f64())
}

/// Connections one after another from several clients.
pub(super) struct Rate {
    pub(super) per_second: f64,
    /// Milliseconds from before the connect to the target's first byte.
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) failed: usize,
}

/// Opens connections for a while, each until the target's first byte.
pub(super) fn connection_rate(entry: SocketAddr, clients: usize, time: Duration) -> Result<Rate> {
    let failed = Arc::new(AtomicUsize::new(0));
    let start = clock::now();
    let mut threads = Vec::new();
    for _ in 0..clients {
        let failed = failed.clone();
        threads.push(spawn(move || {
            let mut times = Vec::new();
            while start.elapsed() < time {
                let begun = clock::now();
                match reach(entry) {
                    Ok(_) => times.push(begun.elapsed().as_secs_f64() * 1000.0),
                    Err(_) => {
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            times
        })?);
    }
    let mut times = Vec::new();
    for thread in threads {
        times.extend(thread.join().map_err(|_| anyhow::anyhow!("a client panicked"))?);
    }
    let took = start.elapsed().as_secs_f64();
    Ok(Rate {
        per_second: times.len() as f64 / took,
        p50_ms: percentile(&mut times, 0.5),
        p99_ms: percentile(&mut times, 0.99),
        failed: failed.load(Ordering::Relaxed),
    })
}
