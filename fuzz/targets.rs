//! What is fed to every decoder of bytes from outside, and what must hold whatever they are. Besides: no panic.
//!
//! Shared by `agent/tests/fuzz`, which runs the corpora and mutations of them, and by a coverage-guided fuzzer, which
//! needs nothing but one function that takes bytes.

use agent::datagram::frame::FrameReader;
use agent::document;
use agent::proxy::http::body::{Body, BodyError};
use agent::proxy::http::head::{self, Wanted};
use agent::proxy::http::{basic, forward};
use agent::proxy::socks5::wire::{self as socks5, Parsed};
use agent::proxy_protocol::{self, Version};
use agent::relay::wire as relay;
use agent::runtime::Runtime;
use agent::transport::smux::frame as smux;
use futures_util::FutureExt as _;
use shared::envelope::{NONCE_BYTES, Sealer};
use shared::link::{Command, Frame};

/// One decoder.
pub(crate) struct Target {
    /// Also the folder of its corpus.
    pub(crate) name: &'static str,
    /// Panics when something does not hold.
    pub(crate) run: fn(&[u8]),
    /// Pieces of its language.
    pub(crate) words: &'static [&'static str],
}

/// All of them.
pub(crate) const TARGETS: [Target; 8] = [
    Target {
        name: "relay",
        run: relay_message,
        words: &["\x01\x01", "\x01\u{0}", "\x02\u{0}\x07\x01", "\x04\u{0}\x02\u{0}\x01"],
    },
    Target { name: "datagrams", run: datagrams, words: &["\u{0}\u{0}", "\u{0}\x05hello"] },
    Target {
        name: "smux",
        run: smux_frames,
        words: &["\x01\u{0}\u{0}\u{0}", "\x01\x02\x05\u{0}", "\x02\x04\x08\u{0}"],
    },
    Target {
        name: "socks5",
        run: socks5_messages,
        words: &["\x05\x01\u{0}\x01", "\x05\x01\u{0}\x03", "\x05\u{0}\u{0}\x04", "\x01\x04user"],
    },
    Target {
        name: "http",
        run: http_messages,
        words: &[
            "\r\n",
            "\r\n\r\n",
            ": ",
            "CONNECT ",
            " HTTP/1.1",
            "http://",
            "Content-Length: ",
            "Transfer-Encoding: chunked",
            "Connection: close, ",
            "Upgrade: ",
            "Host: ",
            "Proxy-Authorization: Basic ",
            "0\r\n\r\n",
            "HTTP/1.1 101 ",
            "ffffffffffffffff",
        ],
    },
    Target {
        name: "document",
        run: configuration,
        words: &[
            "services:",
            "chains:",
            "hops:",
            "nodes:",
            "- ",
            "\n  ",
            "name: ",
            "addr: ",
            "handler: ",
            "type: ",
            "selector: ",
            "metadata: ",
            "{",
            "}",
            "[",
            "]",
            "&a ",
            "*a",
            "!!binary ",
            "600s",
            "9223372036854775808",
            "\t",
            "---\n",
            "<<: ",
        ],
    },
    Target {
        name: "envelope",
        run: envelope,
        words: &[
            "{\"encrypted\":true,\"data\":\"",
            "\"type\":\"",
            "AddService",
            "UpdateChains",
            "ProbeBatch",
            "TcpPing",
            "\"data\":",
            "null",
            "\"}",
            "1e999",
        ],
    },
    Target {
        name: "proxy_header",
        run: proxy_header,
        words: &[
            "PROXY TCP4 ",
            "PROXY UNKNOWN",
            "\r\n\r\n\u{0}\r\nQUIT\n",
            "127.0.0.1 ",
            "65536",
            "\r\n",
            "\x21\x11\u{0}\x0c",
        ],
    },
];

fn relay_message(bytes: &[u8]) {
    let Some((&head, features)) = bytes.split_first_chunk::<{ relay::HEADER_LEN }>() else { return };
    let Ok((command, length)) = relay::header(head) else { return };
    let Ok(request) = relay::request(command, &features[..length.min(features.len())]) else { return };
    let fits = request.auth.as_ref().is_none_or(|auth| auth.username.len().max(auth.password.len()) <= 255);
    if request.command != relay::Command::Connect || !fits {
        return;
    }
    let encode = if request.udp { relay::datagram_request } else { relay::connect_request };
    let again = encode(request.target.as_ref(), request.auth.as_ref());
    let (head, features) = again.split_first_chunk::<{ relay::HEADER_LEN }>().expect("a request has a head");
    let (command, length) = relay::header(*head).expect("what we write we can read");
    assert_eq!(length, features.len());
    assert_eq!(relay::request(command, features).as_ref(), Ok(&request));
}

fn datagrams(bytes: &[u8]) {
    let take_all = |reader: &mut FrameReader, all: &mut Vec<Vec<u8>>| {
        while let Some(datagram) = reader.take() {
            all.push(datagram.to_vec());
        }
    };
    let mut whole = Vec::new();
    take_all(&mut FrameReader::new(bytes.to_vec()), &mut whole);
    let carried: usize = whole.iter().map(|datagram| datagram.len() + 2).sum();
    assert!(carried <= bytes.len());
    // The same, however the bytes are cut.
    let (mut reader, mut cut, mut stream) = (FrameReader::default(), Vec::new(), bytes);
    loop {
        take_all(&mut reader, &mut cut);
        match reader.fill(&mut stream).now_or_never() {
            Some(Ok(true)) => {}
            Some(Ok(false)) => {
                assert_eq!(carried, bytes.len());
                break;
            }
            _ => break,
        }
    }
    assert_eq!(cut, whole);
}

