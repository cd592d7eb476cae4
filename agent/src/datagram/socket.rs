//! The only place that makes UDP sockets.

use crate::net::{Interface, interleaved, within};
use crate::stream::Stream;
use shared::address::HostPort;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::UdpSocket;

/// Kernel buffer, per direction, of a socket on which all clients of a service come in: a tenth of a second of a
/// gigabit's small datagrams. The kernel gives less where it must not be so much.
const LISTENER_BUFFER: usize = 8 * 1024 * 1024;
/// Kernel buffer, per direction, of a socket that one session has for itself.
const SESSION_BUFFER: usize = 1024 * 1024;

/// Opens a socket for clients at exactly this address.
pub fn listen_on(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = new_socket(address)?;
    if address.is_ipv6() {
        // `[::]` means IPv4 too, whatever the system's default says.
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.bind(&address.into())?;
    enlarge(&socket, LISTENER_BUFFER);
    UdpSocket::from_std(socket.into())
}

/// A socket that sends to a target and hears nobody else. A name is resolved within `deadline`; of its addresses, the
/// first is taken to which there is a route.
pub async fn connect(
    target: &HostPort,
    interface: Option<&Interface>,
    deadline: Duration,
) -> io::Result<UdpSocket> {
    if let Ok(ip) = target.host.parse::<IpAddr>() {
        return connect_address(SocketAddr::new(ip, target.port), interface);
    }
    let lookup = tokio::net::lookup_host((target.host.as_str(), target.port));
    let addresses: Vec<_> = within(deadline, lookup).await?.collect();
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in interleaved(addresses) {
        match connect_address(address, interface) {
            Ok(socket) => return Ok(socket),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn connect_address(address: SocketAddr, interface: Option<&Interface>) -> io::Result<UdpSocket> {
    let socket = new_socket(address)?;
    match interface {
        None => {}
        Some(Interface::Device(name)) => bind_device(&socket, name)?,
        Some(Interface::Address(ip)) => socket.bind(&SocketAddr::new(*ip, 0).into())?,
    }
    socket.connect(&address.into())?;
    enlarge(&socket, SESSION_BUFFER);
    UdpSocket::from_std(socket.into())
}

fn new_socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(target_os = "linux")]
fn bind_device(socket: &Socket, name: &str) -> io::Result<()> {
    socket.bind_device(Some(name.as_bytes()))
}

#[cfg(not(target_os = "linux"))]
fn bind_device(_: &Socket, name: &str) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, format!("binding to the interface {name}")))
}

/// Asks for kernel buffers beyond the general limit if this process may, and for as much as there is otherwise.
fn enlarge(socket: &Socket, bytes: usize) {
    if beyond_the_limit(socket, bytes) {
        return;
    }
    let outcome = socket.set_recv_buffer_size(bytes).and_then(|()| socket.set_send_buffer_size(bytes));
    if let Err(error) = outcome {
        tracing::trace!(%error, "socket buffers refused");
    }
}

#[cfg(target_os = "linux")]
fn beyond_the_limit(socket: &Socket, bytes: usize) -> bool {
    use nix::sys::socket::{setsockopt, sockopt};
    setsockopt(socket, sockopt::RcvBufForce, &bytes).is_ok()
        && setsockopt(socket, sockopt::SndBufForce, &bytes).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn beyond_the_limit(_: &Socket, _: usize) -> bool {
    false
}

/// Makes a stream that carries datagrams fail when its peer has acknowledged nothing for this long, instead of the
/// quarter of an hour that TCP tries: what waits in it is of no use any more by then. When nothing waits, it is asked for
/// now and then. A multiplexed one has keepalives of its own, and shares its connection with others.
pub fn give_up_after(stream: &Stream, silence: Duration) {
    stream.keep_alive();
    let Some(stream) = stream.own_tcp() else { return };
    #[cfg(target_os = "linux")]
    if let Err(error) = SockRef::from(stream).set_tcp_user_timeout(Some(silence)) {
        tracing::trace!(%error, "user timeout refused");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (SockRef::from(stream), silence);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connected_socket_hears_its_target_and_nobody_else() {
        let target = listen_on("127.0.0.1:0".parse().unwrap()).unwrap();
        let other = listen_on("127.0.0.1:0".parse().unwrap()).unwrap();
        let to = target.local_addr().unwrap();
        let from = Interface::Address("127.0.0.9".parse().unwrap());
        let name = HostPort::new("localhost", to.port());
        let socket = connect(&name, Some(&from), Duration::from_secs(5)).await;
        // `localhost` may begin with ::1, to which 127.0.0.9 cannot send.
        let socket = socket.unwrap();
        let own = socket.local_addr().unwrap();
        assert_eq!(own.ip(), IpAddr::from([127, 0, 0, 9]));
        other.send_to(b"stranger", own).await.unwrap();
        target.send_to(b"target", own).await.unwrap();
        let mut buffer = [0; 16];
        assert_eq!(socket.recv(&mut buffer).await.unwrap(), 6);
    }

    #[tokio::test]
    async fn every_address_takes_both_families_and_a_taken_port_is_refused() {
        let every = listen_on("[::]:0".parse().unwrap()).unwrap();
        let port = every.local_addr().unwrap().port();
        let client = connect(&HostPort::new("127.0.0.1", port), None, Duration::from_secs(5)).await.unwrap();
        client.send(b"x").await.unwrap();
        assert_eq!(every.recv(&mut [0; 4]).await.unwrap(), 1);
        let again = listen_on(SocketAddr::from(([0, 0, 0, 0], port)));
        assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}
