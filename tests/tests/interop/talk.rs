//! Conversations through a tunnel, from the client's side, and the bytes they carry.

use crate::node::PATIENCE;
use crate::target::Target;
use rand::{RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use sha2::{Digest as _, Sha256};
use std::env;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tests::rig::eventually;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// What a server that speaks first says.
pub(crate) const GREETING: &[u8] = b"220 a server that speaks first\r\n";
/// What a server says that has nothing more to say and still listens.
pub(crate) const FAREWELL: &[u8] = b"that is all from me";
/// Seed of what the target sends in bulk; the client's is another.
pub(crate) const TARGET_SEED: u64 = 1;
const CLIENT_SEED: u64 = 2;
/// More than any buffer on the way holds.
const HALF: usize = 3 << 20;
/// Connections of [`many`], and how many at once.
const MANY: usize = 200;
const AT_ONCE: usize = 20;
const BLOCK: usize = 64 << 10;

/// Bytes each way in bulk.
pub(crate) fn bulk_bytes() -> u64 {
    let mib =
        env::var("EXITPILOT_INTEROP_MIB").map_or(64, |text| text.parse().expect("EXITPILOT_INTEROP_MIB"));
    mib << 20
}

/// How long bulk may take: 2 MiB/s on a machine that is busy with other things.
pub(crate) fn bulk_limit() -> Duration {
    PATIENCE + Duration::from_secs(bulk_bytes() >> 21)
}

/// A conversation with its limit; on failure it says which.
pub(crate) async fn hold(what: &str, talk: impl Future<Output = io::Result<()>>) {
    try_hold(what, PATIENCE, talk).await.unwrap_or_else(|error| panic!("{error}"));
}

/// The same for those whose failure is not the end.
pub(crate) async fn try_hold(
    what: &str,
    limit: Duration,
    talk: impl Future<Output = io::Result<()>>,
) -> Result<(), String> {
    match tokio::time::timeout(limit, talk).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(format!("{what}: {error}")),
        Err(_) => Err(format!("{what}: hangs")),
    }
}

