//! The end of a client that is told something and then let go.

use super::plane::Plane;
use crate::net::within;
use crate::relay::pump::Client;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// How long, and how much, is read from a client that was told an error: closing with its bytes unread would reset the
/// connection, and the answer with it.
const PARTING: Duration = Duration::from_secs(1);
const PARTING_BYTES: u64 = 64 * 1024;

/// Says the last words, ends the direction to the client, and lets it read.
pub(super) async fn part(mut client: Client, words: &[u8], plane: &Plane) -> io::Result<()> {
    let stream = client.stream();
    within(plane.options.deadlines.handshake, async {
        stream.write_all(words).await?;
        stream.shutdown().await
    })
    .await?;
    let mut rest = stream.take(PARTING_BYTES);
    within(PARTING, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await.map(|_| ())
}
