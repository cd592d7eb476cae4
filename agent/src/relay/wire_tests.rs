//! Vectors of the relay protocol, computed by hand, and what must not get through.

use super::*;
use proptest::prelude::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap()).collect()
}

fn target(text: &str) -> Option<HostPort> {
    Some(HostPort::parse(text).unwrap())
}

fn user() -> Option<Auth> {
    Some(Auth { username: "user".into(), password: "pass".into() })
}

/// Splits a whole message as a server reads it.
fn read(message: &[u8]) -> Result<Request, WireError> {
    let (command, len) = header(message[..HEADER_LEN].try_into().unwrap())?;
    assert_eq!(len, message.len() - HEADER_LEN);
    request(command, &message[HEADER_LEN..])
}

#[test]
fn requests_on_the_wire() {
    let cases = [
        (target("127.0.0.1:8080"), None, "01 01 00 0a  02 00 07 01 7f 00 00 01 1f 90"),
        (
            target("example.com:443"),
            None,
            "01 01 00 12  02 00 0f 03 0b 65 78 61 6d 70 6c 65 2e 63 6f 6d 01 bb",
        ),
        (target("[::1]:443"), None, "01 01 00 16  02 00 13 04 00000000 00000000 00000000 00000001 01 bb"),
        (
            target("127.0.0.1:8080"),
            user(),
            "01 01 00 17  01 00 0a 04 75 73 65 72 04 70 61 73 73  02 00 07 01 7f 00 00 01 1f 90",
        ),
        (None, None, "01 01 00 07  02 00 04 03 00 00 00"),
    ];
    for (target, auth, hex) in cases {
        assert_eq!(connect_request(target.as_ref(), auth.as_ref()), bytes(hex), "{target:?}");
        let expected = Request { command: Command::Connect, udp: false, auth, target };
        assert_eq!(read(&bytes(hex)), Ok(expected));
    }
}

#[test]
fn requests_only_read() {
    let udp = Request { udp: true, target: target("1.1.1.1:53"), ..Request::default() };
    let plain = Request { target: target("127.0.0.1:8080"), ..Request::default() };
    let both = Request { auth: user(), ..plain.clone() };
    let cases = [
        ("udp", "01 81 00 0f  04 00 02 00 01  02 00 07 01 01 01 01 01 00 35", udp.clone()),
        ("udp by feature", "01 01 00 0f  04 00 02 00 01  02 00 07 01 01 01 01 01 00 35", udp),
        ("command 0 is connect", "01 00 00 0a  02 00 07 01 7f 00 00 01 1f 90", plain.clone()),
        ("no feature at all", "01 01 00 00", Request::default()),
        (
            "any order",
            "01 01 00 17  02 00 07 01 7f 00 00 01 1f 90  01 00 0a 04 75 73 65 72 04 70 61 73 73",
            both,
        ),
        ("an unknown feature", "01 01 00 0f  7f 00 02 ab cd  02 00 07 01 7f 00 00 01 1f 90", plain),
    ];
    for (name, hex, expected) in cases {
        assert_eq!(read(&bytes(hex)), Ok(expected), "{name}");
    }
    assert_eq!(read(&bytes("01 82 00 00")).unwrap().command, Command::Bind);
    assert_eq!(read(&bytes("01 83 00 00")).unwrap().command, Command::Other(3));
}

#[test]
fn malformed_requests() {
    let cases = [
        ("version 2", "02 01 00 00", WireError::Version(2)),
        ("TLS instead of relay", "16 03 01 00", WireError::Version(0x16)),
        ("half a feature header", "01 01 00 02  02 00", WireError::Truncated),
        ("feature longer than the message", "01 01 00 05  02 00 07 01 7f", WireError::Truncated),
        ("address cut short", "01 01 00 06  02 00 03 01 7f 00", WireError::Truncated),
        ("address without port", "01 01 00 08  02 00 05 01 7f 00 00 01", WireError::Truncated),
        ("empty address feature", "01 01 00 03  02 00 00", WireError::Truncated),
        ("unknown address type", "01 01 00 04  02 00 01 02", WireError::AddressType(2)),
        ("name longer than its feature", "01 01 00 06  02 00 03 03 09 61", WireError::Truncated),
        ("user longer than its feature", "01 01 00 05  01 00 02 09 61", WireError::Truncated),
        ("password missing", "01 01 00 05  01 00 02 01 61", WireError::Truncated),
        ("name that is not text", "01 01 00 08  02 00 05 03 01 ff 00 50", WireError::HostName),
        ("name with a line break", "01 01 00 08  02 00 05 03 01 0a 00 50", WireError::HostName),
        ("network cut short", "01 01 00 04  04 00 01 00", WireError::Truncated),
    ];
    for (name, hex, error) in cases {
        let message = bytes(hex);
        let outcome = header(message[..HEADER_LEN].try_into().unwrap())
            .and_then(|(command, _)| request(command, &message[HEADER_LEN..]));
        assert_eq!(outcome, Err(error), "{name}");
    }
}

#[test]
fn responses() {
    assert_eq!(response(Status::Ok), [1, 0, 0, 0]);
    assert_eq!(response(Status::Unauthorized), [1, 2, 0, 0]);
    let address = response_with_address(&HostPort::new("127.0.0.1", 8080));
    assert_eq!(address, bytes("01 00 00 0a  02 00 07 01 7f 00 00 01 1f 90"));
    for code in 0..=255 {
        assert_eq!(Status::from_code(code).code(), code);
    }
    assert_eq!(header([1, 6, 0x01, 0x02]), Ok((6, 258)));
    assert_eq!(header([5, 0, 0, 0]), Err(WireError::Version(5)));
}

#[test]
fn texts_at_the_limits_stay_well_formed() {
    let auth = Auth { username: "u".repeat(255), password: "p".repeat(255) };
    let target =
        HostPort::new(["a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(61)].join("."), 65535);
    let message = connect_request(Some(&target), Some(&auth));
    assert_eq!(read(&message), Ok(Request { auth: Some(auth), target: Some(target), ..Request::default() }));
}

proptest! {
    #[test]
    fn whatever_is_sent_is_read(user in "[ -~]{0,40}", pass in "[ -~]{0,40}", host in "[a-z]{1,20}\\.[a-z]{2,9}", port: u16) {
        let auth = Auth { username: user, password: pass };
        let target = HostPort { host, port };
        let message = connect_request(Some(&target), Some(&auth));
        prop_assert_eq!(read(&message), Ok(Request { auth: Some(auth), target: Some(target), ..Request::default() }));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(command: u8, features in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = request(command, &features);
    }
}
