//! A page whose answer shows that what leads to it works.

use super::http;
use crate::net::within;
use crate::stream::Stream;
use crate::transport::tls::TlsClient;
use axum::http::Uri;
use shared::address::HostPort;
use shared::gost::TlsConfig;
use std::sync::Arc;
use std::time::Duration;

/// A page.
#[derive(Clone)]
pub struct Page {
    /// Where it is.
    pub(super) target: HostPort,
    url: String,
    request: Arc<str>,
    /// `None`: any from 200 to 299.
    status: Option<u16>,
    tls: Option<TlsClient>,
    ca_file: Option<String>,
}

impl Page {
    /// `url` is one of `http` or `https`. The certificate is verified; the authorities in the PEM file `ca_file`, if
    /// there is one, take the place of the usual ones. The text says what is wrong.
    pub fn new(url: &str, status: Option<u16>, ca_file: Option<&str>) -> Result<Self, String> {
        let wrong = |what: &str| format!("`{url}` is no URL to fetch: {what}");
        let uri: Uri = url.parse().map_err(|error: axum::http::uri::InvalidUri| wrong(&error.to_string()))?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong("it starts with neither http:// nor https://")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("it has a user"));
        }
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let target = HostPort::parse(&format!("{}:{port}", authority.host()))
            .map_err(|error| wrong(&error.to_string()))?;
        if !is_tls && ca_file.is_some() {
            return Err(wrong("an authority is for https only"));
        }
        let options = TlsConfig { secure: true, ca_file: ca_file.map(str::to_owned), ..TlsConfig::default() };
        let tls = is_tls.then(|| TlsClient::new(Some(&options), &target.host)).transpose()?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let root = if path.starts_with('/') { "" } else { "/" };
        // Only the head is of interest, as to sing-box.
        let request = format!(
            "HEAD {root}{path} HTTP/1.1\r\nHost: {}\r\nUser-Agent: exitpilot-agent\r\nConnection: close\r\n\r\n",
            authority.as_str()
        );
        let (url, ca_file) = (url.to_owned(), ca_file.map(str::to_owned));
        Ok(Self { target, url, request: request.into(), status, tls, ca_file })
    }

    /// Fetches it over a connection to its server. The text says why it is not there.
    pub(super) async fn fetch(&self, stream: Stream, deadline: Duration) -> Result<(), String> {
        let fetching = async {
            let mut stream = match &self.tls {
                Some(tls) => tls.handshake(stream, deadline).await?,
                None => stream,
            };
            http::status(&mut stream, &self.request).await
        };
        let status = within(deadline, fetching).await.map_err(|error| error.to_string())?;
        match self.status {
            Some(expected) if status != expected => Err(format!("status {status} instead of {expected}")),
            None if !(200..300).contains(&status) => Err(format!("status {status}")),
            Some(_) | None => Ok(()),
        }
    }
}

impl PartialEq for Page {
    fn eq(&self, other: &Self) -> bool {
        (&self.url, self.status, &self.ca_file) == (&other.url, other.status, &other.ca_file)
    }
}

impl Eq for Page {}

impl std::fmt::Debug for Page {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Page").field("url", &self.url).field("status", &self.status).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    #[test]
    fn urls_say_where_and_what() {
        let page = Page::new("https://www.gstatic.com/generate_204", None, None).unwrap();
        assert_eq!(page.target, HostPort::new("www.gstatic.com", 443));
        assert!(page.tls.is_some());
        assert!(page.request.starts_with("HEAD /generate_204 HTTP/1.1\r\nHost: www.gstatic.com\r\n"));
        let page = Page::new("http://[2001:db8::1]:8080?x=1", None, None).unwrap();
        assert_eq!(page.target, HostPort::new("2001:db8::1", 8080));
        assert!(page.request.starts_with("HEAD /?x=1 HTTP/1.1\r\nHost: [2001:db8::1]:8080\r\n"));
        for wrong in
            ["ftp://a", "/x", "http://", "http://u:p@a.example/", "http://a b/", "http://a.example:0/"]
        {
            assert!(Page::new(wrong, None, None).is_err(), "{wrong}");
        }
        assert!(Page::new("http://a.example/", None, Some("x.pem")).is_err());
        assert!(Page::new("https://a.example/", None, Some("/nonexistent.pem")).is_err());
    }

    async fn fetched(answer: &'static str, status: Option<u16>) -> Result<(), String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                stream.read_buf(&mut request).await.unwrap();
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let page = Page::new(&url, status, None).unwrap();
        let stream = TcpStream::connect(page.target.to_string()).await.unwrap();
        let outcome = page.fetch(Stream::Tcp(stream), Duration::from_secs(30)).await;
        server.await.unwrap();
        outcome
    }

    #[tokio::test]
    async fn the_status_decides() {
        assert_eq!(fetched("HTTP/1.1 204 No Content\r\n\r\n", None).await, Ok(()));
        assert_eq!(fetched("HTTP/1.1 302 Found\r\n\r\n", None).await, Err("status 302".to_owned()));
        assert_eq!(fetched("HTTP/1.1 403 Forbidden\r\n\r\n", Some(403)).await, Ok(()));
        let error = fetched("HTTP/1.1 200 OK\r\n\r\n", Some(204)).await.unwrap_err();
        assert_eq!(error, "status 200 instead of 204");
    }
}
