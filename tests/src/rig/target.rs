//! The server at the end of the tunnels. It says who came, then echoes.

use super::place::Place;
use anyhow::Result;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What it says to an address it does not know.
pub const STRANGER: &str = "stranger";

/// Writes one line with the name of the host whose address connected, then echoes until the other side closes. So a
/// connection that went past the exits is seen as what it is. Stops when dropped.
#[derive(Debug)]
pub struct Target {
    service: SocketAddr,
    probe: SocketAddr,
    served: Arc<Mutex<BTreeMap<String, u64>>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Target {
    /// Starts it. `names` says who has which address.
    ///
    /// # Errors
    /// When it cannot listen.
    pub fn start(place: impl Into<Place>, names: BTreeMap<IpAddr, String>) -> Result<Self> {
        let place = place.into();
        let (service, probe) = (place.listen(0)?, place.listen(0)?);
        let target = Self {
            service: place.addr(service.local_addr()?.port()),
            probe: place.addr(probe.local_addr()?.port()),
            served: Arc::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        let served = target.served.clone();
        let names = Arc::new(names);
        target.accept(service, move |stream, peer| {
            let name = names.get(&peer.ip()).map_or(STRANGER, String::as_str).to_owned();
            *served.lock().unwrap_or_else(PoisonError::into_inner).entry(name.clone()).or_insert(0) += 1;
            async move {
                if let Err(error) = serve(stream, &name).await {
                    tracing::debug!(%error, name, "a connection to the target broke");
                }
            }
        });
        // Measurements only connect.
        target.accept(probe, |stream, _| async move { drop(stream) });
        Ok(target)
    }

    fn accept<F: Future<Output = ()> + Send + 'static>(
        &self,
        listener: TcpListener,
        mut serve: impl FnMut(TcpStream, SocketAddr) -> F + Send + 'static,
    ) {
        let (tasks, stop) = (self.tasks.clone(), self.stop.clone());
        self.tasks.spawn(self.stop.clone().run_until_cancelled_owned(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, peer)) => {
                        tasks.spawn(stop.clone().run_until_cancelled_owned(serve(stream, peer)));
                    }
                    Err(error) => tracing::warn!(%error, "the target cannot accept"),
                }
            }
        }));
    }

    /// Where connections are served.
    #[must_use]
    pub fn service(&self) -> SocketAddr {
        self.service
    }

    /// Where measurements go, so that they are not counted as served.
    #[must_use]
    pub fn probe(&self) -> SocketAddr {
        self.probe
    }

    /// Connections served, by who came.
    #[must_use]
    pub fn served(&self) -> BTreeMap<String, u64> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.stop.cancel();
        self.tasks.close();
    }
}

async fn serve(mut stream: TcpStream, name: &str) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.write_all(format!("{name}\n").as_bytes()).await?;
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            return stream.shutdown().await;
        }
        stream.write_all(&buffer[..length]).await?;
    }
}
