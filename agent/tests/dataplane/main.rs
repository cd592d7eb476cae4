//! The data plane over real sockets: entry and exits are runtimes in this process, targets see who connects to them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall fail where it stands")]

mod carry;
mod failover;
mod interop;
mod limits;
mod plain;
mod probes;
mod refuse;
mod relay_server;
mod rig;
mod services;
mod swap;
mod udp;
mod udp_limits;
mod udp_relay;
mod udp_rig;
mod udp_services;
