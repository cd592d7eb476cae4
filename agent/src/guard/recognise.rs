//! What a client speaks, by its first bytes.
//!
//! | protocol | first bytes |
//! | --- | --- |
//! | HTTP | a method and a space, or the preface of HTTP/2; empty lines may come before |
//! | TLS | 16 03, then 01 to 04: a handshake record of TLS 1.0 to 1.3 |
//! | SOCKS4 | 04, then 01 or 02, and five more: connect or bind, a port and an address |
//! | SOCKS5 | 05, a number and as many methods, among them 00 or 02 |
//!
//! The panel that this comes from has the same rules, but for the space behind a method, without which `GETINFO` would be
//! HTTP, the methods TRACE and PRI, and the empty lines, which servers skip.

use super::blocked::Blocked;

/// What can be recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP of any version, as far as it is not inside TLS.
    Http,
    /// TLS.
    Tls,
    /// SOCKS 4 or 5.
    Socks,
}

impl Protocol {
    /// All there are.
    pub const ALL: [Protocol; 3] = [Protocol::Http, Protocol::Tls, Protocol::Socks];

    /// The word by which panels name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::Http => "http",
            Protocol::Tls => "tls",
            Protocol::Socks => "socks",
        }
    }

    /// Whether these are its first bytes. Once it is yes or no, more bytes do not change it; 257 bytes are always enough.
    fn begins(self, bytes: &[u8]) -> Answer {
        match self {
            Protocol::Http => http(bytes),
            Protocol::Tls => tls(bytes),
            Protocol::Socks => socks(bytes),
        }
    }
}

/// What the first bytes of a client come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Nothing of what is blocked.
    Free,
    /// This, which is blocked.
    Blocked(Protocol),
    /// It depends on what follows.
    Unclear,
}

/// What a client speaks whose first bytes these are.
pub fn opening(bytes: &[u8], blocked: Blocked) -> Opening {
    let mut opening = Opening::Free;
    for protocol in Protocol::ALL.into_iter().filter(|protocol| blocked.has(*protocol)) {
        match protocol.begins(bytes) {
            Answer::Yes => return Opening::Blocked(protocol),
            Answer::Unclear => opening = Opening::Unclear,
            Answer::No => {}
        }
    }
    opening
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
    Unclear,
}

/// What requests begin with.
const METHODS: [&str; 10] =
    ["GET ", "HEAD ", "POST ", "PUT ", "DELETE ", "CONNECT ", "OPTIONS ", "TRACE ", "PATCH ", "PRI * HTTP/2"];
/// Bytes of empty lines before a request.
const EMPTY_LINES: usize = 16;

fn http(bytes: &[u8]) -> Answer {
    let empty = bytes.iter().take(EMPTY_LINES).take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let line = &bytes[empty..];
    if METHODS.iter().any(|method| line.starts_with(method.as_bytes())) {
        Answer::Yes
    } else if METHODS.iter().any(|method| method.as_bytes().starts_with(line)) {
        Answer::Unclear
    } else {
        Answer::No
    }
}

fn tls(bytes: &[u8]) -> Answer {
    match bytes {
        [] | [0x16] | [0x16, 0x03] => Answer::Unclear,
        [0x16, 0x03, 0x01..=0x04, ..] => Answer::Yes,
        _ => Answer::No,
    }
}

