//! GOST's relay protocol on the wire: requests, responses and their features. Pure, all numbers big endian.
//!
//! ```text
//! request : VER(1)=01  CMD(1)     FEALEN(2)  FEATURES      feature: TYPE(1) LEN(2) DATA
//! response: VER(1)=01  STATUS(1)  FEALEN(2)  FEATURES
//! ```

use shared::address::HostPort;
use shared::gost::Auth;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes before the features, in both directions.
pub const HEADER_LEN: usize = 4;
/// Version 1 is the only one there is.
pub const VERSION: u8 = 1;

const CONNECT: u8 = 0x01;
const BIND: u8 = 0x02;
/// The low bits are the command; 0x80 is an old way to say UDP.
const COMMAND_MASK: u8 = 0x0f;
const UDP_FLAG: u8 = 0x80;

const FEATURE_AUTH: u8 = 0x01;
const FEATURE_ADDRESS: u8 = 0x02;
const FEATURE_NETWORK: u8 = 0x04;
const NETWORK_UDP: u16 = 1;

const ATYP_V4: u8 = 0x01;
const ATYP_DOMAIN: u8 = 0x03;
const ATYP_V6: u8 = 0x04;

/// What a relay server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The target is connected.
    Ok,
    /// The request cannot be served: no target, or a command this server does not do.
    BadRequest,
    /// Wrong or no credentials.
    Unauthorized,
    /// The server's rules forbid the target.
    Forbidden,
    /// The target did not answer in time.
    Timeout,
    /// The server has no way towards the target.
    ServiceUnavailable,
    /// The target cannot be reached.
    HostUnreachable,
    /// The target's network cannot be reached.
    NetworkUnreachable,
    /// The server failed.
    InternalError,
    /// A code this version does not know.
    Other(u8),
}

impl Status {
    /// The code on the wire.
    pub fn code(self) -> u8 {
        match self {
            Status::Ok => 0,
            Status::BadRequest => 1,
            Status::Unauthorized => 2,
            Status::Forbidden => 3,
            Status::Timeout => 4,
            Status::ServiceUnavailable => 5,
            Status::HostUnreachable => 6,
            Status::NetworkUnreachable => 7,
            Status::InternalError => 8,
            Status::Other(code) => code,
        }
    }

    /// The status with this code.
    pub fn from_code(code: u8) -> Self {
        match code {
            0 => Status::Ok,
            1 => Status::BadRequest,
            2 => Status::Unauthorized,
            3 => Status::Forbidden,
            4 => Status::Timeout,
            5 => Status::ServiceUnavailable,
            6 => Status::HostUnreachable,
            7 => Status::NetworkUnreachable,
            8 => Status::InternalError,
            other => Status::Other(other),
        }
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Status::Ok => "ok",
            Status::BadRequest => "bad request",
            Status::Unauthorized => "unauthorized",
            Status::Forbidden => "forbidden",
            Status::Timeout => "target timed out",
            Status::ServiceUnavailable => "service unavailable",
            Status::HostUnreachable => "host unreachable",
            Status::NetworkUnreachable => "network unreachable",
            Status::InternalError => "internal error",
            Status::Other(code) => return write!(f, "status {code}"),
        })
    }
}

/// What a client asks a relay server for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Command without flags.
    pub command: Command,
    /// UDP instead of TCP.
    pub udp: bool,
    /// Credentials, as sent.
    pub auth: Option<Auth>,
    /// The target; `None` leaves it to the server's forwarder.
    pub target: Option<HostPort>,
}

/// Commands of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Command {
    /// Connect to the target.
    #[default]
    Connect,
    /// Listen for the client.
    Bind,
    /// Anything else.
    Other(u8),
}

/// Why bytes are no relay message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Not a relay peer, or one from the future.
    #[error("bad version {0}")]
    Version(u8),
    /// A feature says it is longer than the message, or a field longer than its feature.
    #[error("truncated feature")]
    Truncated,
    /// An address feature of a kind that does not exist.
    #[error("bad address type {0}")]
    AddressType(u8),
    /// A host name that is not text.
    #[error("bad host name")]
    HostName,
}

/// Encodes a TCP connect request. `None` as target sends the empty address, as GOST does.
///
/// Panics never: host and credentials longer than 255 bytes are cut, and configurations that have them are refused.
pub fn connect_request(target: Option<&HostPort>, auth: Option<&Auth>) -> Vec<u8> {
    encode(CONNECT, target, auth)
}

/// Encodes a request for a way for datagrams, each of which then is a frame: LEN(2) and payload, in both directions.
/// Says UDP twice, in the command and as a feature, as GOST does.
pub fn datagram_request(target: Option<&HostPort>, auth: Option<&Auth>) -> Vec<u8> {
    encode(CONNECT | UDP_FLAG, target, auth)
}

