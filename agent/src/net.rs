//! The only place that makes TCP sockets.

use shared::address::HostPort;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

/// Head start of one address over the next one of the same name (RFC 8305, recommended value).
const ADDRESS_HEAD_START: Duration = Duration::from_millis(250);
/// Connections the kernel holds until they are accepted; it lowers this to `net.core.somaxconn`.
const BACKLOG: u32 = 4096;
/// Silence after which the kernel asks whether the peer is still there (Go's default, so GOST's too), and the pause
/// between its questions.
pub(crate) const KEEPALIVE: Duration = Duration::from_secs(15);
/// Unanswered questions after which a connection is dead: 75 s after the last sign of life.
const KEEPALIVE_PROBES: u32 = 4;

/// Where connections leave from, when that is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interface {
    /// A device such as `eth0`.
    Device(String),
    /// A local address.
    Address(IpAddr),
}

impl Interface {
    /// An address if the text is one, else the name of a device.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Ok(ip) = text.parse() {
            return Ok(Self::Address(ip));
        }
        // IFNAMSIZ leaves 15 bytes for a name.
        if text.is_empty() || text.len() > 15 || text.contains(|c: char| c.is_whitespace() || c == '/') {
            return Err(format!("`{text}` is neither an address nor the name of an interface"));
        }
        Ok(Self::Device(text.to_owned()))
    }
}

/// Fails with [`io::ErrorKind::TimedOut`] when `future` takes longer than `deadline`.
pub async fn within<T>(deadline: Duration, future: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match tokio::time::timeout(deadline, future).await {
        Ok(outcome) => outcome,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {deadline:?}"))),
    }
}

/// Connects to a target, resolving its name, within `deadline` for everything. Of several addresses, each gets a head
/// start over the next; the first that connects wins.
pub async fn connect(
    target: &HostPort,
    interface: Option<&Interface>,
    deadline: Duration,
) -> io::Result<TcpStream> {
    let attempt = async {
        if let Ok(ip) = target.host.parse::<IpAddr>() {
            return connect_address(SocketAddr::new(ip, target.port), interface.cloned()).await;
        }
        let addresses: Vec<_> = tokio::net::lookup_host((target.host.as_str(), target.port)).await?.collect();
        race(interleaved(addresses), interface).await
    };
    within(deadline, attempt).await
}

/// Families take turns, beginning with the resolver's first choice, so that one broken family costs one head start.
pub(crate) fn interleaved(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (mut preferred, mut others): (Vec<_>, Vec<_>) =
        addresses.into_iter().rev().partition(|address| address.is_ipv6() == first_is_v6);
    let mut order = Vec::new();
    while !preferred.is_empty() || !others.is_empty() {
        order.extend(preferred.pop());
        order.extend(others.pop());
    }
    order
}

async fn race(addresses: Vec<SocketAddr>, interface: Option<&Interface>) -> io::Result<TcpStream> {
    let mut waiting = addresses.into_iter();
    // Dropping the set ends the attempts that lost.
    let mut attempts = JoinSet::new();
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    loop {
        match waiting.next() {
            Some(address) => {
                attempts.spawn(connect_address(address, interface.cloned()));
            }
            None if attempts.is_empty() => return Err(failure),
            None => {}
        }
        let next = attempts.join_next();
        let finished = if waiting.len() == 0 {
            next.await
        } else {
            match tokio::time::timeout(ADDRESS_HEAD_START, next).await {
                Ok(finished) => finished,
                Err(_) => continue,
            }
        };
        match finished {
            Some(Ok(Ok(stream))) => return Ok(stream),
            Some(Ok(Err(error))) => failure = error,
            Some(Err(error)) => failure = io::Error::other(error),
            None => {}
        }
    }
}

async fn connect_address(address: SocketAddr, interface: Option<Interface>) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // The range of local ports overlaps the one that services get theirs from: without this, a connection that happens
    // to have the port, even a past one, keeps a service from listening on it.
    socket.set_reuseaddr(true)?;
    match &interface {
        None => {}
        Some(Interface::Device(name)) => bind_device(&socket, name)?,
        Some(Interface::Address(ip)) => {
            bind_without_port(&socket);
            socket.bind(SocketAddr::new(*ip, 0))?;
        }
    }
    let stream = socket.connect(address).await?;
    tune(&stream);
    Ok(stream)
}

