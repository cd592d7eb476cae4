//! A socket on which the datagrams of many clients come in, and through which their answers leave.
//!
//! One that listens on every address of the machine learns for each datagram which of them was asked, since clients
//! take an answer from another one for a stranger's.

use super::pump::Deliver;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::net::UdpSocket;

/// A socket for clients.
#[derive(Debug)]
pub struct DatagramListener {
    socket: UdpSocket,
    /// Which of the machine's addresses was asked has to be looked at.
    on_every_address: bool,
}

/// Somebody who sent a datagram, and the local address it was sent to, as far as that matters for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DatagramClient {
    /// Address and port.
    pub addr: SocketAddr,
    asked: Option<IpAddr>,
}

impl DatagramListener {
    /// Opens a listener at exactly this address.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = super::socket::listen_on(address)?;
        let on_every_address = address.ip().is_unspecified() && asked::learn(&socket, address);
        Ok(Self { socket, on_every_address })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Waits for a datagram.
    pub async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await
    }

    /// Receives a datagram that is there; longer ones than the buffer are cut.
    pub fn try_receive(&self, buffer: &mut [u8]) -> io::Result<(usize, DatagramClient)> {
        if self.on_every_address {
            return asked::try_receive(&self.socket, buffer);
        }
        let (len, addr) = self.socket.try_recv_from(buffer)?;
        Ok((len, DatagramClient { addr, asked: None }))
    }

    /// Where a client's datagram was sent to, as far as that is known.
    pub fn destination(&self, client: DatagramClient) -> io::Result<SocketAddr> {
        let local = self.local_addr()?;
        Ok(SocketAddr::new(client.asked.unwrap_or(local.ip()), local.port()))
    }

    /// What hands answers to a client.
    pub fn answers(self: &Arc<Self>, client: DatagramClient) -> ToClient {
        // Sending from a certain address costs an allocation per datagram, so only where it makes a difference.
        let from = client.asked.filter(|asked| !asked::is_usual(*asked, client.addr));
        ToClient { listener: self.clone(), client: client.addr, from }
    }
}

/// A client of a listener.
#[derive(Clone, Debug)]
pub struct ToClient {
    listener: Arc<DatagramListener>,
    client: SocketAddr,
    from: Option<IpAddr>,
}

impl Deliver for ToClient {
    fn try_deliver(&self, datagram: &[u8]) -> io::Result<()> {
        let socket = &self.listener.socket;
        match self.from {
            Some(from) => asked::try_send(socket, datagram, self.client, from),
            None => socket.try_send_to(datagram, self.client).map(|_| ()),
        }
    }

    fn room(&self) -> impl Future<Output = io::Result<()>> + Send {
        self.listener.socket.writable()
    }
}

