//! Datagrams of many clients at once.

use super::load::spawn;
use super::product::{Product, Way};
use super::report::{Measure, Report};
use super::{Settings, in_turn};
use crate::clock;
use anyhow::{Result, ensure};
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

const SESSIONS: usize = 1_000;
const THREADS: usize = 4;
const DATAGRAM_BYTES: usize = 512;
/// An answer that has not come by then is lost; the loopback needs microseconds.
const LATE: Duration = Duration::from_millis(100);
/// Datagrams of one thread on the way at the same time: with all sessions at once, what is measured is the size of the
/// target's receive buffer.
const ON_THE_WAY: usize = 16;
const SCENARIO: &str = "echo, 1000 sessions, 64 datagrams on the way";
const RATE: Measure = Measure { order: 0, name: "datagrams answered", unit: "1/s", more_is_better: true };
const LOSS: Measure = Measure { order: 1, name: "datagrams lost", unit: "%", more_is_better: false };
const COST: Measure = Measure { order: 2, name: "processor per answer", unit: "µs", more_is_better: false };

pub(super) fn run(settings: &Settings) -> Result<bool> {
    let mut report = Report::new("udp", settings, &settings.products);
    let target = echo()?;
    for run in 0..settings.runs {
        for product in in_turn(&settings.products, run).filter(|product| product.does(Way::Udp)) {
            if let Err(error) = measure(settings, run, product, target, &mut report) {
                report.fail((SCENARIO, product.name), &error);
            }
        }
    }
    report.finish(settings.json.as_deref())
}

/// Sends every datagram back.
fn echo() -> Result<SocketAddr> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let addr = socket.local_addr()?;
    for _ in 0..2 {
        let socket = socket.try_clone()?;
        spawn(move || {
            let mut datagram = [0; 2048];
            loop {
                // An error here is a peer that has gone.
                if let Ok((bytes, peer)) = socket.recv_from(&mut datagram) {
                    let _ = socket.send_to(&datagram[..bytes], peer);
                }
            }
        })?;
    }
    Ok(addr)
}

fn measure(
    settings: &Settings,
    run: usize,
    product: &Product,
    target: SocketAddr,
    report: &mut Report,
) -> Result<()> {
    let time = if settings.quick { Duration::from_millis(300) } else { Duration::from_secs(2) };
    let dir = settings.folder(product.name)?;
    let started = product.start(Way::Udp, target, &dir)?;
    let (entry, before, start) = (started.entry, started.running.cpu_seconds(), clock::now());
    let mut threads = Vec::new();
    for _ in 0..THREADS {
        threads.push(spawn(move || clients(entry, SESSIONS / THREADS, time))?);
    }
    let (mut sent, mut answered) = (0, 0);
    for thread in threads {
        let (s, a) = thread.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
        (sent, answered) = (sent + s, answered + a);
    }
    let took = start.elapsed().as_secs_f64();
    let used = started.running.cpu_seconds() - before;
    ensure!(answered > 0, "no datagram came back");
    let place = (SCENARIO, product.name, run);
    report.add(place, RATE, answered as f64 / took);
    report.add(place, LOSS, (sent - answered) as f64 * 100.0 / sent as f64);
    report.add(place, COST, used * 1e6 / answered as f64);
    fs::remove_dir_all(&dir)?;
    Ok(())
}

/// Group after group of sessions: each of a group sends one datagram, then each waits for its answer; returns how many were sent and
/// how many came back.
fn clients(entry: SocketAddr, sessions: usize, time: Duration) -> Result<(usize, usize)> {
    let mut sockets = Vec::new();
    for _ in 0..sessions {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(entry)?;
        socket.set_read_timeout(Some(LATE))?;
        sockets.push(socket);
    }
    let (start, mut round, mut sent, mut answered) = (clock::now(), 0_u64, 0, 0);
    let (mut datagram, mut answer) = ([0x5a; DATAGRAM_BYTES], [0; 2048]);
    while start.elapsed() < time {
        round += 1;
        datagram[..8].copy_from_slice(&round.to_le_bytes());
        for group in sockets.chunks(ON_THE_WAY) {
            for socket in group {
                socket.send(&datagram)?;
                sent += 1;
            }
            for socket in group {
                // Late answers of earlier rounds are no answers to this one.
                while let Ok(bytes) = socket.recv(&mut answer) {
                    if bytes == DATAGRAM_BYTES && answer[..8] == datagram[..8] {
                        answered += 1;
                        break;
                    }
                }
            }
        }
    }
    Ok((sent, answered))
}
