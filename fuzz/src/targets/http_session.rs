//! Heads of HTTP from a connection, and a client that asks a proxy for one.

use crate::Target;
use crate::script::{Script, Then, run};
use agent::proxy::http::client;
use agent::proxy::http::read::{Kind, head};
use shared::address::HostPort;

pub(crate) const TARGET: Target = Target {
    name: "http_session",
    run: fuzz,
    words: &[
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.0 407 No\r\n",
        "CONNECT a:1 HTTP/1.1\r\n",
        "\r\n\r\n",
        "\n\n",
        "\r",
        "A: b\r\n",
    ],
};

fn fuzz(bytes: &[u8]) {
    for (kind, first) in [(Kind::Request, 0), (Kind::Response, 0), (Kind::Request, 1)] {
        let read = |piece| {
            let first = bytes.first().copied().filter(|_| first == 1);
            let says = &bytes[first.iter().len()..];
            let (mut stream, heard) = Script::new(says, piece, Then::End).connection();
            let head = run(head(&mut stream, kind, first)).map_err(|error| error.to_string());
            if let Ok(head) = &head {
                assert!(bytes.starts_with(head));
                assert_eq!(head.len(), heard.said() + first.iter().len(), "taken beyond the head");
                assert!(head.ends_with(b"\n"));
            }
            head
        };
        assert_eq!(read(1), read(usize::MAX));
    }
    let target = HostPort::new("target.example", 443);
    let ask = |says: &[u8], piece| {
        let (mut stream, heard) = Script::new(says, piece, Then::End).connection();
        let outcome = run(client::connect(&mut stream, &target, None)).map_err(|error| error.to_string());
        (outcome, heard.said())
    };
    let (outcome, said) = ask(bytes, usize::MAX);
    assert_eq!(ask(bytes, 2), (outcome.clone(), said));
    if outcome.is_ok() {
        assert_eq!(ask(&[&bytes[..said], b"\n\npayload"].concat(), 5), (Ok(()), said));
    }
}
