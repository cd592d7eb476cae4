//! SOCKS5 on the wire. Pure; every reader takes what has arrived and says how many bytes more it needs, never looking
//! beyond the end of its message.
//!
//! ```text
//! greeting : VER(1)=05 N(1) METHOD(N)              choice: VER(1)=05 METHOD(1)
//! login    : VER(1)=01 ULEN(1) USER PLEN(1) PASS   verdict: VER(1)=01 STATUS(1)
//! request  : VER(1)=05 CMD(1) RSV(1) ADDRESS       reply: VER(1)=05 REP(1) RSV(1) ADDRESS
//! datagram : RSV(2) FRAG(1) ADDRESS PAYLOAD
//! address  : ATYP(1) HOST PORT(2), big endian; a name has a length byte
//! ```

use shared::address::HostPort;
use shared::gost::Auth;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// SOCKS version 5.
pub const VERSION: u8 = 5;
/// Method: no credentials.
pub const NO_AUTH: u8 = 0x00;
/// Method: user name and password.
pub const PASSWORD: u8 = 0x02;
/// Choice: none of the methods offered.
pub const NO_METHOD: u8 = 0xff;
/// Version of the exchange of user name and password.
pub const LOGIN_VERSION: u8 = 1;

/// GOST's command for datagrams on the connection itself.
const COMMAND_TUNNEL: u8 = 0xf3;

const ATYP_V4: u8 = 0x01;
const ATYP_DOMAIN: u8 = 0x03;
const ATYP_V6: u8 = 0x04;

/// Why bytes are no SOCKS5 message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Not a SOCKS5 peer.
    #[error("bad version {0}")]
    Version(u8),
    /// An address of a kind that does not exist.
    #[error("bad address type {0}")]
    AddressType(u8),
    /// A host that is neither a name nor an address.
    #[error("bad host name")]
    HostName,
}

/// What a reader makes of the bytes that have arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed<T> {
    /// At least so many bytes are missing, at least one; the message has all of them.
    Needs(usize),
    /// The message, which ends with the bytes.
    Done(T),
}

/// Commands of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Connect to the target.
    Connect,
    /// Wait for a connection from the target.
    Bind,
    /// Carry datagrams.
    Associate,
    /// GOST's own: carry datagrams on this connection.
    Tunnel,
    /// Something from the future.
    Other(u8),
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What to do.
    pub command: Command,
    /// With what. `None` if the host is empty or the port 0, which only some commands allow.
    pub target: Option<HostPort>,
}

/// What a server says to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The target is connected.
    Succeeded,
    /// The server failed, or has no way.
    GeneralFailure,
    /// Rules forbid the target.
    NotAllowed,
    /// The target's network cannot be reached.
    NetworkUnreachable,
    /// The target cannot be reached.
    HostUnreachable,
    /// The target refused.
    ConnectionRefused,
    /// The target did not answer in time.
    TtlExpired,
    /// A command that the server does not do.
    CommandNotSupported,
    /// An address of a kind that the server does not know.
    AddressTypeNotSupported,
    /// A code without meaning.
    Other(u8),
}

impl Reply {
    /// The code on the wire.
    pub fn code(self) -> u8 {
        match self {
            Reply::Succeeded => 0,
            Reply::GeneralFailure => 1,
            Reply::NotAllowed => 2,
            Reply::NetworkUnreachable => 3,
            Reply::HostUnreachable => 4,
            Reply::ConnectionRefused => 5,
            Reply::TtlExpired => 6,
            Reply::CommandNotSupported => 7,
            Reply::AddressTypeNotSupported => 8,
            Reply::Other(code) => code,
        }
    }

    /// The reply with this code.
    pub fn from_code(code: u8) -> Self {
        match code {
            0 => Reply::Succeeded,
            1 => Reply::GeneralFailure,
            2 => Reply::NotAllowed,
            3 => Reply::NetworkUnreachable,
            4 => Reply::HostUnreachable,
            5 => Reply::ConnectionRefused,
            6 => Reply::TtlExpired,
            7 => Reply::CommandNotSupported,
            8 => Reply::AddressTypeNotSupported,
            other => Reply::Other(other),
        }
    }
}

