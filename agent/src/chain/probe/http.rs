//! The little of HTTP that a probe needs: one request, and the status of its answer.

use shared::gost::ProbeConfig;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// A status line is not longer than this.
const LONGEST_LINE: usize = 1024;

/// The request that a configuration asks for; or the field that is wrong, and why.
pub(super) fn request(config: &ProbeConfig) -> Result<String, (&'static str, &'static str)> {
    let path = if config.http_path.is_empty() { "/" } else { &config.http_path };
    if !path.starts_with('/') || !path.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(("httpPath", "must begin with / and have neither spaces nor control characters"));
    }
    let printable = |text: &str| !text.chars().any(char::is_control);
    let host = if config.http_host.is_empty() { &config.addr } else { &config.http_host };
    if !printable(host) || host.contains(' ') {
        return Err(("httpHost", "must have neither spaces nor control characters"));
    }
    let mut request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n");
    for (name, value) in &config.http_headers {
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(("httpHeaders", "the name of a header must be one word"));
        }
        if !printable(value) {
            return Err(("httpHeaders", "the value of a header must have no control characters"));
        }
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("Connection: close\r\n\r\n");
    Ok(request)
}

/// Sends the request and reads the status. The caller sets the deadline.
pub(super) async fn status(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    request: &str,
) -> io::Result<u16> {
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut line = Vec::with_capacity(256);
    let mut limited = stream.take(LONGEST_LINE as u64);
    while !line.contains(&b'\n') {
        if limited.read_buf(&mut line).await? == 0 {
            let what = if line.is_empty() { "closed without an answer" } else { "no HTTP answer" };
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
        }
    }
    parse(&line).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no HTTP answer"))
}

/// The status in a line such as `HTTP/1.1 200 OK`.
fn parse(line: &[u8]) -> Option<u16> {
    let (version, rest) = line.split_at_checked(9)?;
    if !matches!(version, b"HTTP/1.1 " | b"HTTP/1.0 ") {
        return None;
    }
    let (digits, after) = rest.split_at_checked(3)?;
    if !digits.iter().all(u8::is_ascii_digit) || after.first().is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    async fn answer(parts: &'static [&'static str]) -> io::Result<u16> {
        let (mut ours, mut theirs) = tokio::io::duplex(4096);
        let peer = tokio::spawn(async move {
            for part in parts {
                theirs.write_all(part.as_bytes()).await.unwrap();
                tokio::task::yield_now().await;
            }
            let mut asked = Vec::new();
            let _ = theirs.read_buf(&mut asked).await;
            theirs.shutdown().await.unwrap();
        });
        let status = status(&mut ours, "GET / HTTP/1.1\r\n\r\n").await;
        peer.await.unwrap();
        status
    }

    #[tokio::test]
    async fn the_status_is_read_whole_or_in_pieces() {
        assert_eq!(answer(&["HTTP/1.1 200 OK\r\n\r\n"]).await.unwrap(), 200);
        assert_eq!(answer(&["HT", "TP/1.0 5", "00", "\r\n"]).await.unwrap(), 500);
        for wrong in [
            &["SSH-2.0-x\r\n"][..],
            &["HTTP/1.1 2000 OK\r\n"],
            &["HTTP/2 200\r\n"],
            &["HTTP/1.1 x00\r\n"],
            &["HTTP/1.1 200"],
            &[],
        ] {
            assert!(answer(wrong).await.is_err(), "{wrong:?}");
        }
    }

    #[tokio::test]
    async fn an_endless_line_and_a_closed_connection_end() {
        let (mut ours, mut theirs) = tokio::io::duplex(64 * 1024);
        theirs.write_all(&[b'x'; 4096]).await.unwrap();
        let read = status(&mut ours, "GET / HTTP/1.1\r\n\r\n");
        assert!(tokio::time::timeout(Duration::from_secs(30), read).await.unwrap().is_err());
        let (mut ours, theirs) = tokio::io::duplex(64);
        drop(theirs);
        assert!(status(&mut ours, "GET / HTTP/1.1\r\n\r\n").await.is_err());
    }

    #[test]
    fn what_is_configured_is_asked_for() {
        let config = json!({"type": "http", "addr": "192.0.2.1:80", "httpPath": "/health?x=1", "httpHost": "a.example",
            "httpHeaders": {"X-Key": "v w"}});
        assert_eq!(
            request(&serde_json::from_value(config).unwrap()).unwrap(),
            "GET /health?x=1 HTTP/1.1\r\nHost: a.example\r\nX-Key: v w\r\nConnection: close\r\n\r\n"
        );
    }
}
