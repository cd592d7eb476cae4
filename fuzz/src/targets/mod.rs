//! One file per target.

pub(crate) mod address;
pub(crate) mod api;
pub(crate) mod command;
pub(crate) mod datagrams;
pub(crate) mod document;
pub(crate) mod envelope;
pub(crate) mod http;
pub(crate) mod http_session;
pub(crate) mod limits;
pub(crate) mod opening;
pub(crate) mod policy;
pub(crate) mod proxy_header;
pub(crate) mod relay;
pub(crate) mod smux;
pub(crate) mod smux_session;
pub(crate) mod socks5;
pub(crate) mod socks5_session;
pub(crate) mod tls;
pub(crate) mod websocket;
