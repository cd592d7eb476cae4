//! From an address to an open websocket.

use super::address::{PanelAddress, Scheme};
use crate::transport::pem;
use anyhow::Context as _;
use rustls_pki_types::{CertificateDer, ServerName};
use shared::link::{MAX_FRAME_BYTES, PANEL_HEADER};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::{HeaderValue, Response, StatusCode, header::USER_AGENT};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

/// Longest part of a refusal's text that is shown.
const SHOWN_BODY: usize = 200;

/// Bytes to and from the panel, with or without TLS.
pub(crate) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

/// An open link.
pub(crate) struct Connected {
    pub(crate) socket: WebSocketStream<Box<dyn Transport>>,
    /// The panel said that it is ours.
    pub(crate) ours: bool,
}

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    /// Trying another scheme makes no sense: it is the panel that answered.
    #[error("the panel refused the node secret: {0}")]
    SecretRefused(String),
    #[error("HTTP {status}: {body}")]
    Status { status: u16, body: String },
    #[error("connect: {0}")]
    Connect(std::io::Error),
    #[error("TLS: {0}")]
    Tls(std::io::Error),
    #[error("websocket: {0}")]
    Websocket(String),
    #[error("no answer within {} s", .0.as_secs_f64())]
    Timeout(Duration),
}

/// Trust for `wss`: the usual authorities and those in `extra`, a PEM file.
pub(crate) fn tls_config(extra: Option<&Path>) -> anyhow::Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(path) = extra {
        let certificates = pem::all::<CertificateDer<'_>>(path).map_err(anyhow::Error::msg)?;
        anyhow::ensure!(!certificates.is_empty(), "{} contains no certificate", path.display());
        for certificate in certificates {
            roots
                .add(certificate)
                .with_context(|| format!("{} holds no usable authority", path.display()))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

/// Opens the websocket. `limit` is for everything together: name, TCP, TLS and upgrade.
pub(crate) async fn dial(
    panel: &PanelAddress,
    scheme: Scheme,
    secret: &str,
    version: &str,
    tls: &Arc<ClientConfig>,
    limit: Duration,
) -> Result<Connected, DialError> {
    let work = Box::pin(open(panel, scheme, panel.url(scheme, secret, version), tls));
    tokio::time::timeout(limit, work).await.unwrap_or(Err(DialError::Timeout(limit)))
}

async fn open(
    panel: &PanelAddress,
    scheme: Scheme,
    url: String,
    tls: &Arc<ClientConfig>,
) -> Result<Connected, DialError> {
    let stream = connect(panel, scheme, tls).await?;
    let mut request = url.into_client_request().map_err(websocket_error)?;
    request.headers_mut().insert(USER_AGENT, HeaderValue::from_static("exitpilot-agent"));
    let limits = WebSocketConfig::default()
        .max_message_size(Some(MAX_FRAME_BYTES))
        .max_frame_size(Some(MAX_FRAME_BYTES));
    let (socket, response) = tokio_tungstenite::client_async_with_config(request, stream, Some(limits))
        .await
        .map_err(websocket_error)?;
    Ok(Connected { socket, ours: response.headers().contains_key(PANEL_HEADER) })
}

/// A connection to the panel, before any request.
pub(super) async fn connect(
    panel: &PanelAddress,
    scheme: Scheme,
    tls: &Arc<ClientConfig>,
) -> Result<Box<dyn Transport>, DialError> {
    let at = panel.at();
    let stream = TcpStream::connect((at.host.as_str(), at.port)).await.map_err(DialError::Connect)?;
    // Frames are small and somebody waits for each answer.
    stream.set_nodelay(true).map_err(DialError::Connect)?;
    Ok(match scheme {
        Scheme::Ws => Box::new(stream),
        Scheme::Wss => {
            let invalid = |e| DialError::Tls(std::io::Error::new(std::io::ErrorKind::InvalidInput, e));
            let name = ServerName::try_from(at.host.clone()).map_err(invalid)?;
            Box::new(TlsConnector::from(tls.clone()).connect(name, stream).await.map_err(DialError::Tls)?)
        }
    })
}

fn websocket_error(error: tungstenite::Error) -> DialError {
    match error {
        tungstenite::Error::Http(response) => refusal(&response),
        // Its text may quote the URL, which holds the secret.
        tungstenite::Error::Url(_) | tungstenite::Error::HttpFormat(_) => {
            DialError::Websocket("the address makes no valid request".to_owned())
        }
        other => DialError::Websocket(other.to_string()),
    }
}

fn refusal(response: &Response<Option<Vec<u8>>>) -> DialError {
    let body = String::from_utf8_lossy(response.body().as_deref().unwrap_or_default());
    // One line of printable text: it goes into the log.
    let body: String = body.trim().chars().filter(|c| !c.is_control()).take(SHOWN_BODY).collect();
    match response.status() {
        StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => {
            let status = response.status().as_u16();
            DialError::SecretRefused(if body.is_empty() { format!("HTTP {status}") } else { body })
        }
        status => DialError::Status { status: status.as_u16(), body },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_authorities_is_one_and_has_an_end() {
        for (file, reason) in [("/dev/zero", "is no regular file"), ("/nowhere/ca.pem", "No such file")] {
            let error = tls_config(Some(Path::new(file))).unwrap_err().to_string();
            assert!(error.starts_with(file) && error.contains(reason), "{error}");
        }
        tls_config(None).unwrap();
    }

    #[test]
    fn the_script_that_installs_the_agent_knows_what_it_logs() {
        let script = include_str!("../../../packaging/install.sh");
        let refused = DialError::SecretRefused(String::new()).to_string();
        let refused = refused.trim_start_matches("the panel ").trim_end_matches(": ");
        for words in [refused, super::super::CONNECTED] {
            assert!(script.contains(&format!("*'{words}'*)")), "{words}");
        }
    }
}
