//! Both sides of SOCKS5 on a connection.

use crate::Target;
use crate::script::{Script, Then, run};
use agent::proxy::socks5::{client, server};
use shared::address::HostPort;
use shared::gost::Auth;

pub(crate) const TARGET: Target = Target {
    name: "socks5_session",
    run: fuzz,
    words: &[
        "\x05\x01\u{0}",
        "\x05\x02\u{0}\x02",
        "\x01\x01u\x01p",
        "\x05\x01\u{0}\x01",
        "\x05\x03\u{0}\x03\x01a",
        "\x05\u{0}",
        "\x05\x02\x01\u{0}",
        "\x05\u{0}\u{0}\x01",
    ],
};

fn fuzz(bytes: &[u8]) {
    let Some((&flags, says)) = bytes.split_first() else { return };
    let auth = (flags & 1 != 0).then(|| Auth { username: "u".to_owned(), password: "p".to_owned() });
    let is_client = flags & 2 != 0;
    let exchange = |piece: usize| {
        let (mut stream, heard) = Script::new(says, piece, Then::End).connection();
        let outcome = run(async {
            if is_client {
                let target = HostPort::new("target.example", 443);
                let outcome = client::connect(&mut stream, &target, auth.as_ref()).await;
                outcome.map(|()| None).map_err(|error| error.to_string())
            } else {
                let request = server::accept(&mut stream, None, auth.as_ref()).await;
                request.map(Some).map_err(|error| error.to_string())
            }
        });
        (outcome, heard.said(), heard.bytes())
    };
    let whole = exchange(usize::MAX);
    // However it is cut, and without a byte of what follows.
    assert_eq!(exchange(1), whole);
    let (outcome, said, heard) = whole;
    let Ok(request) = outcome else { return };
    let (asked_password, gave_password) =
        (heard.get(..2) == Some(&[5, 2]), says.windows(5).any(|five| five == b"\x01\x01u\x01p"));
    if !is_client && auth.is_some() {
        assert!(asked_password && gave_password, "somebody got in without the password");
    }
    if let Some(request) = request
        && let Some(target) = request.target
    {
        assert_eq!(HostPort::parse(&target.to_string()), Ok(target));
    }
    // The same client again, and what it says next, which is nobody's business here.
    let longer = [&says[..said], b"payload"].concat();
    let (mut stream, again) = Script::new(&longer, 3, Then::End).connection();
    run(async {
        if is_client {
            let target = HostPort::new("target.example", 443);
            client::connect(&mut stream, &target, auth.as_ref()).await.expect("as before");
        } else {
            server::accept(&mut stream, None, auth.as_ref()).await.expect("as before");
        }
    });
    assert_eq!(again.said(), said);
}
