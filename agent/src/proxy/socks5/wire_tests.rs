//! Vectors of RFC 1928 and 1929, computed by hand, and what must not get through.

use super::*;
use proptest::prelude::*;
use std::fmt::Debug;

fn target(text: &str) -> Option<HostPort> {
    Some(HostPort::parse(text).unwrap())
}

fn user() -> Auth {
    Auth { username: "user".into(), password: "pass".into() }
}

/// Hands a message over as slowly as can be: whatever is said to be missing is, and nothing more.
fn read<T: Debug>(
    message: &[u8],
    parse: impl Fn(&[u8]) -> Result<Parsed<T>, WireError>,
) -> Result<T, WireError> {
    let mut there = 0;
    loop {
        match parse(&message[..there])? {
            Parsed::Done(done) => {
                assert_eq!(there, message.len(), "ended before its end: {done:?}");
                return Ok(done);
            }
            Parsed::Needs(count) => {
                assert!(
                    count > 0 && there + count <= message.len(),
                    "reads beyond the end: {there} + {count}"
                );
                there += count;
            }
        }
    }
}

#[test]
fn greetings() {
    assert_eq!(read(&[5, 1, 0], greeting), Ok(vec![0]));
    assert_eq!(read(&[5, 3, 0, 1, 2], greeting), Ok(vec![0, 1, 2]));
    assert_eq!(read(&[5, 0], greeting), Ok(vec![]));
    assert_eq!(read(&[4, 1], greeting), Err(WireError::Version(4)));
    assert_eq!(read(b"GET / HTTP/1.1", greeting), Err(WireError::Version(b'G')));
    assert_eq!(encode_greeting(None), [5, 1, 0]);
    assert_eq!(encode_greeting(Some(&user())), [5, 2, 0, 2]);
}

#[test]
fn logins() {
    assert_eq!(encode_login(&user()), b"\x01\x04user\x04pass");
    assert_eq!(read(b"\x01\x04user\x04pass", login), Ok(user()));
    let empty = Auth { username: String::new(), password: String::new() };
    assert_eq!(read(&[1, 0, 0], login), Ok(empty));
    assert_eq!(read(&[5, 0, 0], login), Err(WireError::Version(5)));
    let longest = Auth { username: "u".repeat(255), password: "p".repeat(255) };
    assert_eq!(read(&encode_login(&longest), login), Ok(longest));
}

#[test]
fn requests() {
    let cases: [(&[u8], Command, Option<HostPort>); 9] = [
        (b"\x05\x01\x00\x01\x7f\x00\x00\x01\x1f\x90", Command::Connect, target("127.0.0.1:8080")),
        (b"\x05\x01\x00\x03\x0bexample.com\x01\xbb", Command::Connect, target("example.com:443")),
        (
            b"\x05\x01\x00\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x01\xbb",
            Command::Connect,
            target("[2001:db8::1]:443"),
        ),
        (b"\x05\x02\x00\x01\x01\x01\x01\x01\x00\x35", Command::Bind, target("1.1.1.1:53")),
        (b"\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00", Command::Associate, None),
        (b"\x05\x03\x00\x03\x00\x00\x35", Command::Associate, None),
        (b"\x05\xf3\x00\x01\x01\x01\x01\x01\x00\x35", Command::Tunnel, target("1.1.1.1:53")),
        (b"\x05\xf2\x00\x01\x01\x01\x01\x01\x00\x35", Command::Other(0xf2), target("1.1.1.1:53")),
        // Some clients put something into the reserved byte, and an address into a name.
        (b"\x05\x01\x07\x03\x077.7.7.7\x00\x50", Command::Connect, target("7.7.7.7:80")),
    ];
    for (message, command, target) in cases {
        assert_eq!(read(message, request), Ok(Request { command, target }), "{message:?}");
    }
    let tunnel = Request { command: Command::Tunnel, target: None };
    assert_eq!(read(&encode_tunnel(), request), Ok(tunnel));
    for text in ["127.0.0.1:8080", "example.com:443", "[2001:db8::1]:443"] {
        let expected = Request { command: Command::Connect, target: target(text) };
        assert_eq!(read(&encode_connect(&HostPort::parse(text).unwrap()), request), Ok(expected));
    }
}

