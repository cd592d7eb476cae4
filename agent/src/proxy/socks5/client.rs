//! The client's side of SOCKS5.

use super::server::{read, send};
use super::wire::{
    LOGIN_VERSION, NO_AUTH, NO_METHOD, PASSWORD, Reply, VERSION, WireError, encode_connect, encode_greeting,
    encode_login, encode_tunnel, reply,
};
use crate::stream::Stream;
use shared::address::HostPort;
use shared::gost::Auth;
use std::io;
use tokio::io::AsyncReadExt as _;

/// Why a server gave no connection.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// It answered so.
    #[error("answered: {0}")]
    Denied(Reply),
    /// It refused the credentials.
    #[error("answered: wrong credentials")]
    Unauthorized,
    /// It takes none of the methods that were offered.
    #[error("{}", if *.offered { "takes no user name and password" } else { "wants credentials" })]
    NoMethod {
        /// Whether credentials were offered.
        offered: bool,
    },
    /// It chose what was not offered.
    #[error("chose the method {0}, which was not offered")]
    Method(u8),
    /// Its answer is none of SOCKS5.
    #[error("not a SOCKS5 peer: {0}")]
    Wire(#[from] WireError),
    /// The connection to it failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Asks a server for a connection to `target`; reads its reply and nothing beyond. The caller sets the deadline.
pub async fn connect(stream: &mut Stream, target: &HostPort, auth: Option<&Auth>) -> Result<(), ClientError> {
    greet(stream, auth).await?;
    ask(stream, &encode_connect(target)).await
}

/// Asks a server to carry datagrams on the connection, as GOST's do; reads its reply and nothing beyond. The caller sets
/// the deadline.
pub async fn tunnel(stream: &mut Stream, auth: Option<&Auth>) -> Result<(), ClientError> {
    greet(stream, auth).await?;
    ask(stream, &encode_tunnel()).await
}

/// Greets, and logs in if the server wants that.
async fn greet(stream: &mut Stream, auth: Option<&Auth>) -> Result<(), ClientError> {
    send(stream, &encode_greeting(auth)).await?;
    let mut choice = [0; 2];
    stream.read_exact(&mut choice).await?;
    match (choice, auth) {
        ([VERSION, NO_AUTH], _) => {}
        ([VERSION, PASSWORD], Some(auth)) => {
            send(stream, &encode_login(auth)).await?;
            let mut verdict = [0; 2];
            stream.read_exact(&mut verdict).await?;
            match verdict {
                [LOGIN_VERSION, 0] => {}
                [LOGIN_VERSION, _] => return Err(ClientError::Unauthorized),
                [other, _] => return Err(WireError::Version(other).into()),
            }
        }
        ([VERSION, NO_METHOD], auth) => return Err(ClientError::NoMethod { offered: auth.is_some() }),
        ([VERSION, other], _) => return Err(ClientError::Method(other)),
        ([other, _], _) => return Err(WireError::Version(other).into()),
    }
    Ok(())
}

/// Sends a request and reads the reply.
async fn ask(stream: &mut Stream, request: &[u8]) -> Result<(), ClientError> {
    send(stream, request).await?;
    match read::<_, ClientError>(stream, None, reply).await? {
        (Reply::Succeeded, _) => Ok(()),
        (denied, _) => Err(ClientError::Denied(denied)),
    }
}