async fn connect(entry: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(entry).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The client asks, the server answers, three times on one connection, small and large. Then the client ends its
/// direction and waits for the server to end the other one.
pub(crate) async fn client_first(entry: SocketAddr) -> io::Result<()> {
    let mut stream = connect(entry).await?;
    for (seed, size) in [(10, 5), (11, 40_000), (12, 1)] {
        let said = random(seed, size);
        stream.write_all(&said).await?;
        let mut heard = vec![0; said.len()];
        stream.read_exact(&mut heard).await?;
        same(&heard, &said)?;
    }
    stream.shutdown().await?;
    ended(&mut stream).await
}

/// The server speaks while the client has not said a word; then as above.
pub(crate) async fn server_first(entry: SocketAddr) -> io::Result<()> {
    let mut stream = connect(entry).await?;
    let mut greeting = vec![0; GREETING.len()];
    stream.read_exact(&mut greeting).await?;
    same(&greeting, GREETING)?;
    let said = random(20, 1000);
    stream.write_all(&said).await?;
    let mut heard = vec![0; said.len()];
    stream.read_exact(&mut heard).await?;
    same(&heard, &said)?;
    stream.shutdown().await?;
    ended(&mut stream).await
}

/// The client ends its direction; only then the server answers.
pub(crate) async fn client_ends(entry: SocketAddr) -> io::Result<()> {
    let mut stream = connect(entry).await?;
    let said = random(30, HALF);
    stream.write_all(&said).await?;
    stream.shutdown().await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    same(answer.as_bytes(), hex(Sha256::digest(&said).as_slice()).as_bytes())
}

/// The server ends its direction, which is all that the client waits for.
pub(crate) async fn server_done(entry: SocketAddr) -> io::Result<()> {
    let mut stream = connect(entry).await?;
    let mut farewell = Vec::new();
    stream.read_to_end(&mut farewell).await?;
    same(&farewell, FAREWELL)
}

/// The server ends its direction; the client goes on talking to it.
pub(crate) async fn server_ends(entry: SocketAddr, target: &Target) -> io::Result<()> {
    let mut stream = connect(entry).await?;
    let mut farewell = Vec::new();
    stream.read_to_end(&mut farewell).await?;
    same(&farewell, FAREWELL)?;
    let said = random(40, HALF);
    stream.write_all(&said).await?;
    stream.shutdown().await?;
    let digest = hex(Sha256::digest(&said).as_slice());
    let arrived = eventually("what was said after the farewell has arrived", PATIENCE, async || {
        anyhow::ensure!(target.digests().contains(&digest), "{:?}", target.digests());
        Ok(())
    });
    arrived.await.map_err(io::Error::other)
}

/// Bulk in both directions at once, both checked.
pub(crate) async fn bulk(entry: SocketAddr) -> io::Result<()> {
    let (received, mut stream) = exchange_bulk(connect(entry).await?, CLIENT_SEED, bulk_bytes()).await?;
    let mut answer = vec![0; received.len()];
    stream.read_exact(&mut answer).await?;
    stream.shutdown().await?;
    same(received.as_bytes(), Bulk::digest(TARGET_SEED, bulk_bytes()).as_bytes())?;
    same(&answer, Bulk::digest(CLIENT_SEED, bulk_bytes()).as_bytes())
}

/// Many short connections, some at once.
pub(crate) async fn many(entry: SocketAddr) -> io::Result<()> {
    let mut running = JoinSet::new();
    for n in 0..MANY {
        if running.len() == AT_ONCE
            && let Some(result) = running.join_next().await
        {
            result.map_err(io::Error::other)??;
        }
        running.spawn(async move {
            let mut stream = connect(entry).await?;
            let said = random(n as u64 + 1000, 100 + n);
            stream.write_all(&said).await?;
            let mut heard = vec![0; said.len()];
            stream.read_exact(&mut heard).await?;
            same(&heard, &said)
        });
    }
    while let Some(result) = running.join_next().await {
        result.map_err(io::Error::other)??;
    }
    Ok(())
}

fn same(heard: &[u8], expected: &[u8]) -> io::Result<()> {
    if heard == expected {
        return Ok(());
    }
    let first =
        heard.iter().zip(expected).position(|(a, b)| a != b).unwrap_or(heard.len().min(expected.len()));
    Err(io::Error::other(format!(
        "{} bytes came, {} expected, different from byte {first}",
        heard.len(),
        expected.len()
    )))
}

async fn ended(stream: &mut TcpStream) -> io::Result<()> {
    match stream.read(&mut [0; 16]).await? {
        0 => Ok(()),
        more => Err(io::Error::other(format!("{more} bytes too many"))),
    }
}

/// Reproducible bytes.
pub(crate) fn random(seed: u64, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    ChaCha8Rng::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes
}

/// Reads to the end: the checksum of it all, in hexadecimal.
pub(crate) async fn digest_to_end(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<String> {
    digest_of(stream, u64::MAX).await
}

async fn digest_of(stream: &mut (impl AsyncRead + Unpin), limit: u64) -> io::Result<String> {
    let (mut hash, mut left) = (Sha256::new(), limit);
    let mut buffer = vec![0; BLOCK];
    while left > 0 {
        let most = usize::try_from(left).map_or(BLOCK, |left| left.min(BLOCK));
        let read = stream.read(&mut buffer[..most]).await?;
        if read == 0 {
            break;
        }
        hash.update(&buffer[..read]);
        left -= read as u64;
    }
    Ok(hex(hash.finalize().as_slice()))
}

/// Sends bulk of `seed` while it reads as much; the checksum of what was read.
pub(crate) async fn exchange_bulk(
    stream: TcpStream,
    seed: u64,
    bytes: u64,
) -> io::Result<(String, TcpStream)> {
    let (mut read, mut write) = stream.into_split();
    let send = async {
        let mut bulk = Bulk::new(seed, bytes);
        while let Some(block) = bulk.next_block() {
            write.write_all(block).await?;
        }
        Ok::<_, io::Error>(write)
    };
    let (write, digest) = tokio::try_join!(send, digest_of(&mut read, bytes))?;
    let stream = read.reunite(write).map_err(io::Error::other)?;
    Ok((digest, stream))
}

/// A long stream that is cheap to make: a random block that carries its number, so that one that is lost, doubled or
/// moved changes the checksum.
struct Bulk {
    block: Vec<u8>,
    number: u64,
    left: u64,
}

impl Bulk {
    fn new(seed: u64, bytes: u64) -> Self {
        Self { block: random(seed, BLOCK), number: 0, left: bytes }
    }

    fn next_block(&mut self) -> Option<&[u8]> {
        let length = usize::try_from(self.left).map_or(BLOCK, |left| left.min(BLOCK));
        if length == 0 {
            return None;
        }
        self.block[..8].copy_from_slice(&self.number.to_be_bytes());
        self.number += 1;
        self.left -= length as u64;
        Some(&self.block[..length])
    }

    fn digest(seed: u64, bytes: u64) -> String {
        let (mut bulk, mut hash) = (Self::new(seed, bytes), Sha256::new());
        while let Some(block) = bulk.next_block() {
            hash.update(block);
        }
        hex(hash.finalize().as_slice())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