#[cfg(target_os = "linux")]
fn bind_device(socket: &TcpSocket, name: &str) -> io::Result<()> {
    socket.bind_device(Some(name.as_bytes()))
}

/// Leaves the choice of the port to the connect, which can use one that another target has already: otherwise an address
/// has 28,000 connections and no more. An old kernel refuses and works without.
#[cfg(target_os = "linux")]
fn bind_without_port(socket: &TcpSocket) {
    use nix::sys::socket::{setsockopt, sockopt::IpBindAddressNoPort};
    if let Err(error) = setsockopt(socket, IpBindAddressNoPort, &true) {
        tracing::trace!(%error, "binding takes a port");
    }
}

#[cfg(not(target_os = "linux"))]
fn bind_without_port(_: &TcpSocket) {}

#[cfg(not(target_os = "linux"))]
fn bind_device(_: &TcpSocket, name: &str) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, format!("binding to the interface {name}")))
}

/// Small writes leave at once. A socket that refuses the option works all the same.
pub fn tune(stream: &TcpStream) {
    tune_socket(&socket2::SockRef::from(stream));
}

/// As [`tune`], for a connection that one of our listeners accepted. Linux hands the option of the listener on: one call
/// less for each connection.
pub fn tune_accepted(stream: &TcpStream) {
    if !cfg!(target_os = "linux") {
        tune(stream);
    }
}

fn tune_socket(socket: &socket2::SockRef<'_>) {
    if let Err(error) = socket.set_tcp_nodelay(true) {
        tracing::trace!(%error, "a socket option was refused");
    }
}

/// From now on it is noticed when the peer is gone without a word. For connections that may last: to set it up and to take
/// it down is a tenth of what the kernel does for a short one. A socket that refuses works all the same.
pub fn keep_alive(stream: &TcpStream) {
    let keepalive = socket2::TcpKeepalive::new()
        .with_time(KEEPALIVE)
        .with_interval(KEEPALIVE)
        .with_retries(KEEPALIVE_PROBES);
    if let Err(error) = socket2::SockRef::from(stream).set_tcp_keepalive(&keepalive) {
        tracing::trace!(%error, "keepalive was refused");
    }
}

/// Makes the coming close a reset, by which the peer can tell an abort from an end.
pub fn reset_on_close(stream: &TcpStream) {
    if let Err(error) = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO)) {
        tracing::trace!(%error, "linger refused");
    }
}

/// A listen address as it is written: `:port` means every address of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenAddress {
    host: String,
    port: u16,
}

impl ListenAddress {
    /// Parses `:8080`, `[::]:8080`, `192.0.2.1:8080` or `name:8080`. Port 0 lets the system choose.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a listen address such as :8080 or 192.0.2.1:8080");
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        if port.is_empty() || !port.bytes().all(|b| b.is_ascii_digit()) {
            return Err(wrong());
        }
        let port = port.parse().map_err(|_| wrong())?;
        let host = match host.strip_prefix('[') {
            Some(rest) => {
                let host = rest.strip_suffix(']').ok_or_else(wrong)?;
                host.parse::<Ipv6Addr>().map_err(|_| wrong())?;
                host
            }
            None if host.contains(':') => return Err(wrong()),
            None => host,
        };
        if !host.is_empty() {
            shared::address::validate_host(host).map_err(|_| wrong())?;
        }
        Ok(Self { host: host.to_owned(), port })
    }

    /// The port, 0 if the system chooses.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Opens the listener. A name is resolved, its first address taken, within five seconds.
    pub async fn listen(&self) -> io::Result<TcpListener> {
        self.open(listen_on).await
    }

    /// Opens with `open` what shall listen here, as [`ListenAddress::listen`] does.
    pub async fn open<T>(&self, open: impl Fn(SocketAddr) -> io::Result<T>) -> io::Result<T> {
        let v4 = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), self.port);
        let v6 = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), self.port);
        let address = if self.host.is_empty() {
            v6
        } else {
            match self.host.parse::<IpAddr>() {
                Ok(ip) => SocketAddr::new(ip, self.port),
                Err(_) => {
                    let lookup = tokio::net::lookup_host((self.host.as_str(), self.port));
                    within(Duration::from_secs(5), lookup)
                        .await?
                        .next()
                        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name has no address"))?
                }
            }
        };
        match open(address) {
            // A machine without IPv6 has no `[::]`, but "every address" still means something there.
            Err(error)
                if address == v6
                    && !matches!(
                        error.kind(),
                        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied
                    ) =>
            {
                open(v4)
            }
            outcome => outcome,
        }
    }
}

