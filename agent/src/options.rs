//! How the data plane behaves apart from its configuration.

use crate::chain::group::choices::Choices;
use crate::clock::{Clock, Random};
use crate::guard::blocked::BlockedProtocols;
use crate::tasks::Tasks;
use std::time::Duration;

/// Deadlines of the stages of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// TCP connect, name resolution included.
    pub connect: Duration,
    /// TLS or websocket handshake.
    pub handshake: Duration,
    /// From the relay request to the exit's answer.
    pub relay_status: Duration,
    /// From accepting a relay client to its complete request.
    pub relay_request: Duration,
    /// Everything until a client connection is through; a service's `dialTimeout` overrides it.
    pub dial: Duration,
    /// How long [`crate::runtime::Runtime::shutdown`] waits for connections to end.
    pub shutdown: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            handshake: Duration::from_secs(5),
            // Longer than an exit's own connect, so that its answer comes before the verdict about it.
            relay_status: Duration::from_secs(10),
            // GOST's `readTimeout` and `dialTimeout`.
            relay_request: Duration::from_secs(15),
            dial: Duration::from_secs(15),
            shutdown: Duration::from_secs(5),
        }
    }
}

/// How a [`crate::runtime::Runtime`] behaves apart from its configuration.
#[derive(Clone, Debug, Default)]
pub struct RuntimeOptions {
    /// Deadlines of the stages of a connection.
    pub deadlines: Deadlines,
    /// Time of the failure marks.
    pub clock: Clock,
    /// For the `rand` strategy and for jitter.
    pub random: Random,
    /// Open client connections of all services together; further ones are refused. `None`: what the limit on open
    /// files allows, at most 65,536.
    pub connection_limit: Option<usize>,
    /// Sessions of datagrams of all services together; datagrams that would begin another are dropped. `None`: what the
    /// limit on open files allows, at most 65,536.
    pub session_limit: Option<usize>,
    /// Whether probes may run commands of this machine. Whoever writes the configuration could then do everything that
    /// the agent may: for configurations of the machine's own operator, or if that one allowed it.
    pub allow_commands: bool,
    /// What persons have chosen in groups that leave it to them.
    pub choices: Choices,
    /// Protocols that clients may not speak.
    pub blocked: BlockedProtocols,
    /// Where what outlives a connection runs. Each runtime puts its own here.
    pub tasks: Tasks,
}
