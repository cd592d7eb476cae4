//! The HTTP exchange that begins a websocket.

use super::HALF_CLOSE;
use super::options::{WsClient, WsServer};
use super::stream::{Role, WsStream};
use crate::clock::Random;
use crate::net::within;
use crate::stream::Stream;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write as _;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// Longest head of a request or answer, and most headers in it.
const HEAD_BYTES: usize = 8 * 1024;
const MOST_HEADERS: usize = 64;
/// Longest part of a refusal's reason that is shown.
const SHOWN_REASON: usize = 100;

/// What an answer or request said, once its head is complete.
struct Head<T> {
    said: T,
    /// Bytes after the head: they belong to the websocket already.
    rest: Vec<u8>,
}

impl WsClient {
    /// Asks for the websocket, within `deadline`.
    pub async fn handshake(
        &self,
        mut stream: Stream,
        random: &Random,
        deadline: Duration,
    ) -> io::Result<Stream> {
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&random.next().to_be_bytes());
        nonce[8..].copy_from_slice(&random.next().to_be_bytes());
        let key = STANDARD.encode(nonce);
        let mut request = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: {HALF_CLOSE}\r\n",
            self.path, self.host
        );
        push_headers(&mut request, &self.headers);
        let exchange = async {
            stream.write_all(request.as_bytes()).await?;
            stream.flush().await?;
            read_head(&mut stream, |head| understand_answer(head, &key)).await
        };
        let head = within(deadline, exchange).await?;
        let half_close = head.said?;
        let stream = WsStream::new(stream, Role::Client, random.clone(), half_close, self.ping, head.rest);
        Ok(Stream::Layered(Box::new(stream)))
    }
}

impl WsServer {
    /// Waits for the request and answers it, within `deadline`.
    pub async fn handshake(
        &self,
        mut stream: Stream,
        random: &Random,
        deadline: Duration,
    ) -> io::Result<Stream> {
        let exchange = async {
            let head = read_head(&mut stream, |head| understand_request(head, &self.path)).await?;
            let (answer, asked) = match head.said {
                Ok(asked) => {
                    let mut answer = format!(
                        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                         Sec-WebSocket-Accept: {}\r\n",
                        asked.accept
                    );
                    if asked.half_close {
                        let _ = write!(answer, "Sec-WebSocket-Protocol: {HALF_CLOSE}\r\n");
                    }
                    push_headers(&mut answer, &self.headers);
                    (answer, Ok(asked))
                }
                Err(status) => {
                    let answer =
                        format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                    (answer, Err(status))
                }
            };
            stream.write_all(answer.as_bytes()).await?;
            stream.flush().await?;
            match asked {
                Ok(asked) => Ok((asked.half_close, head.rest)),
                Err(status) => {
                    stream.shutdown().await?;
                    Err(io::Error::other(format!("no request for the websocket: answered {status}")))
                }
            }
        };
        let (half_close, rest) = within(deadline, exchange).await?;
        let stream = WsStream::new(stream, Role::Server, random.clone(), half_close, None, rest);
        Ok(Stream::Layered(Box::new(stream)))
    }
}

fn push_headers(head: &mut String, headers: &[(String, String)]) {
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    head.push_str("\r\n");
}

/// Reads until `understand` has a complete head: what it says, and the length.
async fn read_head<T>(
    stream: &mut Stream,
    understand: impl Fn(&[u8]) -> io::Result<Option<(T, usize)>>,
) -> io::Result<Head<T>> {
    let mut bytes = Vec::with_capacity(1024);
    loop {
        if (&mut *stream).take((HEAD_BYTES - bytes.len()) as u64).read_buf(&mut bytes).await? == 0 {
            let reason =
                if bytes.len() >= HEAD_BYTES { "the head is too long" } else { "closed in the handshake" };
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, reason));
        }
        if let Some((said, len)) = understand(&bytes)? {
            return Ok(Head { said, rest: bytes.split_off(len) });
        }
    }
}

fn not_http(error: httparse::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not a websocket peer: {error}"))
}

/// Whether the server knows ends of single directions.
fn understand_answer(bytes: &[u8], key: &str) -> io::Result<Option<(io::Result<bool>, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut answer = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(len) = answer.parse(bytes).map_err(not_http)? else { return Ok(None) };
    let refused = |reason: String| Err(io::Error::new(io::ErrorKind::ConnectionRefused, reason));
    let said = match answer.code {
        Some(101) if !has_token(answer.headers, "upgrade", "websocket") => {
            refused("the answer upgrades to something else".to_owned())
        }
        Some(101)
            if value(answer.headers, "sec-websocket-accept") != Some(&derive_accept_key(key.as_bytes())) =>
        {
            refused("the answer is to another request".to_owned())
        }
        Some(101) => Ok(has_token(answer.headers, "sec-websocket-protocol", HALF_CLOSE)),
        Some(code) => {
            let reason: String = answer.reason.unwrap_or_default().chars().take(SHOWN_REASON).collect();
            refused(format!("the websocket was refused: HTTP {code} {reason}"))
        }
        None => refused("an answer without status".to_owned()),
    };
    Ok(Some((said, len)))
}

/// A request for the websocket.
struct Asked {
    accept: String,
    half_close: bool,
}

/// What is asked, or the status of a refusal.
fn understand_request(bytes: &[u8], path: &str) -> io::Result<Option<(Result<Asked, &'static str>, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(len) = request.parse(bytes).map_err(not_http)? else { return Ok(None) };
    let headers = &*request.headers;
    let wanted = request.path.unwrap_or_default();
    let said = if wanted.split('?').next() != Some(path) {
        Err("404 Not Found")
    } else if request.method != Some("GET")
        || !has_token(headers, "upgrade", "websocket")
        || !has_token(headers, "connection", "upgrade")
    {
        Err("400 Bad Request")
    } else if value(headers, "sec-websocket-version") != Some("13") {
        Err("426 Upgrade Required\r\nSec-WebSocket-Version: 13")
    } else {
        match value(headers, "sec-websocket-key") {
            None => Err("400 Bad Request"),
            Some(key) => Ok(Asked {
                accept: derive_accept_key(key.as_bytes()),
                half_close: has_token(headers, "sec-websocket-protocol", HALF_CLOSE),
            }),
        }
    };
    Ok(Some((said, len)))
}

fn values<'a>(headers: &'a [httparse::Header<'_>], name: &str) -> impl Iterator<Item = &'a str> {
    headers
        .iter()
        .filter(move |header| header.name.eq_ignore_ascii_case(name))
        .filter_map(|header| std::str::from_utf8(header.value).ok())
}

fn value<'a>(headers: &'a [httparse::Header<'_>], name: &str) -> Option<&'a str> {
    values(headers, name).next().map(str::trim)
}

fn has_token(headers: &[httparse::Header<'_>], name: &str, token: &str) -> bool {
    values(headers, name)
        .flat_map(|value| value.split(','))
        .any(|part| part.trim().eq_ignore_ascii_case(token))
}