/// Opens a listener at exactly this address.
pub fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if address.is_ipv6() {
        // `[::]` means IPv4 too, whatever the system's default says.
        socket2::SockRef::from(&socket).set_only_v6(!address.ip().is_unspecified())?;
    }
    // A restart must not wait for the last connections of the predecessor to be forgotten.
    socket.set_reuseaddr(true)?;
    tune_socket(&socket2::SockRef::from(&socket));
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listen_addresses() {
        let good = [":8080", "[::]:8080", "0.0.0.0:80", "127.0.0.1:0", "localhost:80", "[2001:db8::1]:443"];
        for text in good {
            assert!(ListenAddress::parse(text).is_ok(), "{text}");
        }
        for text in
            ["", "8080", ":", ":x", ":70000", "::1:80", "[::1]", "[x]:80", "a b:80", ":+80", "1.2.3:80"]
        {
            let error = ListenAddress::parse(text).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn interfaces() {
        assert_eq!(Interface::parse("eth0"), Ok(Interface::Device("eth0".into())));
        assert_eq!(Interface::parse("192.0.2.1"), Ok(Interface::Address("192.0.2.1".parse().unwrap())));
        for text in ["", "a name", "far-too-long-interface", "a/b"] {
            assert!(Interface::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn families_take_turns() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let (a6, b6, c4, d4) =
            (address("[::1]:1"), address("[::2]:1"), address("1.1.1.1:1"), address("1.1.1.2:1"));
        assert_eq!(interleaved(vec![a6, b6, c4, d4]), [a6, c4, b6, d4]);
        assert_eq!(interleaved(vec![c4, a6, b6]), [c4, a6, b6]);
        assert_eq!(interleaved(vec![c4, d4]), [c4, d4]);
    }

    #[tokio::test]
    async fn a_taken_port_is_refused_and_every_address_takes_both_families() {
        let listener = ListenAddress::parse(":0").unwrap().listen().await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let target = HostPort::new("127.0.0.1", port);
        connect(&target, None, Duration::from_secs(5)).await.unwrap();
        let again = ListenAddress::parse(&format!(":{port}")).unwrap().listen().await;
        assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    #[tokio::test]
    async fn both_ends_are_tuned() {
        let listener = listen_on("127.0.0.1:0".parse().unwrap()).unwrap();
        let target = HostPort::new("127.0.0.1", listener.local_addr().unwrap().port());
        let dialled = connect(&target, None, Duration::from_secs(5)).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        tune_accepted(&accepted);
        for stream in [dialled, accepted] {
            let socket = socket2::SockRef::from(&stream);
            assert!(stream.nodelay().unwrap() && !socket.keepalive().unwrap());
            keep_alive(&stream);
            assert!(socket.keepalive().unwrap());
            assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEPALIVE);
            assert_eq!(socket.tcp_keepalive_retries().unwrap(), KEEPALIVE_PROBES);
        }
    }

    #[tokio::test]
    async fn a_port_that_a_connection_has_can_be_listened_on() {
        let listener = listen_on("127.0.0.1:0".parse().unwrap()).unwrap();
        let target = HostPort::new("127.0.0.1", listener.local_addr().unwrap().port());
        // An address of its own: connections of other programs are not made so considerately.
        let interface = Interface::Address("127.77.0.1".parse().unwrap());
        let stream = connect(&target, Some(&interface), Duration::from_secs(5)).await.unwrap();
        listen_on(stream.local_addr().unwrap()).unwrap();
    }

    #[tokio::test]
    async fn a_closed_address_of_a_name_does_not_stop_the_open_one() {
        let listener = listen_on("127.0.0.1:0".parse().unwrap()).unwrap();
        let open = listener.local_addr().unwrap();
        let free = listen_on("127.0.0.2:0".parse().unwrap()).unwrap();
        let closed = free.local_addr().unwrap();
        drop(free);
        let stream = race(vec![closed, open], None).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), open);
        assert!(race(vec![closed], None).await.is_err());
        assert!(race(vec![], None).await.is_err());
    }
}