fn encode(command: u8, target: Option<&HostPort>, auth: Option<&Auth>) -> Vec<u8> {
    let mut features = Vec::with_capacity(64);
    if command & UDP_FLAG != 0 {
        push_feature(&mut features, FEATURE_NETWORK, &NETWORK_UDP.to_be_bytes());
    }
    if let Some(auth) = auth {
        let mut data = Vec::new();
        push_short(&mut data, auth.username.as_bytes());
        push_short(&mut data, auth.password.as_bytes());
        push_feature(&mut features, FEATURE_AUTH, &data);
    }
    let mut data = Vec::new();
    push_address(&mut data, target.unwrap_or(&HostPort { host: String::new(), port: 0 }));
    push_feature(&mut features, FEATURE_ADDRESS, &data);

    let mut request = vec![VERSION, command];
    request.extend(u16::try_from(features.len()).unwrap_or(u16::MAX).to_be_bytes());
    request.extend(features);
    request
}

fn push_short(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = bytes.len().min(255);
    out.push(len as u8);
    out.extend(&bytes[..len]);
}

fn push_feature(out: &mut Vec<u8>, kind: u8, data: &[u8]) {
    out.push(kind);
    out.extend((data.len() as u16).to_be_bytes());
    out.extend(data);
}

/// Encodes a response without features.
pub fn response(status: Status) -> [u8; HEADER_LEN] {
    [VERSION, status.code(), 0, 0]
}

/// Encodes the answer that all is well, with an address.
pub fn response_with_address(address: &HostPort) -> Vec<u8> {
    let mut data = Vec::new();
    push_address(&mut data, address);
    let mut features = Vec::new();
    push_feature(&mut features, FEATURE_ADDRESS, &data);
    let mut response = vec![VERSION, Status::Ok.code()];
    response.extend((features.len() as u16).to_be_bytes());
    response.extend(features);
    response
}

/// Appends an address as SOCKS5 and relays write it: kind, address, port.
pub(super) fn push_address(out: &mut Vec<u8>, HostPort { host, port }: &HostPort) {
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

/// Reads a header: the command or status byte, and the length of the features that follow.
pub fn header(bytes: [u8; HEADER_LEN]) -> Result<(u8, usize), WireError> {
    let [version, code, high, low] = bytes;
    if version != VERSION {
        return Err(WireError::Version(version));
    }
    Ok((code, usize::from(u16::from_be_bytes([high, low]))))
}

/// Reads a request from its command byte and its features. Unknown features are skipped.
pub fn request(command: u8, features: &[u8]) -> Result<Request, WireError> {
    let mut request = Request {
        // GOST's server takes 0 for connect too.
        command: match command & COMMAND_MASK {
            0 | CONNECT => Command::Connect,
            BIND => Command::Bind,
            other => Command::Other(other),
        },
        udp: command & UDP_FLAG != 0,
        ..Request::default()
    };
    let mut rest = Bytes(features);
    while !rest.0.is_empty() {
        let kind = rest.byte()?;
        let len = rest.number()?;
        let mut data = Bytes(rest.take(usize::from(len))?);
        match kind {
            FEATURE_AUTH => {
                let username = String::from_utf8_lossy(data.short()?).into_owned();
                let password = String::from_utf8_lossy(data.short()?).into_owned();
                request.auth = Some(Auth { username, password });
            }
            FEATURE_ADDRESS => request.target = data.address()?,
            FEATURE_NETWORK => request.udp |= data.number()? == NETWORK_UDP,
            _ => {}
        }
    }
    Ok(request)
}

/// A reader that knows its end.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(WireError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        self.take(N)?.try_into().map_err(|_| WireError::Truncated)
    }

    pub(super) fn byte(&mut self) -> Result<u8, WireError> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn number(&mut self) -> Result<u16, WireError> {
        self.array().map(u16::from_be_bytes)
    }

    fn short(&mut self) -> Result<&'a [u8], WireError> {
        let len = self.byte()?;
        self.take(usize::from(len))
    }

    /// `None` for the empty address, with which a client leaves the target to the server.
    pub(super) fn address(&mut self) -> Result<Option<HostPort>, WireError> {
        let host = match self.byte()? {
            ATYP_V4 => IpAddr::from(Ipv4Addr::from(self.array::<4>()?)).to_string(),
            ATYP_V6 => IpAddr::from(Ipv6Addr::from(self.array::<16>()?)).to_string(),
            ATYP_DOMAIN => std::str::from_utf8(self.short()?).map_err(|_| WireError::HostName)?.to_owned(),
            other => return Err(WireError::AddressType(other)),
        };
        let port = self.number()?;
        if host.is_empty() {
            return Ok(None);
        }
        // A host that is an address or a name cannot smuggle anything into logs or a resolver.
        shared::address::validate_host(&host).map_err(|_| WireError::HostName)?;
        Ok(Some(HostPort { host, port }))
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