#[cfg(target_os = "linux")]
mod asked {
    use super::DatagramClient;
    use nix::libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo};
    use nix::sys::socket::{
        ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, cmsg_space, recvmsg, sendmsg,
        setsockopt, sockopt,
    };
    use std::io::{self, IoSlice, IoSliceMut};
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
    use std::os::fd::AsRawFd as _;
    use tokio::io::Interest;
    use tokio::net::UdpSocket;

    const SPACE: usize = cmsg_space::<in6_pktinfo>() + cmsg_space::<in_pktinfo>();

    /// Asks the kernel to say to which address each datagram was sent.
    pub(super) fn learn(socket: &UdpSocket, address: SocketAddr) -> bool {
        let outcome = if address.is_ipv4() {
            setsockopt(socket, sockopt::Ipv4PacketInfo, &true)
        } else {
            setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &true)
        };
        outcome.inspect_err(|error| tracing::debug!(%error, "answers leave from the usual address")).is_ok()
    }

    pub(super) fn try_receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(usize, DatagramClient)> {
        socket.try_io(Interest::READABLE, || {
            let mut space = [0; SPACE];
            let mut parts = [IoSliceMut::new(buffer)];
            let message = recvmsg::<SockaddrStorage>(
                socket.as_raw_fd(),
                &mut parts,
                Some(&mut space),
                MsgFlags::empty(),
            )?;
            let asked = message.cmsgs()?.find_map(|control| match control {
                ControlMessageOwned::Ipv4PacketInfo(info) => {
                    Some(IpAddr::from(Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes())))
                }
                ControlMessageOwned::Ipv6PacketInfo(info) => {
                    Some(IpAddr::from(Ipv6Addr::from(info.ipi6_addr.s6_addr)))
                }
                _ => None,
            });
            let addr = message.address.and_then(address);
            let addr = addr.ok_or_else(|| io::Error::other("a datagram from nowhere"))?;
            Ok((message.bytes, DatagramClient { addr, asked }))
        })
    }

    fn address(storage: SockaddrStorage) -> Option<SocketAddr> {
        let v4 = storage.as_sockaddr_in().map(|v4| SocketAddr::V4((*v4).into()));
        v4.or_else(|| storage.as_sockaddr_in6().map(|v6| SocketAddr::V6((*v6).into())))
    }

    pub(super) fn try_send(
        socket: &UdpSocket,
        datagram: &[u8],
        client: SocketAddr,
        from: IpAddr,
    ) -> io::Result<()> {
        // The interface is left to the kernel.
        let (v4, v6);
        let control = match from {
            IpAddr::V4(ip) => {
                let ipi_spec_dst = in_addr { s_addr: u32::from_ne_bytes(ip.octets()) };
                v4 = in_pktinfo { ipi_ifindex: 0, ipi_spec_dst, ipi_addr: in_addr { s_addr: 0 } };
                ControlMessage::Ipv4PacketInfo(&v4)
            }
            IpAddr::V6(ip) => {
                v6 = in6_pktinfo { ipi6_addr: in6_addr { s6_addr: ip.octets() }, ipi6_ifindex: 0 };
                ControlMessage::Ipv6PacketInfo(&v6)
            }
        };
        let to = SockaddrStorage::from(client);
        socket.try_io(Interest::WRITABLE, || {
            sendmsg(socket.as_raw_fd(), &[IoSlice::new(datagram)], &[control], MsgFlags::empty(), Some(&to))?;
            Ok(())
        })
    }

    /// Whether the kernel would send to the client from this address anyway, or cannot (what was sent to a group of
    /// machines is answered by one).
    pub(super) fn is_usual(asked: IpAddr, client: SocketAddr) -> bool {
        let asked = asked.to_canonical();
        let client = SocketAddr::new(client.ip().to_canonical(), client.port());
        let any: SocketAddr = if client.is_ipv4() {
            (Ipv4Addr::UNSPECIFIED, 0).into()
        } else {
            (Ipv6Addr::UNSPECIFIED, 0).into()
        };
        let usual = std::net::UdpSocket::bind(any)
            .and_then(|probe| probe.connect(client).and_then(|()| probe.local_addr()));
        // An address that this machine does not have cannot be sent from.
        usual.is_ok_and(|usual| usual.ip() == asked) || std::net::UdpSocket::bind((asked, 0)).is_err()
    }
}

#[cfg(not(target_os = "linux"))]
mod asked {
    use super::DatagramClient;
    use std::io;
    use std::net::{IpAddr, SocketAddr};
    use tokio::net::UdpSocket;

    pub(super) fn learn(_: &UdpSocket, _: SocketAddr) -> bool {
        false
    }

    pub(super) fn try_receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(usize, DatagramClient)> {
        let (len, addr) = socket.try_recv_from(buffer)?;
        Ok((len, DatagramClient { addr, asked: None }))
    }

    pub(super) fn try_send(
        socket: &UdpSocket,
        datagram: &[u8],
        client: SocketAddr,
        _: IpAddr,
    ) -> io::Result<()> {
        socket.try_send_to(datagram, client).map(|_| ())
    }

    pub(super) fn is_usual(_: IpAddr, _: SocketAddr) -> bool {
        true
    }
}