fn socks(bytes: &[u8]) -> Answer {
    match bytes {
        [] | [0x04 | 0x05] => Answer::Unclear,
        [0x04, 0x01 | 0x02, rest @ ..] if rest.len() < 5 => Answer::Unclear,
        [0x04, 0x01 | 0x02, ..] => Answer::Yes,
        [0x05, count, rest @ ..] => match rest.get(..usize::from(*count)) {
            None => Answer::Unclear,
            Some(methods) if methods.iter().any(|method| matches!(method, 0x00 | 0x02)) => Answer::Yes,
            Some(_) => Answer::No,
        },
        _ => Answer::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: Blocked = Blocked { http: true, tls: true, socks: true };

    #[test]
    fn what_is_recognised() {
        let http = Opening::Blocked(Protocol::Http);
        let tls = Opening::Blocked(Protocol::Tls);
        let socks = Opening::Blocked(Protocol::Socks);
        let cases: [(&[u8], Opening); 34] = [
            (b"", Opening::Unclear),
            (b"GET / HTTP/1.1\r\n", http),
            (b"HEAD /", http),
            (b"POST /", http),
            (b"PUT /", http),
            (b"DELETE /", http),
            (b"CONNECT a.example:443 HTTP/1.1", http),
            (b"OPTIONS *", http),
            (b"TRACE /", http),
            (b"PATCH /", http),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", http),
            (b"\r\n\r\nGET /", http),
            (b"GET", Opening::Unclear),
            (b"\r\nP", Opening::Unclear),
            (b"GETINFO version\r\n", Opening::Free),
            (b"PRIVMSG #channel", Opening::Free),
            (b"get / HTTP/1.1", Opening::Free),
            (b"SSH-2.0-OpenSSH_9.9\r\n", Opening::Free),
            (b"\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\nGET /", Opening::Free),
            (b"\x16\x03\x01\x02\0\x01", tls),
            (b"\x16\x03\x04", tls),
            (b"\x16\x03", Opening::Unclear),
            (b"\x16\x03\x05", Opening::Free),
            (b"\x16\x03\0", Opening::Free),
            (b"\x17\x03\x03", Opening::Free),
            (b"\x04\x01\0\x50\x7f\0\0\x01\0", socks),
            (b"\x04\x02\0\x50\x7f\0\0", socks),
            (b"\x04\x01\0\x50\x7f\0", Opening::Unclear),
            (b"\x04\x03\0\x50\x7f\0\0\x01\0", Opening::Free),
            (b"\x05\x01\0", socks),
            (b"\x05\x03\x01\x80\x02", socks),
            (b"\x05\x03\x01\x80", Opening::Unclear),
            (b"\x05\x01\x01", Opening::Free),
            // The relay protocol, which nodes speak to each other.
            (b"\x01\x01\0\x0a", Opening::Free),
        ];
        for (bytes, expected) in cases {
            assert_eq!(opening(bytes, ALL), expected, "{:?}", String::from_utf8_lossy(bytes));
        }
        assert_eq!(opening(b"\x05\0", ALL), Opening::Free);
    }

    #[test]
    fn what_is_not_blocked_is_free() {
        let none = Blocked::default();
        for bytes in [&b""[..], b"GET /", b"G", b"\x16\x03\x01", b"\x05\x01\0"] {
            assert_eq!(opening(bytes, none), Opening::Free);
        }
        let tls = Blocked { tls: true, ..none };
        assert_eq!(opening(b"GET /", tls), Opening::Free);
        assert_eq!(opening(b"\x16\x03\x01", tls), Opening::Blocked(Protocol::Tls));
    }

    proptest! {
        #[test]
        fn once_it_is_clear_it_stays_so_and_257_bytes_are_enough(
            start in prop_oneof![
                Just(vec![]), Just(b"\x05\xff".to_vec()), Just(b"PRI * ".to_vec()), Just(b"\x04\x01".to_vec()),
                Just(b"\r\n\r\nCONN".to_vec()), Just(b"\x16\x03".to_vec()),
            ],
            rest in proptest::collection::vec(any::<u8>(), 257),
            flags in 0u8..8,
        ) {
            let blocked = Blocked { http: flags & 1 != 0, tls: flags & 2 != 0, socks: flags & 4 != 0 };
            let bytes = [start, rest].concat();
            let mut clear = None;
            for len in 0..=bytes.len() {
                let now = opening(&bytes[..len], blocked);
                match clear {
                    None if now == Opening::Unclear => prop_assert!(len < 257),
                    None => clear = Some(now),
                    Some(clear) => prop_assert_eq!(now, clear),
                }
            }
        }
    }
}
