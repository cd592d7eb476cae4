//! What is fed to every decoder of bytes from outside, and what must hold whatever they are. Besides: no panic.
//!
//! `cargo test -p fuzz` runs the corpora and mutations of them; `cargo xtask fuzz` a coverage-guided engine (the
//! program in `main.rs`).

mod link;
mod script;
mod targets;

use targets::{
    address, api, command, datagrams, document, envelope, http, http_session, limits, opening, policy,
    proxy_header, relay, smux, smux_session, socks5, socks5_session, tls, websocket,
};

/// One decoder.
#[derive(Debug)]
pub struct Target {
    /// Also the folder of its corpus.
    pub name: &'static str,
    /// Panics when something does not hold.
    pub run: fn(&[u8]),
    /// Pieces of its language.
    pub words: &'static [&'static str],
}

/// All of them.
pub static TARGETS: [Target; 19] = [
    relay::TARGET,
    datagrams::TARGET,
    smux::TARGET,
    smux_session::TARGET,
    socks5::TARGET,
    socks5_session::TARGET,
    http::TARGET,
    http_session::TARGET,
    tls::TARGET,
    websocket::TARGET,
    proxy_header::TARGET,
    opening::TARGET,
    document::TARGET,
    envelope::TARGET,
    command::TARGET,
    limits::TARGET,
    policy::TARGET,
    address::TARGET,
    api::TARGET,
];

/// The target of that name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
