//! One configured service and what has become of it.

use super::{ApplyError, listen_reason};
use crate::net::ListenAddress;
use crate::service::Service;
use crate::service::listener::{Bound, Listening};
use crate::service::plane::Plane;
use arc_swap::ArcSwap;
use shared::gost::ServiceConfig;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Pause before listening is tried again after a start with the port taken.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// It doubles up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// One configured service.
pub(super) struct Entry {
    pub(super) config: ServiceConfig,
    pub(super) state: State,
}

/// What has become of it.
pub(super) enum State {
    /// Loaded at start and not understood; kept, since another version may understand it.
    Invalid(String),
    Built(Built),
}

/// A service that is understood.
pub(super) struct Built {
    /// What connections to come are served by.
    pub(super) service: Arc<ArcSwap<Service>>,
    pub(super) address: ListenAddress,
    pub(super) socket: Socket,
    /// Ends the connections; those of every listener the service has had since the last pause.
    pub(super) connections: CancellationToken,
}

/// Whether a service listens.
pub(super) enum Socket {
    Open(Listening),
    Paused,
    /// Could not listen; tried again when due.
    Waiting {
        reason: String,
        pause: Duration,
        due: Instant,
    },
    /// Closed for a moment within one change.
    Closed,
}

/// A configuration that is understood, before it takes effect.
pub(super) struct Plan {
    pub(super) config: ServiceConfig,
    pub(super) service: Service,
    pub(super) address: ListenAddress,
    pub(super) paused: bool,
    /// Bound for this plan; `None` if it needs no new one.
    pub(super) listener: Option<Bound>,
}

impl Entry {
    pub(super) fn built(&self) -> Option<&Built> {
        match &self.state {
            State::Invalid(_) => None,
            State::Built(built) => Some(built),
        }
    }

    /// Why it does not run although it should.
    pub(super) fn failure(&self) -> Option<&str> {
        match &self.state {
            State::Invalid(reason) => Some(reason),
            State::Built(Built { socket: Socket::Waiting { reason, .. }, .. }) => Some(reason),
            State::Built(_) => None,
        }
    }

    pub(super) fn listening(&self) -> Option<&Listening> {
        match &self.built()?.socket {
            Socket::Open(listening) => Some(listening),
            Socket::Paused | Socket::Waiting { .. } | Socket::Closed => None,
        }
    }

    /// Closes the listener, if there is one; the port is free then. Connections go on.
    pub(super) async fn close(&mut self, after: Socket) {
        if let State::Built(built) = &mut self.state
            && let Socket::Open(listening) = std::mem::replace(&mut built.socket, after)
        {
            listening.close().await;
        }
    }

    /// Ends the connections; later ones are not concerned.
    pub(super) fn cut_connections(&mut self, plane: &Plane) {
        if let State::Built(built) = &mut self.state {
            std::mem::replace(&mut built.connections, plane.stop.child_token()).cancel();
        }
    }
}

impl Built {
    pub(super) fn new(service: Service, address: ListenAddress, plane: &Plane) -> Self {
        Self {
            service: Arc::new(ArcSwap::from_pointee(service)),
            address,
            socket: Socket::Closed,
            connections: plane.stop.child_token(),
        }
    }

    /// Whether a plan would listen where this listens.
    pub(super) fn listens_as(&self, plan: &Plan) -> bool {
        self.address == plan.address
            && self.service.load().takes_datagrams() == plan.service.takes_datagrams()
    }

    /// Begins to accept; what was open before is returned to be closed.
    pub(super) fn open(&mut self, listener: Bound, plane: &Arc<Plane>) -> io::Result<Option<Listening>> {
        let (service, connections) = (self.service.clone(), self.connections.clone());
        let listening = Listening::start(listener, service, connections, plane)?;
        match std::mem::replace(&mut self.socket, Socket::Open(listening)) {
            Socket::Open(before) => Ok(Some(before)),
            Socket::Paused | Socket::Waiting { .. } | Socket::Closed => Ok(None),
        }
    }

    /// Plans the next try to listen.
    pub(super) fn wait(&mut self, error: &io::Error, addr: &str, plane: &Plane) {
        let pause = match &self.socket {
            Socket::Waiting { pause, .. } => (*pause * 2).min(LONGEST_PAUSE),
            Socket::Open(_) | Socket::Paused | Socket::Closed => FIRST_PAUSE,
        };
        let due = plane.options.clock.instant() + plane.options.random.jitter(pause);
        self.socket =
            Socket::Waiting { reason: format!("listen on {addr}: {}", listen_reason(error)), pause, due };
    }

    /// When listening is tried again.
    pub(super) fn due(&self) -> Option<Instant> {
        match &self.socket {
            Socket::Waiting { due, .. } => Some(*due),
            Socket::Open(_) | Socket::Paused | Socket::Closed => None,
        }
    }
}

/// The error of a service that cannot listen.
pub(super) fn listen_error(config: &ServiceConfig, source: io::Error) -> ApplyError {
    ApplyError::Listen { service: config.name.clone(), addr: config.addr.clone(), source }
}
