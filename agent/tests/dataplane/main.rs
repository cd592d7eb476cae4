//! The data plane over real sockets: entry and exits are runtimes in this process, targets see who connects to them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall fail where it stands")]

mod api;
mod api_rig;
mod carry;
mod chain_groups;
mod clash;
mod clash_connections;
mod clash_delay;
mod clash_rig;
mod coverage;
mod examples;
mod failover;
mod http_plain;
mod http_proxy;
mod interop;
mod limits;
mod mux;
mod observe;
mod observe_bytes;
mod parallel;
mod plain;
mod policies;
mod policy_examples;
mod policy_groups;
mod probes;
mod proxy_nodes;
mod proxy_protocol;
mod proxy_rig;
mod refuse;
mod relay_server;
mod reload;
mod rig;
mod services;
mod socks5;
mod socks5_tunnel;
mod socks5_udp;
mod swap;
mod transports;
mod trial;
mod udp;
mod udp_limits;
mod udp_relay;
mod udp_rig;
mod udp_services;
mod ws_peers;
