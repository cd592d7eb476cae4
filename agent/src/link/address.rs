//! Where the panel is, as an operator types it.

use shared::address::{AddressError, HostPort};
use shared::link::LINK_PATH;

/// How the websocket is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Plain TCP. The node secret travels readable in the request, as the protocol of the peer wants it.
    Ws,
    /// TLS.
    Wss,
}

impl Scheme {
    /// As written in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Ws => "ws",
            Scheme::Wss => "wss",
        }
    }
}

/// Address of a panel: `host:port`, `ws://host[:port][/prefix]` or `wss://…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PanelAddress {
    scheme: Option<Scheme>,
    at: HostPort,
    /// Path before [`LINK_PATH`], without a slash at its end; for a panel behind a reverse proxy.
    prefix: String,
}

/// Why a text is no [`PanelAddress`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PanelAddressError {
    /// Something else than `ws` or `wss`.
    #[error("`{0}://` is not supported: write ws://, wss:// or host:port alone")]
    Scheme(String),
    /// The part behind the scheme.
    #[error("{0}")]
    Address(#[from] AddressError),
}

impl PanelAddress {
    /// Schemes in the order in which they are tried. Without one in the address the last that worked comes first,
    /// else TLS.
    pub fn schemes(&self, worked: Option<Scheme>) -> Vec<Scheme> {
        match (self.scheme, worked) {
            (Some(scheme), _) => vec![scheme],
            (None, Some(Scheme::Ws)) => vec![Scheme::Ws, Scheme::Wss],
            (None, _) => vec![Scheme::Wss, Scheme::Ws],
        }
    }

    /// Host and port.
    pub fn at(&self) -> &HostPort {
        &self.at
    }

    /// The address without any secret, for logs.
    pub fn shown(&self, scheme: Scheme) -> String {
        format!("{}://{}{}", scheme.as_str(), self.at, self.prefix)
    }

    /// The URL of the link. It carries the secret: never log it.
    pub(crate) fn url(&self, scheme: Scheme, secret: &str, version: &str) -> String {
        format!(
            "{}://{}{}{LINK_PATH}?type=1&secret={}&version={}&http=0&tls=0&socks=0",
            scheme.as_str(),
            self.at,
            self.prefix,
            query_escaped(secret),
            query_escaped(version)
        )
    }

    /// Where reports to `path` go, as the target of a request. It carries the secret: never log it.
    pub(crate) fn report_path(&self, path: &str, secret: &str) -> String {
        format!("{}{path}?secret={}", self.prefix, query_escaped(secret))
    }
}

impl std::str::FromStr for PanelAddress {
    type Err = PanelAddressError;

    fn from_str(text: &str) -> Result<Self, PanelAddressError> {
        let (scheme, rest) = match text.split_once("://") {
            None => (None, text),
            Some(("ws", rest)) => (Some(Scheme::Ws), rest),
            Some(("wss", rest)) => (Some(Scheme::Wss), rest),
            Some((other, _)) => return Err(PanelAddressError::Scheme(other.to_owned())),
        };
        let (authority, prefix) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        let clean = |c: char| c.is_ascii_alphanumeric() || "/-._~%".contains(c);
        if !prefix.chars().all(clean) {
            return Err(AddressError::NotHostPort.into());
        }
        let at = match (HostPort::parse(authority), scheme) {
            // With a scheme the port may be left out, as in any URL.
            (Err(AddressError::PortInvalid), Some(scheme)) if !has_port(authority) => {
                let port = if scheme == Scheme::Wss { 443 } else { 80 };
                HostPort::parse(&format!("{authority}:{port}"))?
            }
            (parsed, _) => parsed?,
        };
        Ok(Self { scheme, at, prefix: prefix.trim_end_matches('/').to_owned() })
    }
}

fn has_port(authority: &str) -> bool {
    authority.rsplit(']').next().is_some_and(|tail| tail.contains(':'))
}

/// Percent-encodes everything but RFC 3986's unreserved characters.
fn query_escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_what_operators_type() {
        let cases = [
            ("panel.example:6365", "wss://panel.example:6365"),
            ("192.0.2.1:6365", "wss://192.0.2.1:6365"),
            ("[2001:db8::1]:6365", "wss://[2001:db8::1]:6365"),
            ("ws://panel.example", "ws://panel.example:80"),
            ("wss://panel.example", "wss://panel.example:443"),
            ("wss://[2001:db8::1]", "wss://[2001:db8::1]:443"),
            ("wss://panel.example:8443/pilot/", "wss://panel.example:8443/pilot"),
        ];
        for (text, shown) in cases {
            let address: PanelAddress = text.parse().unwrap();
            assert_eq!(address.shown(address.schemes(None)[0]), shown, "{text}");
        }
        for text in [
            "",
            "panel.example",
            "http://panel.example",
            "ws://",
            "ws://a b",
            "ws://x:0",
            "ws://x/?a=b",
            "a:1/#x",
        ] {
            assert!(text.parse::<PanelAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn tls_comes_first_unless_plain_worked_or_was_asked_for() {
        let open: PanelAddress = "panel.example:6365".parse().unwrap();
        assert_eq!(open.schemes(None), [Scheme::Wss, Scheme::Ws]);
        assert_eq!(open.schemes(Some(Scheme::Wss)), [Scheme::Wss, Scheme::Ws]);
        assert_eq!(open.schemes(Some(Scheme::Ws)), [Scheme::Ws, Scheme::Wss]);
        let fixed: PanelAddress = "wss://panel.example".parse().unwrap();
        assert_eq!(fixed.schemes(Some(Scheme::Ws)), [Scheme::Wss]);
    }

    #[test]
    fn the_url_escapes_what_is_not_plain() {
        let address: PanelAddress = "panel.example:6365".parse().unwrap();
        assert_eq!(
            address.url(Scheme::Ws, "a b&c=ä", "1.0 (linux/x86_64)"),
            "ws://panel.example:6365/system-info?type=1&secret=a%20b%26c%3D%C3%A4&version=1.0%20%28linux%2Fx86_64%29\
             &http=0&tls=0&socks=0"
        );
    }
}
