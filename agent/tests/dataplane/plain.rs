//! Between plain connections the kernel carries the payload; everything else stays as with copying.

use crate::rig::*;
use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

const MIB: usize = 1024 * 1024;

/// An entry and an exit with nothing but TCP between them, and a target whose connections are handed over.
struct Plain {
    entry: Entry,
    exit: Exit,
    arriving: mpsc::UnboundedReceiver<TcpStream>,
}

impl Plain {
    async fn start() -> Self {
        let (hand_over, arriving) = mpsc::unbounded_channel();
        let (target, _) = scripted(move |stream| {
            let hand_over = hand_over.clone();
            async move { hand_over.send(stream).unwrap() }
        })
        .await;
        let exit = Exit::start(1, "tcp").await;
        let entry = Entry::start(&[exit.node("a", "tcp")], target).await;
        Self { entry, exit, arriving }
    }

    /// Both ends of a connection.
    async fn connect(&mut self) -> (TcpStream, TcpStream) {
        let client = self.entry.connect().await;
        (client, soon(self.arriving.recv()).await.unwrap())
    }
}

/// Bytes whose order can be seen, beginning with this one.
fn pattern(first: usize, bytes: usize) -> Vec<u8> {
    (first..first + bytes).map(|i| (i % 251) as u8).collect()
}

/// Sends until the other side takes no more, so that bytes are on the way everywhere.
async fn flood(stream: &mut TcpStream) {
    let block = vec![7; 256 * 1024];
    // As soon as one write waits, every buffer on the way is full.
    let full = async { while stream.write_all(&block).await.is_ok() {} };
    assert!(tokio::time::timeout(Duration::from_millis(500), full).await.is_err(), "the connection broke");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn either_side_can_end_first_in_the_middle_of_a_transfer() {
    let mut plain = Plain::start().await;
    for client_first in [true, false] {
        let (client, target) = plain.connect().await;
        let (mut first, mut second) = if client_first { (client, target) } else { (target, client) };
        let ended = async {
            first.write_all(&pattern(0, 2 * MIB)).await.unwrap();
            first.shutdown().await.unwrap();
            let mut all = Vec::new();
            first.read_to_end(&mut all).await.unwrap();
            assert!(all == pattern(1, 3 * MIB), "client first: {client_first}");
        };
        let answered = async {
            let mut all = Vec::new();
            second.read_to_end(&mut all).await.unwrap();
            assert!(all == pattern(0, 2 * MIB), "client first: {client_first}");
            second.write_all(&pattern(1, 3 * MIB)).await.unwrap();
            second.shutdown().await.unwrap();
        };
        soon(async { tokio::join!(ended, answered) }).await;
    }
}

/// Sends 64 MiB; returns their checksum.
async fn send(mut half: impl AsyncWriteExt + Unpin, seed: usize) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    for block in 0..64 {
        let block = pattern(seed + block * 7, MIB);
        sum.update(&block);
        half.write_all(&block).await.unwrap();
    }
    half.shutdown().await.unwrap();
    sum.finalize()
}

/// Reads to the end with breaks in which everything on the way fills up; returns length and checksum.
async fn receive(mut half: impl AsyncReadExt + Unpin) -> (usize, u32) {
    let (mut sum, mut got, mut block) = (crc32fast::Hasher::new(), 0, vec![0; 100_000]);
    loop {
        let before = got / (8 * MIB);
        let n = half.read(&mut block).await.unwrap();
        if n == 0 {
            return (got, sum.finalize());
        }
        sum.update(&block[..n]);
        got += n;
        if got / (8 * MIB) != before {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_megabytes_both_ways_arrive_whole_at_slow_readers() {
    let mut plain = Plain::start().await;
    let (client, target) = plain.connect().await;
    let ((from_client, to_client), (from_target, to_target)) = (target.into_split(), client.into_split());
    // Named after where the bytes come from.
    let (client_half, target_half) = (to_target, to_client);
    let carried = async {
        tokio::join!(
            tokio::spawn(send(client_half, 3)),
            tokio::spawn(send(target_half, 5)),
            tokio::spawn(receive(from_client)),
            tokio::spawn(receive(from_target)),
        )
    };
    let (up, down, got_up, got_down) = tokio::time::timeout(LONG * 4, carried).await.unwrap();
    assert_eq!(got_up.unwrap(), (64 * MIB, up.unwrap()));
    assert_eq!(got_down.unwrap(), (64 * MIB, down.unwrap()));
}

async fn reads_a_reset(mut stream: TcpStream) {
    let mut sink = vec![0; MIB];
    let outcome = async {
        loop {
            match stream.read(&mut sink).await {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => return Some(error.kind()),
            }
        }
    };
    assert_eq!(soon(outcome).await, Some(ErrorKind::ConnectionReset), "a cut transfer looked complete");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_in_the_middle_of_a_transfer_arrives_as_a_reset() {
    let mut plain = Plain::start().await;
    for client_resets in [true, false] {
        let (client, target) = plain.connect().await;
        let (mut resets, other) = if client_resets { (client, target) } else { (target, client) };
        flood(&mut resets).await;
        socket2::SockRef::from(&resets).set_linger(Some(Duration::ZERO)).unwrap();
        drop(resets);
        reads_a_reset(other).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_goes_resets_both_sides_in_the_middle_of_a_transfer() {
    let mut plain = Plain::start().await;
    let (mut client, target) = plain.connect().await;
    flood(&mut client).await;
    soon(plain.entry.runtime.shutdown()).await;
    reads_a_reset(target).await;
    reads_a_reset(client).await;
    drop(plain.exit);
}

/// Pipes that this process has open, counted by their ends.
fn pipe_ends() -> usize {
    let files = fs::read_dir("/proc/self/fd").unwrap();
    let links = files.filter_map(|file| fs::read_link(file.unwrap().path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("pipe:")).count()
}

/// Sends much and gets it back.
async fn echo_much(addr: SocketAddr) -> TcpStream {
    let stream = soon(TcpStream::connect(addr)).await.unwrap();
    let (mut read, mut write) = stream.into_split();
    let sent = pattern(0, MIB);
    let mut got = vec![0; MIB];
    let (_, read_back) =
        soon(async { tokio::join!(write.write_all(&sent), read.read_exact(&mut got)) }).await;
    read_back.unwrap();
    assert!(got == sent);
    read.reunite(write).unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_hold_no_pipes() {
    const CONNECTIONS: usize = 200;
    let target = Target::start(Does::Echo).await;
    let exit = Exit::start(1, "tcp").await;
    let entry = Entry::start(&[exit.node("a", "tcp")], target.addr).await;
    let mut idle = Vec::new();
    for _ in 0..CONNECTIONS {
        idle.push(echo_much(entry.addr).await);
    }
    // Held, two agents would need two pipes for each direction. Other tests of this process have some, too, and each
    // thread keeps a few spare ones.
    eventually("pipes are given back", || pipe_ends() < CONNECTIONS).await;
    for stream in &mut idle {
        stream.write_all(b"ping").await.unwrap();
        soon(stream.read_exact(&mut [0; 4])).await.unwrap();
    }
}