impl std::fmt::Display for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Reply::Succeeded => "succeeded",
            Reply::GeneralFailure => "general failure",
            Reply::NotAllowed => "not allowed by the rules",
            Reply::NetworkUnreachable => "network unreachable",
            Reply::HostUnreachable => "host unreachable",
            Reply::ConnectionRefused => "connection refused",
            Reply::TtlExpired => "TTL expired",
            Reply::CommandNotSupported => "command not supported",
            Reply::AddressTypeNotSupported => "address type not supported",
            Reply::Other(code) => return write!(f, "reply {code}"),
        })
    }
}

/// Reads a client's greeting: the methods it offers.
pub fn greeting(bytes: &[u8]) -> Result<Parsed<Vec<u8>>, WireError> {
    let mut rest = Bytes(bytes);
    let read = |rest: &mut Bytes<'_>| -> Result<usize, Missing> {
        rest.version(VERSION)?;
        Ok(usize::from(rest.byte()?))
    };
    match read(&mut rest).and_then(|count| rest.take(count)) {
        Ok(methods) => Ok(Parsed::Done(methods.to_vec())),
        Err(missing) => missing.into(),
    }
}

/// Reads a client's user name and password. What is not text becomes text that no credentials have.
pub fn login(bytes: &[u8]) -> Result<Parsed<Auth>, WireError> {
    let mut rest = Bytes(bytes);
    let read = |rest: &mut Bytes<'_>| -> Result<Auth, Missing> {
        rest.version(LOGIN_VERSION)?;
        let username = String::from_utf8_lossy(rest.short()?).into_owned();
        let password = String::from_utf8_lossy(rest.short()?).into_owned();
        Ok(Auth { username, password })
    };
    match read(&mut rest) {
        Ok(auth) => Ok(Parsed::Done(auth)),
        Err(missing) => missing.into(),
    }
}

/// Reads a client's request.
pub fn request(bytes: &[u8]) -> Result<Parsed<Request>, WireError> {
    let mut rest = Bytes(bytes);
    match rest.message() {
        Ok((command, target)) => {
            let command = match command {
                1 => Command::Connect,
                2 => Command::Bind,
                3 => Command::Associate,
                COMMAND_TUNNEL => Command::Tunnel,
                other => Command::Other(other),
            };
            Ok(Parsed::Done(Request { command, target }))
        }
        Err(missing) => missing.into(),
    }
}

/// Reads a server's reply, with the address that it dials from, if it says so.
pub fn reply(bytes: &[u8]) -> Result<Parsed<(Reply, Option<HostPort>)>, WireError> {
    let mut rest = Bytes(bytes);
    match rest.message() {
        Ok((code, bound)) => Ok(Parsed::Done((Reply::from_code(code), bound))),
        Err(missing) => missing.into(),
    }
}

/// Reads a client's datagram: where it shall go, and the payload. `None` for what is none, and for fragments, which need
/// not be taken (RFC 1928, section 7).
pub fn datagram(bytes: &[u8]) -> Option<(HostPort, &[u8])> {
    let mut rest = Bytes(bytes.strip_prefix(&[0, 0, 0])?);
    let target = rest.address().ok()??;
    Some((target, rest.0))
}

/// Encodes what stands before the payload of a datagram that comes from `target`.
pub fn encode_datagram_header(target: &HostPort) -> Vec<u8> {
    let mut out = vec![0, 0, 0];
    push_address(&mut out, &target.host, target.port);
    out
}

/// Encodes a greeting: user name and password are offered by who has them.
pub fn encode_greeting(auth: Option<&Auth>) -> Vec<u8> {
    match auth {
        None => vec![VERSION, 1, NO_AUTH],
        Some(_) => vec![VERSION, 2, NO_AUTH, PASSWORD],
    }
}

/// Encodes user name and password; configurations refuse what is longer than 255 bytes, and it is cut here.
pub fn encode_login(auth: &Auth) -> Vec<u8> {
    let mut out = vec![LOGIN_VERSION];
    push_short(&mut out, auth.username.as_bytes());
    push_short(&mut out, auth.password.as_bytes());
    out
}