fn smux_frames(bytes: &[u8]) {
    for version in [1, 2] {
        let mut rest = bytes;
        while let Ok(Some((frame, length))) = smux::decode(version, rest) {
            assert!((smux::HEADER_LEN..=smux::HEADER_LEN + smux::LONGEST_PAYLOAD).contains(&length));
            let mut again = Vec::new();
            smux::encode(version, frame, &mut again);
            assert_eq!(smux::decode(version, &again), Ok(Some((frame, again.len()))));
            rest = &rest[length..];
        }
    }
}

fn socks5_messages(bytes: &[u8]) {
    // As a reader does: it gets as many bytes as it was told are missing.
    fn read<T>(bytes: &[u8], parse: impl Fn(&[u8]) -> Result<Parsed<T>, socks5::WireError>) -> Option<T> {
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
    let _ = read(bytes, socks5::greeting);
    if let Some(auth) = read(bytes, socks5::login) {
        let again = socks5::encode_login(&auth);
        // What was no text has become longer.
        if auth.username.len().max(auth.password.len()) <= 255 {
            assert_eq!(read(&again, socks5::login), Some(auth));
        }
    }
    let _ = read(bytes, socks5::reply);
    if let Some(request) = read(bytes, socks5::request)
        && let (socks5::Command::Connect, Some(target)) = (request.command, &request.target)
    {
        assert_eq!(read(&socks5::encode_connect(target), socks5::request), Some(request));
    }
}

fn http_messages(bytes: &[u8]) {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
    let (head, body) = bytes.split_at(end);
    if let Ok(request) = head::request(head) {
        let length = Body::of_request(&request);
        if let Ok(length) = length {
            same_end(length, body);
        }
        if let (Some(Wanted::Plain { authority, path, .. }), Ok(length)) = (request.wanted(), length) {
            let has_body = !length.is_complete();
            let upgrade = forward::wants_upgrade(&request, has_body);
            let passed_on = forward::request(&request, &authority, &path, upgrade);
            // The target must see one request, with the same end.
            let again = head::request(&passed_on).expect("what is passed on is a request");
            assert_eq!(Body::of_request(&again), Ok(length), "{:?}", String::from_utf8_lossy(&passed_on));
            assert_eq!(again.method, request.method);
        }
        for value in request.fields.values("proxy-authorization") {
            if let Some(auth) = basic::decode(value) {
                assert_eq!(basic::decode(basic::encode(&auth).as_bytes()), Some(auth));
            }
        }
    }
    if let Ok(Some((response, length))) = head::response(bytes) {
        assert!(length <= bytes.len());
        for method in ["GET", "HEAD", "CONNECT"] {
            if let Ok(end) = Body::of_response(&response, method) {
                same_end(end, &bytes[length..]);
            }
        }
        let passed_on = forward::response(&response);
        let (again, length) =
            head::response(&passed_on).expect("what is passed on is a response").expect("as a whole");
        assert_eq!((again.code, length), (response.code, passed_on.len()));
    }
}

/// A body ends at the same place, however its bytes are cut.
fn same_end(body: Body, bytes: &[u8]) {
    let (mut whole, mut cut) = (body, body);
    let at_once = whole.take(bytes);
    let mut one_by_one: Result<usize, BodyError> = Ok(0);
    for byte in bytes {
        if cut.is_complete() {
            break;
        }
        let taken = cut.take(std::slice::from_ref(byte));
        one_by_one = one_by_one.and_then(|before| taken.map(|taken| before + taken));
        if one_by_one.is_err() {
            break;
        }
    }
    assert_eq!(at_once, one_by_one);
    if at_once.is_ok() {
        assert_eq!(whole, cut);
    }
}

fn configuration(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(config) = document::parse(text) else { return };
    let _ = Runtime::validate(&config);
    let json = serde_json::to_string(&config).expect("a configuration can be written");
    assert_eq!(document::parse(&json).expect("what we write we can read"), config);
}

fn envelope(bytes: &[u8]) {
    let sealer = Sealer::new("a secret of a node");
    let text = String::from_utf8_lossy(bytes);
    let _ = sealer.open(&text);
    let sealed = sealer.seal(&text, [7; NONCE_BYTES], 0);
    assert_eq!(sealer.open(&sealed).as_deref(), Ok(&*text));
    if let Ok(frame) = serde_json::from_str::<Frame>(&text)
        && let Ok(command) = Command::from_frame(&frame)
    {
        let again = Command::from_frame(&command.to_frame("1".to_owned())).expect("what we send we can read");
        assert_eq!(again, command);
    }
}

fn proxy_header(bytes: &[u8]) {
    let mut stream = bytes;
    // A slice is never pending.
    let Some(Ok(Some(ends))) = proxy_protocol::read(&mut stream).now_or_never() else { return };
    for version in [Version::One, Version::Two] {
        let header = proxy_protocol::header(version, ends).expect("ends that were read can be written");
        let mut header = header.as_slice();
        let again = proxy_protocol::read(&mut header).now_or_never();
        assert_eq!(again.and_then(Result::ok).flatten(), Some(ends));
        assert!(header.is_empty());
    }
}
