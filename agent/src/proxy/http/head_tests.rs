use super::*;
use proptest::prelude::*;

fn parse(method: &str, target: &str) -> Option<Wanted> {
    request(format!("{method} {target} HTTP/1.1\r\nHost: elsewhere\r\n\r\n").as_bytes()).unwrap().wanted()
}

fn tunnel(text: &str) -> Option<Wanted> {
    Some(Wanted::Tunnel(HostPort::parse(text).unwrap()))
}

fn plain(target: &str, authority: &str, path: &str) -> Option<Wanted> {
    let target = HostPort::parse(target).unwrap();
    Some(Wanted::Plain { target, authority: authority.to_owned(), path: path.to_owned() })
}

#[test]
fn what_is_wanted() {
    let cases = [
        ("CONNECT", "example.com:443", tunnel("example.com:443")),
        ("CONNECT", "192.0.2.1:80", tunnel("192.0.2.1:80")),
        ("CONNECT", "[2001:db8::1]:443", tunnel("[2001:db8::1]:443")),
        ("CONNECT", "example.com", None),
        ("CONNECT", "example.com:0", None),
        ("CONNECT", "http://example.com:80/", None),
        ("CONNECT", "/", None),
        ("GET", "http://example.com/a?b=c", plain("example.com:80", "example.com", "/a?b=c")),
        ("GET", "HTTP://example.com:8080", plain("example.com:8080", "example.com:8080", "/")),
        ("GET", "http://example.com:/x", plain("example.com:80", "example.com:", "/x")),
        ("GET", "http://example.com?q", plain("example.com:80", "example.com", "/?q")),
        ("POST", "http://[2001:db8::1]/", plain("[2001:db8::1]:80", "[2001:db8::1]", "/")),
        ("POST", "http://[2001:db8::1]:81/", plain("[2001:db8::1]:81", "[2001:db8::1]:81", "/")),
        ("OPTIONS", "http://example.com", plain("example.com:80", "example.com", "*")),
        ("GET", "/", None),
        ("OPTIONS", "*", None),
        ("GET", "https://example.com/", None),
        ("GET", "http://", None),
        ("GET", "http:///path", None),
        ("GET", "http://user:pass@example.com/", None),
        ("GET", "http://a_b!/", None),
        ("GET", "http://example.com/#fragment", None),
        ("GET", "http://::1/", None),
        ("connect", "example.com:443", None),
    ];
    for (method, target, expected) in cases {
        assert_eq!(parse(method, target), expected, "{method} {target}");
    }
}

#[test]
fn lists() {
    let head = request(
        b"GET http://a/ HTTP/1.1\r\nConnection: keep-alive, X-One\r\nconnection:,x-two ,\r\nX-One: 1\r\n\r\n",
    );
    let fields = head.unwrap().fields;
    let members: Vec<_> = fields.members("Connection").collect();
    assert_eq!(members, [&b"keep-alive"[..], b"X-One", b"x-two"]);
    assert!(fields.lists("CONNECTION", "x-one") && !fields.lists("connection", "x"));
    assert_eq!(fields.values("x-one").collect::<Vec<_>>(), [b"1"]);
}

#[test]
fn heads_that_are_none() {
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(MAX_FIELDS + 1));
    let long = format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "b".repeat(MAX_HEAD));
    let cases: [(&str, &[u8], HeadError); 7] = [
        ("too many fields", many.as_bytes(), HeadError::TooLarge),
        ("too many bytes", long.as_bytes(), HeadError::TooLarge),
        ("nothing", b"", HeadError::CutOff),
        ("half", b"GET / HTTP/1.1\r\nHost:", HeadError::CutOff),
        ("more than a head", b"GET / HTTP/1.1\r\n\r\nx", HeadError::CutOff),
        ("another version", b"GET / HTTP/2.0\r\n\r\n", HeadError::Malformed(httparse::Error::Version)),
        (
            "a space before the colon",
            b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
            HeadError::Malformed(httparse::Error::HeaderName),
        ),
    ];
    for (name, bytes, error) in cases {
        assert_eq!(request(bytes), Err(error), "{name}");
    }
}

#[test]
fn responses() {
    let bytes = b"HTTP/1.1 407 Proxy Authentication Required\r\nA: b\r\n\r\nbody";
    let (head, end) = response(bytes).unwrap().unwrap();
    assert_eq!((head.code, head.minor, &bytes[end..]), (407, 1, &b"body"[..]));
    assert_eq!(head.reason, "Proxy Authentication Required");
    let (head, _) = response(b"HTTP/1.0 200\r\n\r\n").unwrap().unwrap();
    assert_eq!((head.code, head.minor, head.reason.as_str()), (200, 0, ""));
    for cut in 0..end {
        assert_eq!(response(&bytes[..cut]), Ok(None), "{cut}");
    }
    assert!(response(b"SSH-2.0-x\r\n").is_err());
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = request(&bytes).map(|head| head.wanted());
        let _ = response(&bytes);
        let line = [b"CONNECT ".as_slice(), &bytes, b" HTTP/1.1\r\n\r\n"].concat();
        let _ = request(&line).map(|head| head.wanted());
    }

    /// Whatever a client writes, the target is a host and a port, and the path has neither spaces nor line breaks.
    #[test]
    fn a_target_is_a_target(text in "(http://)?[ -~]{0,40}") {
        let line = format!("GET {text} HTTP/1.1\r\n\r\n");
        if let Ok(Some(Wanted::Plain { target, path, .. })) = request(line.as_bytes()).map(|head| head.wanted()) {
            prop_assert_eq!(HostPort::parse(&target.to_string()), Ok(target));
            prop_assert!(path == "*" || path.starts_with('/'));
            prop_assert!(!path.contains(char::is_whitespace));
        }
    }
}