#[test]
fn malformed_requests() {
    let cases: [(&str, &[u8], WireError); 6] = [
        ("version 4", b"\x04\x01", WireError::Version(4)),
        ("unknown address type", b"\x05\x01\x00\x02", WireError::AddressType(2)),
        ("a name that is not text", b"\x05\x01\x00\x03\x01\xff\x00\x50", WireError::HostName),
        ("a name with a line break", b"\x05\x01\x00\x03\x03a\nb\x00\x50", WireError::HostName),
        ("a name with a zero byte", b"\x05\x01\x00\x03\x03a\0b\x00\x50", WireError::HostName),
        ("numbers that are no address", b"\x05\x01\x00\x03\x091.2.3.256\x00\x50", WireError::HostName),
    ];
    for (name, message, error) in cases {
        assert_eq!(read(message, request), Err(error), "{name}");
    }
}

#[test]
fn replies() {
    assert_eq!(encode_reply(Reply::Succeeded), b"\x05\x00\x00\x01\0\0\0\0\0\0");
    for code in 0..=255 {
        assert_eq!(Reply::from_code(code).code(), code);
        assert_eq!(read(&encode_reply(Reply::from_code(code)), reply), Ok((Reply::from_code(code), None)));
    }
    let bound = b"\x05\x00\x00\x03\x01a\x01\xbb";
    assert_eq!(read(bound, reply), Ok((Reply::Succeeded, target("a:443"))));
}

#[test]
fn datagrams() {
    let cases: [(&[u8], &str, &[u8]); 4] = [
        (b"\0\0\0\x01\x01\x01\x01\x01\x00\x35payload", "1.1.1.1:53", b"payload"),
        (b"\0\0\0\x01\x01\x01\x01\x01\x00\x35", "1.1.1.1:53", b""),
        (b"\0\0\0\x03\x0bexample.com\x01\xbbp", "example.com:443", b"p"),
        (b"\0\0\0\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x01\xbbp", "[2001:db8::1]:443", b"p"),
    ];
    for (bytes, text, payload) in cases {
        let target = HostPort::parse(text).unwrap();
        assert_eq!([encode_datagram_header(&target).as_slice(), payload].concat(), bytes);
        assert_eq!(datagram(bytes), Some((target, payload)));
        for cut in 0..bytes.len() - payload.len() {
            assert_eq!(datagram(&bytes[..cut]), None, "{text} cut at {cut}");
        }
    }
    let none: [&[u8]; 4] = [
        b"\0\0\x01\x01\x01\x01\x01\x01\x00\x35p",
        b"\0\0\0\x01\x01\x01\x01\x01\x00\x00p",
        b"\0\0\0\x03\x00\x00\x35p",
        b"\0\0\0\x02\x01",
    ];
    for bytes in none {
        assert_eq!(datagram(bytes), None, "{bytes:?}");
    }
    assert_eq!(encode_reply_with("1.2.3.4:80".parse().unwrap()), b"\x05\0\0\x01\x01\x02\x03\x04\0\x50");
}

proptest! {
    #[test]
    fn whatever_is_sent_is_read(user in "[ -~]{0,40}", pass in "[ -~]{0,40}", host in "[a-z]{1,20}\\.[a-z]{2,9}", port in 1u16..) {
        let auth = Auth { username: user, password: pass };
        prop_assert_eq!(read(&encode_login(&auth), login), Ok(auth));
        let target = HostPort { host, port };
        let expected = Request { command: Command::Connect, target: Some(target.clone()) };
        prop_assert_eq!(read(&encode_connect(&target), request), Ok(expected));
    }

    /// Every reader either wants more, or has taken all there is, or refuses; and what it wants is bounded.
    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        fn bounded<T>(bytes: &[u8], parse: impl Fn(&[u8]) -> Result<Parsed<T>, WireError>) {
            let mut there = 0;
            while let Ok(Parsed::Needs(count)) = parse(&bytes[..there]) {
                assert!((1..=255).contains(&count));
                there += count;
                assert!(there <= 513, "no message is longer");
                if there > bytes.len() {
                    return;
                }
            }
        }
        for (version, bytes) in [(5, &bytes), (1, &bytes)] {
            // With the right version more of the reader is reached.
            let mut bytes = bytes.clone();
            bytes.insert(0, version);
            bounded(&bytes, greeting);
            bounded(&bytes, login);
            bounded(&bytes, request);
            bounded(&bytes, reply);
        }
        bounded(&bytes, request);
        if let Some((_, payload)) = datagram(&bytes) {
            prop_assert!(bytes.ends_with(payload));
        }
    }
}
