//! The relay protocol: requests and answers as bytes, and both sides of the exchange.

use crate::Target;
use crate::script::{Script, Then, run};
use agent::relay::client::Unanswered;
use agent::relay::server::read_request;
use agent::relay::wire::{self, Command, HEADER_LEN};
use shared::address::HostPort;
use tokio::io::AsyncReadExt as _;

pub(crate) const TARGET: Target = Target {
    name: "relay",
    run: fuzz,
    words: &[
        "\x01\x01",
        "\x01\u{0}",
        "\x02\u{0}\x07\x01",
        "\x04\u{0}\x02\u{0}\x01",
        "\x02\u{0}\x13\x04",
        "\x01\u{0}\x04",
    ],
};

fn fuzz(bytes: &[u8]) {
    request(bytes);
    // The same from a connection, however it is cut, and not a byte beyond.
    let served = |piece| {
        let (mut stream, heard) = Script::new(bytes, piece, Then::End).connection();
        let request = run(read_request(&mut stream));
        (request.map_err(|error| error.to_string()), heard.said())
    };
    let whole = served(usize::MAX);
    assert_eq!(served(1), whole);
    if whole.0.is_ok() {
        assert_eq!(whole.1, HEADER_LEN + usize::from(u16::from_be_bytes([bytes[2], bytes[3]])));
    }
    // As an answer: what follows is payload.
    let answered = |piece| {
        let (stream, heard) = Script::new(bytes, piece, Then::End).connection();
        run(async {
            let target = HostPort::new("192.0.2.1", 443);
            let mut asked = Unanswered::ask(stream, &target, None).await.expect("a script takes a request");
            let answer = asked.answer().await.map_err(|error| error.to_string());
            let before = heard.said();
            let mut payload = Vec::new();
            if answer.is_ok() {
                asked.into_answered().read_to_end(&mut payload).await.expect("a script can be read");
                assert_eq!(payload, &bytes[before..]);
            }
            (answer, payload)
        })
    };
    assert_eq!(answered(3), answered(usize::MAX));
}

fn request(bytes: &[u8]) {
    let Some((&head, features)) = bytes.split_first_chunk::<HEADER_LEN>() else { return };
    let Ok((command, length)) = wire::header(head) else { return };
    let Ok(request) = wire::request(command, &features[..length.min(features.len())]) else { return };
    let fits = request.auth.as_ref().is_none_or(|auth| auth.username.len().max(auth.password.len()) <= 255);
    if request.command != Command::Connect || !fits {
        return;
    }
    let encode = if request.udp { wire::datagram_request } else { wire::connect_request };
    let again = encode(request.target.as_ref(), request.auth.as_ref());
    let (head, features) = again.split_first_chunk::<HEADER_LEN>().expect("a request has a head");
    let (command, length) = wire::header(*head).expect("what we write we can read");
    assert_eq!(length, features.len());
    assert_eq!(wire::request(command, features).as_ref(), Ok(&request));
}
