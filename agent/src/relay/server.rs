//! The server's side of the relay protocol.

use super::wire::{HEADER_LEN, Request, Status, WireError, header, request, response};
use crate::stream::Stream;
use shared::gost::Auth;
use std::io;
use subtle::{Choice, ConstantTimeEq as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Why there is no request.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The client speaks something else. It gets no answer, as from GOST.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The connection failed, or ended before the request was complete (probes do that).
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads a request and nothing beyond it: what follows in the same segment is payload. The caller sets the deadline.
pub async fn read_request(stream: &mut Stream) -> Result<Request, RequestError> {
    let mut head = [0; HEADER_LEN];
    stream.read_exact(&mut head).await?;
    let (command, len) = header(head)?;
    let mut features = vec![0; len];
    stream.read_exact(&mut features).await?;
    Ok(request(command, &features)?)
}

/// Sends the answer.
pub async fn answer(stream: &mut Stream, status: Status) -> io::Result<()> {
    stream.write_all(&response(status)).await?;
    stream.flush().await
}

/// Compares credentials in time that depends on their lengths only.
pub fn authorized(required: Option<&Auth>, given: Option<&Auth>) -> bool {
    let Some(required) = required else { return true };
    let Some(given) = given else { return false };
    let equal = |a: &str, b: &str| -> Choice { a.as_bytes().ct_eq(b.as_bytes()) };
    (equal(&required.username, &given.username) & equal(&required.password, &given.password)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials() {
        let auth =
            |username: &str, password: &str| Auth { username: username.into(), password: password.into() };
        let right = auth("user", "pass");
        assert!(authorized(None, None));
        assert!(authorized(None, Some(&right)));
        assert!(authorized(Some(&right), Some(&right.clone())));
        assert!(!authorized(Some(&right), None));
        for wrong in [auth("user", "Pass"), auth("user", ""), auth("", "pass"), auth("userp", "ass")] {
            assert!(!authorized(Some(&right), Some(&wrong)));
        }
    }
}
