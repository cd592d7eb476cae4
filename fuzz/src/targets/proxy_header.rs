//! The PROXY protocol, versions 1 and 2.

use crate::Target;
use crate::script::{Script, Then, run};
use agent::proxy_protocol::{Version, header, read};
use futures_util::FutureExt as _;

pub(crate) const TARGET: Target = Target {
    name: "proxy_header",
    run: fuzz,
    words: &[
        "PROXY TCP4 ",
        "PROXY TCP6 ",
        "PROXY UNKNOWN",
        "\r\n\r\n\u{0}\r\nQUIT\n",
        "127.0.0.1 ",
        "65536",
        "\r\n",
        "\x21\x11\u{0}\x0c",
    ],
};

fn fuzz(bytes: &[u8]) {
    let (mut stream, heard) = Script::new(bytes, 1, Then::End).connection();
    let cut = run(read(&mut stream)).map_err(|error| error.to_string());
    let mut stream = bytes;
    // A slice is never pending.
    let whole = read(&mut stream).now_or_never().expect("a slice");
    let whole = whole.map_err(|error| error.to_string());
    assert_eq!(cut, whole);
    if whole.is_ok() {
        assert_eq!(heard.said(), bytes.len() - stream.len());
    }
    let Ok(Some(ends)) = whole else { return };
    for version in [Version::One, Version::Two] {
        let header = header(version, ends).expect("ends that were read can be written");
        let mut header = header.as_slice();
        let again = read(&mut header).now_or_never();
        assert_eq!(again.and_then(Result::ok).flatten(), Some(ends));
        assert!(header.is_empty());
    }
}
