//! Real GOST, sing-box and curl on the other side, in both roles; and schemathesis in front of the panel's API.
//!
//! A peer that is not installed skips its rows and no others (`cargo xtask setup --peers` gets them). Everything runs
//! on addresses of the loopback network that are this process's own, see `address`.
//!
//! | variable | default | is |
//! | --- | --- | --- |
//! | `EXITPILOT_INTEROP_MIB` | 64 | MiB carried each way by the rows about bulk |
//! | `EXITPILOT_INTEROP_UDP_SECONDS` | 9 | seconds for which a session of datagrams is kept busy |
//!
//! The long form is `EXITPILOT_INTEROP_MIB=1024 EXITPILOT_INTEROP_UDP_SECONDS=60 cargo xtask test interop`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall fail where it stands")]

mod address;
mod auth;
mod conformance;
mod groups;
mod node;
mod peers;
mod proxies;
mod relay;
mod swap;
mod talk;
mod target;
mod tls;
mod udp;
