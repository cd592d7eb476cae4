//! One request and its response, passed on between a client and its target.

use super::Service;
use super::http::{Answer, Plain};
use super::parting::part;
use super::plane::Plane;
use crate::proxy::http::body::Body;
use crate::proxy::http::forward;
use crate::proxy::http::head::{self, ResponseHead};
use crate::relay::pump::Client;
use crate::relay::traffic::Traffic;
use crate::stream::Stream;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;

/// How long a target may think before the head of its response: longer than any that answers at last.
const THINKING: Duration = Duration::from_secs(300);
/// Bytes on the way per direction.
const BLOCK: usize = 32 * 1024;

/// How an exchange ended well.
enum End {
    /// The response is through.
    Complete,
    /// Another protocol is spoken from now on; these bytes of the target are its first.
    Switched(Vec<u8>),
}

/// How it ended otherwise.
enum Failure {
    /// The client has got nothing yet.
    Unanswered(Answer),
    /// In the middle.
    Cut(io::Error),
}

/// Passes the request on, and the response back, then ends the connection; after a change of protocol it goes on.
pub(super) async fn exchange(
    service: &Service,
    mut client: Client,
    (mut upstream, plain): (Stream, Plain),
    plane: &Plane,
    stop: &CancellationToken,
) -> io::Result<()> {
    let traffic = client.traffic().unwrap_or(&service.traffic).clone();
    let traffic = &*traffic;
    let passed = tokio::select! {
        passed = pass(client.stream(), &mut upstream, &plain, traffic) => passed,
        () = stop.cancelled() => Err(Failure::Cut(io::Error::new(io::ErrorKind::ConnectionAborted, "stopped"))),
    };
    match passed {
        Ok(End::Complete) => part(client, b"", plane).await,
        Ok(End::Switched(first)) => {
            let sending = client.stream().write_all(&first);
            crate::net::within(plane.options.deadlines.handshake, sending).await?;
            traffic.add_down(first.len());
            client.pump(upstream, stop).await
        }
        Err(Failure::Unanswered(answer)) => answer.tell(client, plane).await,
        Err(Failure::Cut(error)) => {
            // What was cut off must not look complete.
            client.refuse();
            upstream.abort();
            Err(error)
        }
    }
}

async fn pass(
    client: &mut Stream,
    upstream: &mut Stream,
    plain: &Plain,
    traffic: &Traffic,
) -> Result<End, Failure> {
    // Either may take its time.
    client.keep_alive();
    upstream.keep_alive();
    let (mut from_client, mut to_client) = tokio::io::split(client);
    let (mut from_target, mut to_target) = tokio::io::split(upstream);
    let mut back = std::pin::pin!(back(&mut from_target, &mut to_client, plain, traffic));
    let mut forth = std::pin::pin!(forth(&mut from_client, &mut to_target, plain, traffic));
    let mut sending = true;
    loop {
        tokio::select! {
            // A target may answer before it has the whole request.
            biased;
            end = &mut back => return end,
            sent = &mut forth, if sending => {
                sending = false;
                sent.map_err(Failure::Cut)?;
            }
        }
    }
}

/// The request. An error is the client's: a target that takes no more may still answer.
async fn forth(
    client: &mut (impl AsyncRead + Unpin),
    target: &mut (impl AsyncWrite + Unpin),
    plain: &Plain,
    traffic: &Traffic,
) -> io::Result<()> {
    let mut body = plain.body;
    let mut send = async |bytes: &[u8]| {
        target.write_all(bytes).await?;
        traffic.add_up(bytes.len());
        io::Result::Ok(())
    };
    let mut sent = send(&plain.bytes).await;
    let mut block = Vec::new();
    while !body.is_complete() && sent.is_ok() {
        block.resize(BLOCK, 0);
        let read = client.read(&mut block).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let part = body.take(&block[..read]).map_err(io::Error::other)?;
        sent = send(&block[..part]).await;
    }
    if let Err(error) = sent.and(target.flush().await) {
        tracing::debug!(%error, "the target takes no more of the request");
    }
    Ok(())
}

/// The response.
async fn back(
    target: &mut (impl AsyncRead + Unpin),
    client: &mut (impl AsyncWrite + Unpin),
    plain: &Plain,
    traffic: &Traffic,
) -> Result<End, Failure> {
    let mut there = Vec::new();
    let head = loop {
        let head = match tokio::time::timeout(THINKING, response(target, &mut there)).await {
            Ok(head) => head.map_err(|text| Failure::Unanswered(Answer::new(502, text)))?,
            Err(_) => return Err(Failure::Unanswered(Answer::new(504, "The target does not answer."))),
        };
        if head.code == 101 && !plain.upgrade {
            return Err(Failure::Unanswered(Answer::new(502, "The target answers what was not asked.")));
        }
        if head.code == 101 || head.code >= 200 {
            break head;
        }
        tell(client, &forward::response(&head), traffic).await.map_err(Failure::Cut)?;
        client.flush().await.map_err(Failure::Cut)?;
    };
    let mut body = Body::of_response(&head, &plain.head.method)
        .map_err(|error| Failure::Unanswered(Answer::new(502, error.to_string())))?;
    tell(client, &forward::response(&head), traffic).await.map_err(Failure::Cut)?;
    if head.code == 101 {
        client.flush().await.map_err(Failure::Cut)?;
        return Ok(End::Switched(there));
    }
    body_back((target, client), &mut body, there, traffic).await.map_err(Failure::Cut)?;
    Ok(End::Complete)
}

/// Reads the head of a response; what has come behind it stays in `there`.
async fn response(
    target: &mut (impl AsyncRead + Unpin),
    there: &mut Vec<u8>,
) -> Result<ResponseHead, String> {
    loop {
        match head::response(there) {
            Ok(Some((head, end))) => {
                there.drain(..end);
                return Ok(head);
            }
            Ok(None) => {}
            Err(error) => return Err(format!("The target's answer: {error}.")),
        }
        match target.read_buf(there).await {
            Ok(0) => return Err("The target has hung up.".to_owned()),
            Ok(_) => {}
            Err(_) => return Err("The connection to the target was lost.".to_owned()),
        }
    }
}

/// Sends to the client, and counts that.
async fn tell(client: &mut (impl AsyncWrite + Unpin), bytes: &[u8], traffic: &Traffic) -> io::Result<()> {
    client.write_all(bytes).await?;
    traffic.add_down(bytes.len());
    Ok(())
}

async fn body_back(
    (target, client): (&mut (impl AsyncRead + Unpin), &mut (impl AsyncWrite + Unpin)),
    body: &mut Body,
    there: Vec<u8>,
    traffic: &Traffic,
) -> io::Result<()> {
    let part = body.take(&there).map_err(io::Error::other)?;
    tell(client, &there[..part], traffic).await?;
    drop(there);
    let mut block = Vec::new();
    while !body.is_complete() {
        client.flush().await?;
        block.resize(BLOCK, 0);
        let read = target.read(&mut block).await?;
        if read == 0 {
            return match body {
                Body::UntilEnd => client.flush().await,
                Body::Length(_) | Body::Chunked(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            };
        }
        let part = body.take(&block[..read]).map_err(io::Error::other)?;
        tell(client, &block[..part], traffic).await?;
    }
    client.flush().await
}
