//! One host of the lab: a namespace with one address, and ways to run things in it.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpSocket;
use tokio::sync::oneshot;
use tun_rs::SyncDevice;

use super::error::LabError;
use super::namespace::{self, Namespace};

/// Sockets that may be asked for at the same time before the askers wait; making one takes microseconds.
const JOBS: usize = 256;
/// Connections that wait to be accepted; the kernel's own limit (`net.core.somaxconn`) may be lower.
const BACKLOG: i32 = 4096;

enum Job {
    Run(Box<dyn FnOnce() + Send>),
    Stop,
}

/// A host of a [`super::Lab`]. Clones are the same host. Once the lab is dropped, everything here is an error.
///
/// A socket belongs to the namespace it was made in for as long as it lives; so sockets are made by one thread that
/// stays in the namespace, and used from anywhere, by tokio too.
#[derive(Clone)]
pub struct Host {
    name: Arc<str>,
    ip: Ipv4Addr,
    namespace: Arc<str>,
    jobs: SyncSender<Job>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Host({} {} {})", self.name, self.ip, self.namespace)
    }
}

impl AsRef<str> for Host {
    fn as_ref(&self) -> &str {
        &self.name
    }
}

impl Host {
    /// Starts the thread that stays in the namespace; returns its TUN device.
    pub(crate) fn start(
        name: &str,
        ip: Ipv4Addr,
        namespace: &Namespace,
    ) -> Result<(Self, SyncDevice, JoinHandle<()>), LabError> {
        let (jobs, waiting) = sync_channel(JOBS);
        let (made, device) = sync_channel(1);
        let inside = namespace.name().to_owned();
        let thread = thread::Builder::new()
            .name(format!("host {name}"))
            .spawn(move || {
                let device = Namespace::enter(&inside).and_then(|()| namespace::create_tun());
                let failed = device.is_err();
                if made.send(device).is_ok() && !failed {
                    work(&waiting);
                }
            })
            .map_err(LabError::io("starting a host's thread"))?;
        let device = device.recv().map_err(|_| LabError::Stopped)?;
        let device = device.map_err(LabError::io("making a TUN device"))?;
        let host = Self { name: name.into(), ip, namespace: namespace.name().into(), jobs };
        Ok((host, device, thread))
    }

    /// Ends the thread after the jobs before.
    pub(crate) fn stop(&self) {
        // Already stopped is stopped.
        let _ = self.jobs.send(Job::Stop);
    }

    /// The name it was made with.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its one address besides loopback.
    #[must_use]
    pub fn ip(&self) -> Ipv4Addr {
        self.ip
    }

    /// Its address with a port.
    #[must_use]
    pub fn addr(&self, port: u16) -> SocketAddr {
        SocketAddr::new(IpAddr::V4(self.ip), port)
    }

    /// The name of its namespace, as `ip netns` shows it.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A command that runs `program` on this host; the caller adds arguments, and ends the process before the lab is
    /// dropped. The process id is the program's. Other hosts have the names `NAME` and `NAME.lab` where the lab may
    /// write to /etc.
    #[must_use]
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = namespace::ip();
        command.args(["netns", "exec", &self.namespace]).arg(program);
        command
    }

    /// Runs a closure on a new thread on this host and waits for it. Threads it starts, a runtime's too, are on this
    /// host as well. For single sockets the functions below are faster.
    ///
    /// # Errors
    /// When the namespace is gone.
    ///
    /// # Panics
    /// When the closure does, with its message.
    pub fn run<R: Send>(&self, closure: impl FnOnce() -> R + Send) -> Result<R, LabError> {
        let namespace = &self.namespace;
        let result = thread::scope(|scope| {
            let thread = scope.spawn(move || Namespace::enter(namespace).map(|()| closure()));
            thread.join()
        });
        match result {
            Ok(result) => result.map_err(LabError::io("entering a namespace")),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// A listener on all addresses of this host; port 0 lets the kernel choose. Non-blocking, for
    /// `tokio::net::TcpListener::from_std`.
    ///
    /// # Errors
    /// The kernel's; `NotConnected` when the lab is gone.
    pub fn tcp_listener(&self, port: u16) -> io::Result<TcpListener> {
        let socket = self.socket(Type::STREAM, Protocol::TCP)?;
        socket.set_reuse_address(true)?;
        socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into())?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    }

    /// Connects within `timeout`, and blocks meanwhile. The stream is blocking.
    ///
    /// # Errors
    /// The kernel's; `TimedOut`; `NotConnected` when the lab is gone.
    pub fn tcp_connect(&self, address: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
        let socket = self.socket(Type::STREAM, Protocol::TCP)?;
        socket.set_nonblocking(false)?;
        socket.connect_timeout(&address.into(), timeout)?;
        Ok(socket.into())
    }

    /// Connects from this host, in the caller's runtime. Waits as long as the kernel tries (about two minutes); the
    /// caller sets a limit.
    ///
    /// # Errors
    /// The kernel's; `NotConnected` when the lab is gone.
    pub async fn connect(&self, address: SocketAddr) -> io::Result<tokio::net::TcpStream> {
        self.tcp_socket().await?.connect(address).await
    }

    /// A socket of this host that is not connected yet, to set options or to time the connect alone.
    ///
    /// # Errors
    /// The kernel's; `NotConnected` when the lab is gone.
    pub async fn tcp_socket(&self) -> io::Result<TcpSocket> {
        let (reply, socket) = oneshot::channel();
        self.submit(move || {
            // Nobody may be waiting any more.
            let _ = reply.send(new_socket(Type::STREAM, Protocol::TCP));
        })?;
        let socket = socket.await.map_err(|_| gone())??;
        Ok(TcpSocket::from_std_stream(socket.into()))
    }

    /// A UDP socket on all addresses of this host; port 0 lets the kernel choose. Non-blocking, for
    /// `tokio::net::UdpSocket::from_std`.
    ///
    /// # Errors
    /// The kernel's; `NotConnected` when the lab is gone.
    pub fn udp_socket(&self, port: u16) -> io::Result<UdpSocket> {
        let socket = self.socket(Type::DGRAM, Protocol::UDP)?;
        socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into())?;
        Ok(socket.into())
    }

    fn socket(&self, kind: Type, protocol: Protocol) -> io::Result<Socket> {
        let (reply, socket) = sync_channel(1);
        self.submit(move || {
            let _ = reply.send(new_socket(kind, protocol));
        })?;
        socket.recv().map_err(|_| gone())?
    }

    fn submit(&self, job: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.jobs.send(Job::Run(Box::new(job))).map_err(|_| gone())
    }
}

fn work(jobs: &Receiver<Job>) {
    while let Ok(Job::Run(job)) = jobs.recv() {
        job();
    }
}

fn new_socket(kind: Type, protocol: Protocol) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, kind, Some(protocol))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the lab has stopped")
}
