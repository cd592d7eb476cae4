//! The first bytes of clients, where protocols are blocked.

use crate::Target;
use crate::script::{Script, Then, run};
use agent::guard::blocked::Blocked;
use agent::guard::guarded::Guard;
use agent::guard::recognise::{Opening, opening};
use tokio::io::AsyncReadExt as _;
use tokio_util::sync::CancellationToken;

pub(crate) const TARGET: Target = Target {
    name: "opening",
    run: fuzz,
    words: &[
        "\x07\u{0}GET ",
        "CONNECT ",
        "PRI * HTTP/2",
        "\r\n",
        "\x16\x03\x01",
        "\x05\x01\u{0}",
        "\x05\x02\x01\x02",
        "\x04\x01\u{0}\x50\x01\x01\x01\x01",
    ],
};

/// Longer than whatever is looked at.
const LONGEST: usize = 1024;

fn fuzz(bytes: &[u8]) {
    let [flags, piece, says @ ..] = bytes else { return };
    let says = &says[..says.len().min(LONGEST)];
    let blocked = Blocked { http: flags & 1 != 0, tls: flags & 2 != 0, socks: flags & 4 != 0 };
    // Once it is clear, it stays so.
    let mut clear = Opening::Unclear;
    for end in 0..=says.len() {
        let now = opening(&says[..end], blocked);
        assert!(clear == Opening::Unclear || now == clear);
        clear = now;
    }
    let Some(guard) = Guard::new(blocked, &CancellationToken::new()) else {
        assert_eq!(clear, Opening::Free);
        return;
    };
    let (client, _) = Script::new(says, usize::from(*piece), Then::End).connection();
    let mut stream = guard.around(client);
    let mut got = Vec::new();
    run(async {
        tokio::select! {
            biased;
            read = stream.read_to_end(&mut got) => assert!(read.is_ok()),
            () = guard.stop().cancelled() => {}
        }
    });
    match clear {
        Opening::Blocked(protocol) => {
            assert_eq!(
                (guard.caught(), &*got),
                (Some(protocol), &b""[..]),
                "what comes at once is not passed on"
            );
        }
        Opening::Free | Opening::Unclear => assert_eq!((guard.caught(), &*got), (None, says)),
    }
}
