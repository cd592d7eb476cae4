//! Configuration documents, from the text to the check.

use crate::Target;
use agent::document::parse;
use agent::runtime::Runtime;
use shared::gost::GostConfig;

pub(crate) const TARGET: Target = Target {
    name: "document",
    run: fuzz,
    words: &[
        "services:",
        "chains:",
        "hops:",
        "nodes:",
        "limiters:",
        "climiters:",
        "rlimiters:",
        "limits:",
        "- ",
        "\n  ",
        "name: ",
        "addr: ",
        "handler: ",
        "listener: ",
        "connector: ",
        "dialer: ",
        "type: ",
        "relay",
        "socks5",
        "http",
        "tcp",
        "udp",
        "rudp",
        "tls",
        "mwss",
        "selector: ",
        "strategy: ",
        "failTimeout: ",
        "maxFails: ",
        "metadata: ",
        "auth: ",
        "tls: ",
        "forwarder: ",
        "chain: ",
        "chainGroup: ",
        "retries: ",
        "probe: ",
        "interval: ",
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
};

/// Documents have a limit of their own; longer ones than this only make more of the same.
const LONGEST: usize = 16 * 1024;

fn fuzz(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if text.len() > LONGEST {
        return;
    }
    let Ok(config) = parse(text) else { return };
    check(&config);
    let json = serde_json::to_string(&config).expect("a configuration can be written");
    assert_eq!(parse(&json).expect("what we write we can read"), config);
}

/// Everything that a document is checked for, with what it doubts.
pub(crate) fn check(config: &GostConfig) {
    if let Err(problems) = Runtime::validate(config) {
        assert!(problems.iter().all(|problem| !problem.is_empty()));
    }
    let _ = Runtime::warnings(config);
}
