//! One sample: one TCP connect.

use crate::clock::Clock;
use shared::link::Sample;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};

/// Connects once and closes at once.
///
/// The duration is the kernel's own measure of SYN → SYN-ACK where it has one: it does not contain the time a busy
/// runtime needs to notice. Otherwise it is the time from the call of `connect` until the socket was seen writable.
///
/// The socket is closed in the ordinary way (FIN), not reset: a probe shall look like a short connection to the exit's
/// relay and to firewalls on the way. The price is one TIME_WAIT socket here for 60 s per successful sample, some
/// hundred bytes each.
pub(crate) async fn sample(clock: &Clock, address: SocketAddr, timeout: Duration) -> Sample {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
    let Ok(socket) = socket else { return Sample::Unreachable };
    let started = clock.instant();
    // A late wake-up polls the connect before the timer, so a busy runtime turns no answer into a lost one.
    let outcome = tokio::time::timeout(timeout, socket.connect(address)).await;
    let elapsed = clock.instant().saturating_duration_since(started);
    match outcome {
        Err(_) => Sample::Lost,
        Ok(Err(error)) => failure(error.kind()),
        Ok(Ok(stream)) => {
            let handshake = Handshake::of(&stream);
            let duration = handshake.duration(elapsed);
            if duration > timeout {
                return Sample::Lost;
            }
            Sample::Ok { ms: duration.as_secs_f64() * 1000.0, retransmits: handshake.retransmits }
        }
    }
}

fn failure(kind: ErrorKind) -> Sample {
    match kind {
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Sample::Refused,
        ErrorKind::TimedOut => Sample::Lost,
        _ => Sample::Unreachable,
    }
}

/// What the kernel knows about how a connection came to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Handshake {
    /// SYNs sent again.
    retransmits: u32,
    /// SYN → SYN-ACK, when the kernel measured it.
    round_trip: Option<Duration>,
}

impl Handshake {
    fn of(stream: &TcpStream) -> Self {
        // Without TCP_INFO (a sandbox) the sample stays usable: the timeout below a second still tells a lost SYN.
        nix::sys::socket::getsockopt(stream, TcpInfoHead).map(Self::from_head).unwrap_or_default()
    }

    fn from_head(head: [u32; TCP_INFO_WORDS]) -> Self {
        let micros = u64::from(head[WORD_RTT]);
        let round_trip = (micros > 0).then(|| Duration::from_micros(micros));
        Self { retransmits: head[WORD_TOTAL_RETRANS], round_trip }
    }

    fn duration(&self, elapsed: Duration) -> Duration {
        match self.round_trip {
            // After a retransmission the kernel's value may belong to the last SYN only.
            Some(round_trip) if self.retransmits == 0 && round_trip < elapsed => round_trip,
            _ => elapsed,
        }
    }
}

/// `struct tcp_info` up to and with `tcpi_total_retrans`: 8 single bytes and 24 words. This part has been the same
/// since Linux 2.6; a longer struct would not be filled by an older kernel.
const TCP_INFO_WORDS: usize = 26;
/// `tcpi_rtt`, microseconds. With nothing sent yet it is the round trip of the handshake.
const WORD_RTT: usize = 17;
/// `tcpi_total_retrans`.
const WORD_TOTAL_RETRANS: usize = 25;

#[derive(Clone, Copy)]
struct TcpInfoHead;

nix::getsockopt_impl!(
    TcpInfoHead,
    libc::IPPROTO_TCP,
    libc::TCP_INFO,
    [u32; TCP_INFO_WORDS],
    nix::sys::socket::sockopt::GetStruct<[u32; TCP_INFO_WORDS]>
);
// The macro above names the crate without a path.
use nix::libc;

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn a_listener_answers_and_a_closed_port_refuses() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let Sample::Ok { ms, retransmits } = sample(&Clock::system(), address, TIMEOUT).await else {
            panic!("not connected")
        };
        assert!(ms > 0.0 && ms < 1000.0, "{ms}");
        assert_eq!(retransmits, 0);
        drop(listener);
        assert_eq!(sample(&Clock::system(), address, TIMEOUT).await, Sample::Refused);
    }

    #[tokio::test]
    async fn the_kernel_reports_the_handshake() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let handshake = Handshake::of(&stream);
        assert_eq!(handshake.retransmits, 0);
        assert!(handshake.round_trip.is_some_and(|rtt| rtt < Duration::from_secs(1)), "{handshake:?}");
    }

    #[test]
    fn the_kernels_measure_is_used_only_when_it_is_the_whole_story() {
        let elapsed = Duration::from_millis(50);
        let measured = |rtt_us: u32, retransmits: u32| {
            let mut head = [0; TCP_INFO_WORDS];
            head[WORD_RTT] = rtt_us;
            head[WORD_TOTAL_RETRANS] = retransmits;
            Handshake::from_head(head).duration(elapsed)
        };
        assert_eq!(measured(30_000, 0), Duration::from_millis(30));
        assert_eq!(measured(30_000, 1), elapsed);
        assert_eq!(measured(0, 0), elapsed);
        assert_eq!(measured(70_000, 0), elapsed);
    }
}
