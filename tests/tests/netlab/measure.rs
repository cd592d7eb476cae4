//! What the tests measure with.

use std::cell::Cell;
use std::net::UdpSocket as StdUdpSocket;
use std::time::{Duration, Instant};

use tests::clock;
use tests::netlab::{Host, Impairment, Lab, LabError, LinkStats};
use tokio::net::{TcpListener, UdpSocket};
use tokio::time::timeout;

pub(crate) const MS: Duration = Duration::from_millis(1);
/// Longer than anything here takes; a test that reaches it has failed.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// A lab, or `None` where the system cannot have one, which it says.
pub(crate) fn lab(name: &str) -> Option<Lab> {
    match Lab::new(name) {
        Ok(lab) => Some(lab),
        Err(LabError::Unavailable { reason }) => {
            println!("SKIPPED: network namespaces not available ({reason})");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A lab with the hosts `a` and `b`.
pub(crate) fn pair(name: &str) -> Option<(Lab, Host, Host)> {
    let lab = lab(name)?;
    let (a, b) = (lab.host("a").unwrap(), lab.host("b").unwrap());
    Some((lab, a, b))
}

/// A listener that is never asked to accept: the kernel's handshake is all that is measured.
pub(crate) fn listen(host: &Host) -> TcpListener {
    TcpListener::from_std(host.tcp_listener(0).unwrap()).unwrap()
}

/// Times of `count` TCP connects, one after the other.
pub(crate) async fn connect_times(from: &Host, to: &Host, count: usize) -> Vec<Duration> {
    let listener = listen(to);
    let address = to.addr(listener.local_addr().unwrap().port());
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let socket = from.tcp_socket().await.unwrap();
        let start = clock::now();
        let client = timeout(LIMIT, socket.connect(address)).await.unwrap().unwrap();
        times.push(start.elapsed());
        drop(client);
        // Keeps the queue of the listener from filling up.
        timeout(LIMIT, listener.accept()).await.unwrap().unwrap();
    }
    times
}

pub(crate) fn median(times: &[Duration]) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

/// A socket on each host, the first one connected to the second.
pub(crate) fn udp_pair(from: &Host, to: &Host) -> (UdpSocket, UdpSocket) {
    let receiver = to.udp_socket(0).unwrap();
    let sender = from.udp_socket(0).unwrap();
    sender.connect(to.addr(receiver.local_addr().unwrap().port())).unwrap();
    let adopt = |socket: StdUdpSocket| UdpSocket::from_std(socket).unwrap();
    (adopt(sender), adopt(receiver))
}

/// A datagram that arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) number: u32,
    pub(crate) sent: Instant,
    pub(crate) received: Instant,
}

impl Arrival {
    pub(crate) fn flight(&self) -> Duration {
        self.received - self.sent
    }
}

/// Sends `count` numbered datagrams of `bytes`, waits `gap` after every `burst`, and returns what arrived.
/// Leaves a perfect link.
pub(crate) async fn send_numbered(lab: &Lab, from: &Host, to: &Host, train: Train) -> Vec<Arrival> {
    let before = lab.link(from, to).stats().unwrap();
    let (sender, receiver) = udp_pair(from, to);
    let taken = Cell::new(0);
    let receive = async {
        let mut arrivals = Vec::new();
        let mut buffer = [0; 2048];
        loop {
            let length = receiver.recv(&mut buffer).await.unwrap();
            let received = clock::now();
            assert_eq!(length, train.bytes);
            let number = u32::from_be_bytes(buffer[..4].try_into().unwrap());
            if number == u32::MAX {
                return arrivals;
            }
            arrivals.push((number, received));
            taken.set(taken.get() + 1);
        }
    };
    let send = async {
        let mut sent = Vec::with_capacity(train.count as usize);
        for number in 0..train.count {
            if number > 0 && number % train.burst == 0 {
                tokio::time::sleep(train.gap).await;
                // On a busy machine the lab or the receiver may be behind; what is lost in the buffers between them
                // would be counted as the link's.
                keep_up(lab, from, to, &before, u64::from(number), &taken).await;
            }
            let mut datagram = vec![0; train.bytes];
            datagram[..4].copy_from_slice(&number.to_be_bytes());
            sent.push(clock::now());
            sender.send(&datagram).await.unwrap();
        }
        // What is still on the way arrives first; then the link is made perfect for the mark of the end.
        let stats = settled(lab, from, to, before.packets + u64::from(train.count)).await;
        lab.link(from, to).set(Impairment::default()).unwrap();
        let mut end = vec![0xff; train.bytes];
        end[4..].fill(0);
        sender.send(&end).await.unwrap();
        assert_eq!(stats.packets - before.packets, u64::from(train.count), "the lab saw every datagram");
        sent
    };
    let (arrivals, sent) = timeout(LIMIT, async { tokio::join!(receive, send) }).await.unwrap();
    let delivered = lab.link(from, to).stats().unwrap().delivered - before.delivered;
    assert_eq!(arrivals.len() as u64 + 1, delivered, "what the link let through arrived, and the mark");
    let arrivals = arrivals.into_iter();
    arrivals.map(|(number, received)| Arrival { number, sent: sent[number as usize], received }).collect()
}

/// Waits until fewer datagrams wait in the sender's device and in the receiver's socket than fit in either.
async fn keep_up(lab: &Lab, from: &Host, to: &Host, before: &LinkStats, sent: u64, taken: &Cell<u64>) {
    /// A quarter of the small datagrams that fit in the default receive buffer.
    const MOST: u64 = 64;
    loop {
        let stats = lab.link(from, to).stats().unwrap();
        let in_device = sent - (stats.packets - before.packets);
        let in_socket = (stats.delivered - before.delivered).saturating_sub(taken.get());
        if in_device < MOST && in_socket < MOST {
            return;
        }
        tokio::time::sleep(MS).await;
    }
}

/// How datagrams are sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Train {
    pub(crate) count: u32,
    pub(crate) bytes: usize,
    pub(crate) burst: u32,
    pub(crate) gap: Duration,
}

/// The counts of a link once `packets` have entered it and none is on the way.
pub(crate) async fn settled(lab: &Lab, from: &Host, to: &Host, packets: u64) -> LinkStats {
    timeout(LIMIT, async {
        loop {
            let stats = lab.link(from, to).stats().unwrap();
            if stats.packets >= packets && stats.in_flight == 0 {
                return stats;
            }
            // Polls a count that has no signal; nothing depends on how long this takes.
            tokio::time::sleep(MS).await;
        }
    })
    .await
    .unwrap()
}
