//! Connections that stay open over switches.

use super::place::Place;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Between two messages on a connection.
const PACE: Duration = Duration::from_millis(100);
/// Bytes of a message.
const MESSAGE: usize = 512;
/// For the connection to be made.
const OPEN: Duration = Duration::from_secs(15);
/// How long the last message may take when the client ends it: a link may just have lost some packets.
const LAST: Duration = Duration::from_secs(30);

/// Who ended a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// We did.
    Client,
    /// It broke, or was closed on the other side.
    Other(String),
}

/// The life of one connection. Times since the start that was given.
#[derive(Clone, Debug)]
pub struct Life {
    /// When it was open.
    pub opened: Duration,
    /// When it was over.
    pub ended: Duration,
    /// What the target said at its start.
    pub exit: String,
    /// Bytes that came back.
    pub bytes: u64,
    /// Who ended it.
    pub ending: Ending,
}

/// An open connection on which something is sent and comes back all the time.
#[derive(Debug)]
pub struct LongLived {
    exit: String,
    bytes: Arc<AtomicU64>,
    stop: CancellationToken,
    task: JoinHandle<Life>,
}

impl LongLived {
    /// Opens one and waits for what the target says.
    ///
    /// # Errors
    /// When it does not get there.
    pub async fn open(place: &Place, to: SocketAddr, start: Instant) -> std::io::Result<Self> {
        let opening = Box::pin(async {
            let stream = place.connect(to).await?;
            stream.set_nodelay(true)?;
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            stream.read_line(&mut line).await?;
            let name = line.strip_suffix('\n').ok_or(std::io::ErrorKind::UnexpectedEof)?.to_owned();
            Ok::<_, std::io::Error>((stream, name))
        });
        let (stream, exit) =
            tokio::time::timeout(OPEN, opening).await.map_err(|_| std::io::ErrorKind::TimedOut)??;
        let (bytes, stop) = (Arc::new(AtomicU64::new(0)), CancellationToken::new());
        let opened = start.elapsed();
        let task = tokio::spawn({
            let (exit, bytes, stop) = (exit.clone(), bytes.clone(), stop.clone());
            async move {
                let ending = live(stream, &bytes, &stop).await;
                Life { opened, ended: start.elapsed(), exit, bytes: bytes.load(Ordering::Relaxed), ending }
            }
        });
        Ok(Self { exit, bytes, stop, task })
    }

    /// The exit it goes through, as the target said.
    #[must_use]
    pub fn exit(&self) -> &str {
        &self.exit
    }

    /// Bytes that came back so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether it has not ended.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.task.is_finished()
    }

    /// Ends it, if it has not ended, and tells its life.
    ///
    /// # Errors
    /// When its task panicked.
    pub async fn close(self) -> anyhow::Result<Life> {
        self.stop.cancel();
        Ok(self.task.await?)
    }
}

async fn live(mut stream: BufReader<TcpStream>, bytes: &AtomicU64, stop: &CancellationToken) -> Ending {
    let mut pace = tokio::time::interval(PACE);
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut number = 0u8;
    loop {
        tokio::select! {
            _ = pace.tick() => {}
            () = stop.cancelled() => break,
        }
        number = number.wrapping_add(1);
        let exchange = Box::pin(exchange(&mut stream, number));
        let ended = async {
            stop.cancelled().await;
            tokio::time::sleep(LAST).await;
        };
        let result = tokio::select! {
            result = exchange => result,
            () = ended => Err(std::io::Error::from(std::io::ErrorKind::TimedOut)),
        };
        match result {
            Ok(()) => {
                bytes.fetch_add(MESSAGE as u64, Ordering::Relaxed);
            }
            Err(error) => return Ending::Other(error.to_string()),
        }
    }
    let closing = async {
        stream.get_mut().shutdown().await?;
        stream.read(&mut [0; 1]).await
    };
    match tokio::time::timeout(LAST, closing).await {
        Ok(Ok(0)) => Ending::Client,
        Ok(Ok(_)) => Ending::Other("more came back than was sent".to_owned()),
        Ok(Err(error)) => Ending::Other(error.to_string()),
        Err(_) => Ending::Other("it did not close".to_owned()),
    }
}

async fn exchange(stream: &mut BufReader<TcpStream>, number: u8) -> std::io::Result<()> {
    stream.get_mut().write_all(&[number; MESSAGE]).await?;
    let mut back = [0; MESSAGE];
    stream.read_exact(&mut back).await?;
    if back != [number; MESSAGE] {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "something else came back"));
    }
    Ok(())
}
