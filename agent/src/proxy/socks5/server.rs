//! The server's side of SOCKS5.

use super::wire;
use super::wire::{
    LOGIN_VERSION, NO_AUTH, NO_METHOD, PASSWORD, Parsed, Reply, Request, VERSION, WireError, encode_reply,
};
use crate::relay::server::authorized;
use crate::stream::Stream;
use shared::gost::Auth;
use std::io;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Why there is no request.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The client speaks something else. After its greeting it is told so, before it there is no language in common.
    #[error("not SOCKS5: {0}")]
    Wire(#[from] WireError),
    /// The request names an address that the server cannot use, and the client waits for this reply.
    #[error("bad request: {0}")]
    Request(WireError, Reply),
    /// The client offers no method that the server takes. It has been told.
    #[error("the client offers no way to log in")]
    NoMethod,
    /// It has been told.
    #[error("wrong credentials")]
    Unauthorized,
    /// The connection failed, or ended before the request was complete.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Greets, asks for the credentials that are required, and reads the request, nothing beyond it. `first` was read already.
/// The caller sets the deadline.
pub async fn accept(
    stream: &mut Stream,
    first: Option<u8>,
    required: Option<&Auth>,
) -> Result<Request, RequestError> {
    let methods = read::<_, RequestError>(stream, first, wire::greeting).await?;
    let method = match required {
        Some(_) if methods.contains(&PASSWORD) => PASSWORD,
        None if methods.contains(&NO_AUTH) => NO_AUTH,
        // There are clients that offer nothing but what they are configured with. Anything is right then.
        None if methods.contains(&PASSWORD) => PASSWORD,
        Some(_) | None => {
            send(stream, &[VERSION, NO_METHOD]).await?;
            return Err(RequestError::NoMethod);
        }
    };
    send(stream, &[VERSION, method]).await?;
    if method == PASSWORD {
        let given = read::<_, RequestError>(stream, None, wire::login).await?;
        let right = authorized(required, Some(&given));
        send(stream, &[LOGIN_VERSION, u8::from(!right)]).await?;
        if !right {
            return Err(RequestError::Unauthorized);
        }
    }
    read(stream, None, wire::request).await.map_err(|error| match error {
        RequestError::Wire(error @ WireError::AddressType(_)) => {
            RequestError::Request(error, Reply::AddressTypeNotSupported)
        }
        RequestError::Wire(error @ WireError::HostName) => {
            RequestError::Request(error, Reply::HostUnreachable)
        }
        other => other,
    })
}

/// Sends the reply to a request.
pub async fn answer(stream: &mut Stream, reply: Reply) -> io::Result<()> {
    send(stream, &encode_reply(reply)).await
}

pub(super) async fn send(stream: &mut Stream, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

/// Reads one message: as many bytes as `parse` needs, which is at most what two length bytes can say.
pub(super) async fn read<T, E: From<io::Error> + From<WireError>>(
    stream: &mut Stream,
    first: Option<u8>,
    parse: impl Fn(&[u8]) -> Result<Parsed<T>, WireError>,
) -> Result<T, E> {
    let mut bytes: Vec<u8> = first.into_iter().collect();
    loop {
        match parse(&bytes)? {
            Parsed::Done(message) => return Ok(message),
            Parsed::Needs(count) => {
                let read = bytes.len();
                bytes.resize(read + count, 0);
                stream.read_exact(&mut bytes[read..]).await?;
            }
        }
    }
}
