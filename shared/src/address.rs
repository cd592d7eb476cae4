//! Addresses and port ranges as people type them.

use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// `host:port`; an IPv6 host is written in brackets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPort {
    /// Name or address, without brackets.
    pub host: String,
    /// 1 to 65535.
    pub port: u16,
}

/// Why a text is no [`HostPort`]. The code is stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// A scheme, a path or white space.
    #[error("write host:port only, without scheme, path or spaces")]
    NotHostPort,
    /// No or an empty host.
    #[error("the host is missing")]
    HostMissing,
    /// Neither a name nor an address.
    #[error("the host is neither a name nor an address")]
    HostInvalid,
    /// No port, or not 1 to 65535.
    #[error("the port must be a number from 1 to 65535")]
    PortInvalid,
}

impl AddressError {
    /// Stable code for [`crate::field::FieldError`].
    pub fn code(self) -> &'static str {
        match self {
            AddressError::NotHostPort => "address_malformed",
            AddressError::HostMissing => "host_missing",
            AddressError::HostInvalid => "host_invalid",
            AddressError::PortInvalid => "port_invalid",
        }
    }
}

impl HostPort {
    /// Parses `name:443`, `192.0.2.1:443` or `[2001:db8::1]:443`.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        if text.is_empty() {
            return Err(AddressError::HostMissing);
        }
        if text.contains("://") || text.contains('/') || text.contains(char::is_whitespace) {
            return Err(AddressError::NotHostPort);
        }
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or(AddressError::HostInvalid)?;
                let port = port.strip_prefix(':').ok_or(AddressError::PortInvalid)?;
                if host.parse::<std::net::Ipv6Addr>().is_err() {
                    return Err(AddressError::HostInvalid);
                }
                (host, port)
            }
            None => {
                let (host, port) = text.rsplit_once(':').ok_or(AddressError::PortInvalid)?;
                // Without brackets the last group of an IPv6 address and a port cannot be told apart.
                if host.contains(':') {
                    return Err(AddressError::HostInvalid);
                }
                validate_host(host)?;
                (host, port)
            }
        };
        if port.is_empty() || !port.bytes().all(|b| b.is_ascii_digit()) {
            return Err(AddressError::PortInvalid);
        }
        match port.parse::<u16>() {
            Ok(port) if port > 0 => Ok(Self { host: host.to_owned(), port }),
            _ => Err(AddressError::PortInvalid),
        }
    }

    /// From parts; the host may be an IPv6 address without brackets.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }
}

/// Checks a host as it stands alone: an IP address (IPv6 without brackets) or a name of ASCII labels (RFC 1123).
pub fn validate_host(host: &str) -> Result<(), AddressError> {
    if host.is_empty() {
        return Err(AddressError::HostMissing);
    }
    if host.parse::<IpAddr>().is_ok() {
        return Ok(());
    }
    let label_ok = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let name = host.strip_suffix('.').unwrap_or(host);
    // Digits and dots only is a mistyped address, never a name: no top-level domain is numeric.
    let numeric = name.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()));
    if host.len() > 253 || numeric || !name.split('.').all(label_ok) {
        return Err(AddressError::HostInvalid);
    }
    Ok(())
}

impl std::fmt::Display for HostPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl TryFrom<String> for HostPort {
    type Error = AddressError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<HostPort> for String {
    fn from(address: HostPort) -> Self {
        address.to_string()
    }
}

/// Ports a node may listen on: `10000-60000` or `1000-2000,3000`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRange(Vec<std::ops::RangeInclusive<u16>>);

impl PortRange {
    /// The default for a new node.
    pub const DEFAULT: &str = "10000-60000";

    /// Parses a comma-separated list of ports and ranges; at least one, each 1 to 65535, low before high.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut ranges = Vec::new();
        for part in text.split(',').map(str::trim) {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| match text.trim().parse::<u16>() {
                Ok(port) if port > 0 => Ok(port),
                _ => Err(format!("`{part}` is not a port or a range such as 10000-60000")),
            };
            let (low, high) = (number(low)?, number(high)?);
            if low > high {
                return Err(format!("`{part}` runs backwards: write the lower port first"));
            }
            ranges.push(low..=high);
        }
        Ok(Self(ranges))
    }

    /// Whether a port lies inside.
    pub fn contains(&self, port: u16) -> bool {
        self.0.iter().any(|range| range.contains(&port))
    }

    /// All ports in the order written.
    pub fn ports(&self) -> impl Iterator<Item = u16> + '_ {
        self.0.iter().flat_map(Clone::clone)
    }
}

impl std::fmt::Display for PortRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, range) in self.0.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            if range.start() == range.end() {
                write!(f, "{comma}{}", range.start())?;
            } else {
                write!(f, "{comma}{}-{}", range.start(), range.end())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for text in
            ["www.bing.com:443", "192.0.2.1:1", "[2001:db8::1]:65535", "localhost:80", "a_b.example:5"]
        {
            assert_eq!(HostPort::parse(text).unwrap().to_string(), text);
        }
        let wrong = [
            ("", AddressError::HostMissing),
            (":443", AddressError::HostMissing),
            ("www.bing.com", AddressError::PortInvalid),
            ("www.bing.com:", AddressError::PortInvalid),
            ("www.bing.com:0", AddressError::PortInvalid),
            ("www.bing.com:65536", AddressError::PortInvalid),
            ("www.bing.com:+80", AddressError::PortInvalid),
            ("https://www.bing.com:443", AddressError::NotHostPort),
            ("www.bing.com:443/x", AddressError::NotHostPort),
            ("www bing.com:443", AddressError::NotHostPort),
            ("2001:db8::1:443", AddressError::HostInvalid),
            ("[2001:db8::1]", AddressError::PortInvalid),
            ("[name]:443", AddressError::HostInvalid),
            ("300.1.1.1:443", AddressError::HostInvalid),
            ("-a.example:443", AddressError::HostInvalid),
            ("a..b:443", AddressError::HostInvalid),
        ];
        for (text, error) in wrong {
            assert_eq!(HostPort::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn port_ranges() {
        let range = PortRange::parse("1000-1002, 3000").unwrap();
        assert_eq!(range.ports().collect::<Vec<_>>(), [1000, 1001, 1002, 3000]);
        assert!(range.contains(3000) && !range.contains(2999));
        assert_eq!(range.to_string(), "1000-1002,3000");
        for text in ["", "0", "65536", "20-10", "a-b", "1-2,", "1--2"] {
            assert!(PortRange::parse(text).is_err(), "{text}");
        }
    }
}
