//! Services that listen for datagrams.

use super::Service;
use super::Transport;
use super::plane::Plane;
use super::sessions::{Beginning, SessionOptions, Sessions};
use crate::datagram::inbox::InboxLimits;
use crate::datagram::listener::{DatagramClient, DatagramListener};
use crate::metadata::{ConfigError, MetadataReader};
use crate::proxy_protocol::{Ends, Version, datagram_header};
use arc_swap::ArcSwap;
use shared::gost::ListenerConfig;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// GOST's default.
const TTL: Duration = Duration::from_secs(5);
/// Sessions that look for their way at the same time. GOST's 128 are those that wait to be accepted, for no time at all;
/// ours wait for an exit.
const OPENING: usize = 1024;
/// Datagrams that may wait in a session. GOST's default is 128, which a burst of a millisecond fills.
const QUEUED: usize = 1024;
/// Bytes that may wait in a session: eight of the largest datagrams.
const QUEUED_BYTES: usize = 512 * 1024;
/// The largest payload of a datagram.
const LARGEST: usize = 65_535;
/// Datagrams received before the tasks that send them on get their turn.
const BATCH: usize = 64;
/// Pause after a failed receive.
const PAUSE: Duration = Duration::from_millis(100);

/// Reads the options of a listener `udp`. `path` is the listener's, for errors.
pub(super) fn options(path: &str, listener: &ListenerConfig) -> Result<SessionOptions, ConfigError> {
    if listener.tls.is_some() {
        return Err(ConfigError::new(format!("{path}.tls"), "udp has no tls options"));
    }
    let known = [
        "keepAlive",
        "keepalive.",
        "ttl",
        "backlog",
        "readQueueSize",
        "recvQueueSize",
        "readBufferSize",
        "udp.bufferSize",
        "stateless",
    ];
    let metadata = MetadataReader::new(format!("{path}.metadata"), &listener.metadata, &known)?;
    metadata.refuse("stateless")?;
    // Buffers always hold the largest datagram there is, so any size that is wished for is there.
    metadata.number("readBufferSize")?;
    metadata.number("udp.bufferSize")?;
    let at_least_one = |number: Option<u32>| number.filter(|n| *n > 0).and_then(|n| usize::try_from(n).ok());
    let ttl = metadata.duration("ttl")?.or(metadata.duration("keepalive.ttl")?);
    let queued = metadata.number("readQueueSize")?.or(metadata.number("recvQueueSize")?);
    // GOST ends a session with the first answer unless told otherwise, which its users take for a fault. Here that has
    // to be asked for.
    let says_keepalive = listener.metadata.keys().any(|key| key.eq_ignore_ascii_case("keepAlive"));
    Ok(SessionOptions {
        ttl: ttl.filter(|ttl| !ttl.is_zero()).unwrap_or(TTL),
        one_answer: says_keepalive && !metadata.flag("keepAlive")?,
        most: usize::MAX,
        opening: at_least_one(metadata.number("backlog")?).unwrap_or(OPENING),
        inbox: InboxLimits { datagrams: at_least_one(queued).unwrap_or(QUEUED), bytes: QUEUED_BYTES },
    })
}

/// Receives until `stop`. `connections` ends the sessions, and so does the end of this: their answers leave through the same
/// socket, which is closed afterwards.
pub(super) async fn receive(
    listener: DatagramListener,
    service: Arc<ArcSwap<Service>>,
    stop: CancellationToken,
    connections: CancellationToken,
    plane: Arc<Plane>,
) {
    let listener = Arc::new(listener);
    let sessions = Sessions::new(plane, connections.child_token());
    let mut buffer = vec![0; LARGEST];
    let receiving = async {
        loop {
            let ready = listener.readable().await;
            let outcome = ready.and_then(|()| batch(&listener, &service, &sessions, &mut buffer));
            if let Err(error) = outcome {
                tracing::warn!(service = service.load().name, %error, "receive failed");
                tokio::time::sleep(PAUSE).await;
            }
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = receiving => {}
    }
    sessions.end().await;
}

/// Who the client is, if the target is to be told.
fn announcement(service: &Service, listener: &DatagramListener, client: DatagramClient) -> Option<Vec<u8>> {
    service.proxy_out.filter(|version| *version == Version::Two)?;
    let destination = listener.destination(client).ok()?;
    datagram_header(Ends { source: client.addr, destination }).ok()
}

/// Passes on what is there.
fn batch(
    listener: &Arc<DatagramListener>,
    service: &ArcSwap<Service>,
    sessions: &Arc<Sessions<DatagramClient>>,
    buffer: &mut [u8],
) -> io::Result<()> {
    for _ in 0..BATCH {
        let (len, client) = match listener.try_receive(buffer) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        };
        sessions.pass(&client, &buffer[..len], || {
            let service = service.load_full();
            // Otherwise the service is becoming one for connections in this moment.
            let Transport::Udp(options) = service.transport else { return None };
            let to = listener.answers(client);
            let key = client.addr.ip().to_canonical().into();
            let announcement = announcement(&service, listener, client);
            let address = client.addr;
            Some(Beginning {
                service,
                options,
                target: None,
                client: key,
                address,
                is_client: true,
                announcement,
                to,
            })
        });
    }
    Ok(())
}
