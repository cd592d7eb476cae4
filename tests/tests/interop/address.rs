//! Addresses that nobody else binds between the moment they are chosen and the moment a peer listens on them.
//!
//! Peers want to be told where to listen. A port that was free a moment ago on 127.0.0.1 may since have become the
//! near end of somebody's connection; so these are on an address of 127/8 that only this process uses.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::{Mutex, PoisonError};

static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// The address of this process: three of its bytes are from the process id, which is below 2^22.
fn own_ip() -> IpAddr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    // 64 to 127 in the second place keeps away from 127.0.x.x, which others in this project use.
    Ipv4Addr::new(127, 64 | high & 0x3f, middle, low.max(1)).into()
}

/// An address on which nobody listens, neither with TCP nor with UDP, given out once.
pub(crate) fn fresh() -> SocketAddr {
    loop {
        let tcp = TcpListener::bind((own_ip(), 0)).unwrap();
        let addr = tcp.local_addr().unwrap();
        let unused = UdpSocket::bind(addr).is_ok();
        if unused && GIVEN.lock().unwrap_or_else(PoisonError::into_inner).insert(addr.port()) {
            return addr;
        }
    }
}

/// From where exit number `n` dials, so that a target knows it: `interface` of its service.
pub(crate) fn exit_ip(n: u8) -> IpAddr {
    Ipv4Addr::new(127, 0, 2, n).into()
}
