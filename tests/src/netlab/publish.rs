//! Ways from outside into the lab.

use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::error::LabError;
use super::host::Host;

/// Connections relayed at the same time by one listener; more wait in the kernel.
const CONNECTIONS: usize = 1024;
/// How long a host may take to accept.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// Pause after a failed accept (out of descriptors), so that it does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Relays TCP connections to `listen` to `port` of `host` until `cancel`.
pub(crate) fn publish(
    listen: SocketAddr,
    host: &Host,
    port: u16,
    tasks: &TaskTracker,
    cancel: &CancellationToken,
) -> Result<SocketAddr, LabError> {
    let runtime = tokio::runtime::Handle::try_current().map_err(|_| LabError::NoRuntime)?;
    let listener = StdListener::bind(listen).map_err(LabError::io("listening for the lab"))?;
    listener.set_nonblocking(true).map_err(LabError::io("listening for the lab"))?;
    let listener = TcpListener::from_std(listener).map_err(LabError::io("listening for the lab"))?;
    let address = listener.local_addr().map_err(LabError::io("listening for the lab"))?;
    let relays = Relays { host: host.clone(), port, tasks: tasks.clone(), cancel: cancel.clone() };
    tasks.spawn_on(relays.accept(listener), &runtime);
    Ok(address)
}

struct Relays {
    host: Host,
    port: u16,
    tasks: TaskTracker,
    cancel: CancellationToken,
}

impl Relays {
    async fn accept(self, listener: TcpListener) {
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        let accept_all = async {
            loop {
                // The semaphore is never closed.
                let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
                let client = match listener.accept().await {
                    Ok((client, _)) => client,
                    Err(error) => {
                        tracing::warn!(%error, host = self.host.name(), "cannot accept for the lab");
                        sleep(ACCEPT_PAUSE).await;
                        continue;
                    }
                };
                let (host, port, cancel) = (self.host.clone(), self.port, self.cancel.clone());
                self.tasks.spawn(async move {
                    cancel.run_until_cancelled(relay(client, &host, port)).await;
                    drop(place);
                });
            }
        };
        self.cancel.run_until_cancelled(accept_all).await;
    }
}

/// Copies until both sides have closed; an open connection may be idle for as long as the lab lives.
async fn relay(mut client: TcpStream, host: &Host, port: u16) {
    let mut server = match timeout(CONNECT_LIMIT, host.connect(host.addr(port))).await {
        Ok(Ok(server)) => server,
        Ok(Err(error)) => {
            tracing::debug!(%error, host = host.name(), port, "published port not reached");
            return;
        }
        Err(_) => {
            tracing::debug!(host = host.name(), port, "published port not reached in time");
            return;
        }
    };
    for stream in [&client, &server] {
        // Only slower without.
        let _ = stream.set_nodelay(true);
    }
    if let Err(error) = copy_bidirectional(&mut client, &mut server).await {
        tracing::debug!(%error, host = host.name(), port, "published connection broke");
    }
}
