//! SOCKS5 as bytes: greetings, logins, requests, replies and the heads of datagrams.

use crate::Target;
use agent::proxy::socks5::wire::{self, Command, Parsed, WireError};

pub(crate) const TARGET: Target = Target {
    name: "socks5",
    run: fuzz,
    words: &[
        "\x05\x01\u{0}\x01",
        "\x05\x01\u{0}\x03",
        "\x05\u{0}\u{0}\x04",
        "\x01\x04user",
        "\u{0}\u{0}\u{0}\x01",
        "\u{0}\u{0}\u{0}\x03\x01a",
    ],
};

/// As a reader does: it gets as many bytes as it was told are missing.
fn read<T>(bytes: &[u8], parse: impl Fn(&[u8]) -> Result<Parsed<T>, WireError>) -> Option<T> {
    let mut length = 0;
    loop {
        match parse(bytes.get(..length)?).ok()? {
            Parsed::Done(message) => return Some(message),
            Parsed::Needs(more) => {
                assert!(more > 0);
                length += more;
                assert!(length <= 2 + 255 + 1 + 255 + 16, "a message of {length} bytes");
            }
        }
    }
}

fn fuzz(bytes: &[u8]) {
    let _ = read(bytes, wire::greeting);
    if let Some(auth) = read(bytes, wire::login) {
        let again = wire::encode_login(&auth);
        // What was no text has become longer.
        if auth.username.len().max(auth.password.len()) <= 255 {
            assert_eq!(read(&again, wire::login), Some(auth));
        }
    }
    if let Some((reply, _)) = read(bytes, wire::reply) {
        assert_eq!(read(&wire::encode_reply(reply), wire::reply), Some((reply, None)));
    }
    if let Some(request) = read(bytes, wire::request)
        && let (Command::Connect, Some(target)) = (request.command, &request.target)
    {
        assert_eq!(read(&wire::encode_connect(target), wire::request), Some(request));
    }
    if let Some((target, payload)) = wire::datagram(bytes) {
        assert!(bytes.ends_with(payload));
        let again = [&*wire::encode_datagram_header(&target), payload].concat();
        assert_eq!(wire::datagram(&again), Some((target, payload)));
    }
}
