//! The client's side of `CONNECT`.

use super::basic;
use super::head::{HeadError, response};
use super::read::{Kind, ReadError, head};
use crate::stream::Stream;
use shared::address::HostPort;
use shared::gost::Auth;
use std::io;
use tokio::io::AsyncWriteExt as _;

/// Why a proxy gave no connection.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// It answered so.
    #[error("answered: {code} {reason}")]
    Denied {
        /// The status.
        code: u16,
        /// What stands behind it.
        reason: String,
    },
    /// Its answer is none of HTTP.
    #[error("not an HTTP peer: {0}")]
    Head(#[from] HeadError),
    /// It does not begin or end like an answer of HTTP.
    #[error("not an HTTP peer: {0}")]
    Read(ReadError),
    /// The connection to it failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<ReadError> for ClientError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io(error) => Self::Io(error),
            other @ (ReadError::NotHttp | ReadError::TooLarge) => Self::Read(other),
        }
    }
}

/// Asks a proxy for a connection to `target`; reads its answer and nothing beyond. The caller sets the deadline.
pub async fn connect(stream: &mut Stream, target: &HostPort, auth: Option<&Auth>) -> Result<(), ClientError> {
    stream.write_all(encode_connect(target, auth).as_bytes()).await?;
    stream.flush().await?;
    loop {
        let bytes = head(stream, Kind::Response, None).await?;
        let Some((answer, _)) = response(&bytes)? else { return Err(HeadError::CutOff.into()) };
        match answer.code {
            100..=199 => {}
            // Whatever the head says of a body: there is none (RFC 9110, section 9.3.6).
            200..=299 => return Ok(()),
            code => {
                let reason = answer.reason.chars().take(80).collect();
                return Err(ClientError::Denied { code, reason });
            }
        }
    }
}

fn encode_connect(target: &HostPort, auth: Option<&Auth>) -> String {
    let login = auth.map(|auth| format!("Proxy-Authorization: {}\r\n", basic::encode(auth)));
    let login = login.unwrap_or_default();
    format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{login}Proxy-Connection: keep-alive\r\n\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_on_the_wire() {
        let auth = Auth { username: "u".into(), password: "p".into() };
        let v6 = HostPort::new("2001:db8::1", 443);
        assert_eq!(
            encode_connect(&v6, Some(&auth)),
            "CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n\
             Proxy-Authorization: Basic dTpw\r\nProxy-Connection: keep-alive\r\n\r\n"
        );
        assert!(!encode_connect(&v6, None).contains("Authorization"));
    }
}