/// Encodes a request for a connection to `target`.
pub fn encode_connect(target: &HostPort) -> Vec<u8> {
    let mut out = vec![VERSION, 1, 0];
    push_address(&mut out, &target.host, target.port);
    out
}

/// Encodes a request to carry datagrams on the connection. Each will say where it shall go, so no target is named; a port
/// would be one to listen on.
pub fn encode_tunnel() -> Vec<u8> {
    let mut out = vec![VERSION, COMMAND_TUNNEL, 0];
    push_address(&mut out, "0.0.0.0", 0);
    out
}

/// Encodes a reply with the empty address, as GOST sends it: where the server dials from is nobody's business.
pub fn encode_reply(reply: Reply) -> Vec<u8> {
    let mut out = vec![VERSION, reply.code(), 0];
    push_address(&mut out, "0.0.0.0", 0);
    out
}

/// Encodes the reply to who wants to send datagrams: here.
pub fn encode_reply_with(bound: SocketAddr) -> Vec<u8> {
    let mut out = vec![VERSION, Reply::Succeeded.code(), 0];
    push_address(&mut out, &bound.ip().to_string(), bound.port());
    out
}

fn push_short(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = bytes.len().min(255);
    out.push(len as u8);
    out.extend(&bytes[..len]);
}

fn push_address(out: &mut Vec<u8>, host: &str, port: u16) {
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => {
            out.push(ATYP_V4);
            out.extend(ip.octets());
        }
        Ok(IpAddr::V6(ip)) => {
            out.push(ATYP_V6);
            out.extend(ip.octets());
        }
        Err(_) => {
            out.push(ATYP_DOMAIN);
            push_short(out, host.as_bytes());
        }
    }
    out.extend(port.to_be_bytes());
}

/// Why there is no message yet, or never.
enum Missing {
    Bytes(usize),
    Wrong(WireError),
}

impl From<WireError> for Missing {
    fn from(error: WireError) -> Self {
        Missing::Wrong(error)
    }
}

impl<T> From<Missing> for Result<Parsed<T>, WireError> {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::Bytes(count) => Ok(Parsed::Needs(count)),
            Missing::Wrong(error) => Err(error),
        }
    }
}

/// A reader that knows how much is missing.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Missing> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or_else(|| Missing::Bytes(len - self.0.len()))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Missing> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| Missing::Bytes(N))
    }

    fn byte(&mut self) -> Result<u8, Missing> {
        self.array().map(u8::from_be_bytes)
    }

    fn version(&mut self, expected: u8) -> Result<(), Missing> {
        match self.byte()? {
            version if version == expected => Ok(()),
            other => Err(WireError::Version(other).into()),
        }
    }

    fn short(&mut self) -> Result<&'a [u8], Missing> {
        let len = self.byte()?;
        self.take(usize::from(len))
    }

    /// What requests and replies have in common.
    fn message(&mut self) -> Result<(u8, Option<HostPort>), Missing> {
        self.version(VERSION)?;
        let code = self.byte()?;
        // Reserved; GOST and others ignore what is there.
        self.byte()?;
        Ok((code, self.address()?))
    }

    /// `None` if it is empty or without a port.
    fn address(&mut self) -> Result<Option<HostPort>, Missing> {
        let host = match self.byte()? {
            ATYP_V4 => IpAddr::from(Ipv4Addr::from(self.array::<4>()?)).to_string(),
            ATYP_V6 => IpAddr::from(Ipv6Addr::from(self.array::<16>()?)).to_string(),
            ATYP_DOMAIN => {
                let name = self.short()?;
                std::str::from_utf8(name).map_err(|_| WireError::HostName)?.to_owned()
            }
            other => return Err(WireError::AddressType(other).into()),
        };
        let port = u16::from_be_bytes(self.array()?);
        if !host.is_empty() {
            // A host that is an address or a name cannot smuggle anything into logs or a resolver.
            shared::address::validate_host(&host).map_err(|_| WireError::HostName)?;
        }
        Ok((!host.is_empty() && port != 0).then_some(HostPort { host, port }))
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
