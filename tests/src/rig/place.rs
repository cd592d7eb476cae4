//! Where a program runs and a connection starts: a host of a lab, or this machine's loopback.

use crate::netlab::Host;
use std::ffi::OsStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;
use tokio::net::{TcpListener, TcpStream};

/// A place to run something.
#[derive(Clone, Debug)]
pub enum Place {
    /// This machine, on 127.0.0.1.
    Loopback,
    /// A host of a lab.
    Host(Host),
}

impl From<Host> for Place {
    fn from(host: Host) -> Self {
        Self::Host(host)
    }
}

impl From<&Host> for Place {
    fn from(host: &Host) -> Self {
        Self::Host(host.clone())
    }
}

impl Place {
    /// The address others reach it at.
    #[must_use]
    pub fn ip(&self) -> IpAddr {
        match self {
            Self::Loopback => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Self::Host(host) => IpAddr::V4(host.ip()),
        }
    }

    /// That address with a port.
    #[must_use]
    pub fn addr(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.ip(), port)
    }

    /// A command that runs there.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        match self {
            Self::Loopback => Command::new(program),
            Self::Host(host) => host.command(program),
        }
    }

    /// A listener there; port 0 lets the kernel choose.
    ///
    /// # Errors
    /// The kernel's.
    pub fn listen(&self, port: u16) -> io::Result<TcpListener> {
        let listener = match self {
            Self::Loopback => {
                let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
                listener.set_nonblocking(true)?;
                listener
            }
            Self::Host(host) => host.tcp_listener(port)?,
        };
        TcpListener::from_std(listener)
    }

    /// A connection from there. The caller sets a limit.
    ///
    /// # Errors
    /// The kernel's.
    pub async fn connect(&self, address: SocketAddr) -> io::Result<TcpStream> {
        match self {
            Self::Loopback => TcpStream::connect(address).await,
            Self::Host(host) => host.connect(address).await,
        }
    }
}
