//! TLS in both roles, with GOST's options and defaults.

mod space;
mod stream;

use super::pem;
use super::tls_options::{Allowed, PROVIDER};
use crate::net::within;
use crate::stream::Stream;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{UnbufferedClientConnection, WebPkiServerVerifier};
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::server::{ParsedCertificate, UnbufferedServerConnection, WebPkiClientVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use shared::gost::TlsConfig;
use std::io;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use stream::TlsStream;

/// Without verification there is one configuration for all, so that sessions resume across chains and swaps.
static UNVERIFIED: LazyLock<Result<Arc<ClientConfig>, String>> =
    LazyLock::new(|| client_config(&TlsConfig::default()).map(Arc::new));

/// The certificate of listeners that have none configured; made once per process.
static SELF_SIGNED: LazyLock<Result<OwnCertificate, String>> = LazyLock::new(|| {
    let made = rcgen::generate_simple_self_signed(vec!["exitpilot.invalid".to_owned()])
        .map_err(|error| format!("cannot make a certificate: {error}"))?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())
        .map_err(|error| format!("cannot make a key: {error}"))?;
    Ok((vec![made.cert.der().clone()], key))
});

/// Listeners without options have one configuration together.
static DEFAULT_SERVER: LazyLock<Result<Arc<ServerConfig>, String>> =
    LazyLock::new(|| server_config(&TlsConfig::default()).map(Arc::new));

/// The client's side of TLS towards one node.
#[derive(Clone)]
pub struct TlsClient {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsClient {
    /// `host` is the host of the node, the name unless the options say another. Reads the files the options name.
    pub fn new(options: Option<&TlsConfig>, host: &str) -> Result<Self, String> {
        let name = options.and_then(|options| options.server_name.as_deref()).unwrap_or(host);
        let name =
            ServerName::try_from(name.to_owned()).map_err(|_| format!("`{name}` is no server name"))?;
        let config = match options {
            Some(options) if !is_plain(options) => Arc::new(client_config(options)?),
            Some(_) | None => UNVERIFIED.clone()?,
        };
        Ok(Self { config, name })
    }

    /// Does the handshake within `deadline`.
    pub async fn handshake(&self, stream: Stream, deadline: Duration) -> io::Result<Stream> {
        let session = UnbufferedClientConnection::new(self.config.clone(), self.name.clone());
        let session = session.map_err(io::Error::other)?;
        let stream = within(deadline, TlsStream::handshake(stream, session)).await?;
        Ok(Stream::Layered(Box::new(stream)))
    }
}

/// The server's side of TLS of one listener.
#[derive(Clone)]
pub struct TlsServer(Arc<ServerConfig>);

impl TlsServer {
    /// Without certificate the process's self-signed one is used, as GOST does. Reads the files the options name.
    pub fn new(options: Option<&TlsConfig>) -> Result<Self, String> {
        let config = match options {
            Some(options) if !is_plain(options) => Arc::new(server_config(options)?),
            Some(_) | None => DEFAULT_SERVER.clone()?,
        };
        Ok(Self(config))
    }

    /// Does the handshake within `deadline`.
    pub async fn handshake(&self, stream: Stream, deadline: Duration) -> io::Result<Stream> {
        let session = UnbufferedServerConnection::new(self.0.clone()).map_err(io::Error::other)?;
        let stream = within(deadline, TlsStream::handshake(stream, session)).await?;
        Ok(Stream::Layered(Box::new(stream)))
    }
}

/// Whether the options ask for nothing but, perhaps, another name.
fn is_plain(options: &TlsConfig) -> bool {
    let TlsConfig { secure, server_name: _, ca_file, cert_file, key_file, options } = options;
    !secure && ca_file.is_none() && cert_file.is_none() && key_file.is_none() && options.is_none()
}

fn client_config(options: &TlsConfig) -> Result<ClientConfig, String> {
    let authorities = options.ca_file.as_deref().map(certificates).transpose()?.unwrap_or_default();
    let chain = if options.secure || !authorities.is_empty() {
        let mut roots = RootCertStore::empty();
        if authorities.is_empty() {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        roots.add_parsable_certificates(authorities.iter().cloned());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), PROVIDER.clone()).build();
        Some(verifier.map_err(|error| format!("caFile: {error}"))?)
    } else {
        None
    };
    let verifier = Verifier { chain, pinned: authorities, check_name: options.secure };
    let Allowed { versions, provider, alpn } = Allowed::read(options.options.as_ref())?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .map_err(|error| format!("options: {error}"))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match own_certificate(options)? {
        None => builder.with_no_client_auth(),
        Some((certificates, key)) => {
            builder.with_client_auth_cert(certificates, key).map_err(|error| format!("certFile: {error}"))?
        }
    };
    config.alpn_protocols = alpn;
    Ok(config)
}

fn server_config(options: &TlsConfig) -> Result<ServerConfig, String> {
    let (chain, key) = match own_certificate(options)? {
        Some(own) => own,
        None if options.ca_file.is_some() => {
            return Err("caFile needs certFile and keyFile beside it".to_owned());
        }
        None => SELF_SIGNED
            .as_ref()
            .map(|(chain, key)| (chain.clone(), key.clone_key()))
            .map_err(String::clone)?,
    };
    let Allowed { versions, provider, alpn } = Allowed::read(options.options.as_ref())?;
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .map_err(|error| format!("options: {error}"))?;
    let builder = match options.ca_file.as_deref() {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(certificates(file)?);
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), PROVIDER.clone()).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| format!("caFile: {error}"))?)
        }
    };
    let mut config = builder.with_single_cert(chain, key).map_err(|error| format!("certFile: {error}"))?;
    config.alpn_protocols = alpn;
    Ok(config)
}

type OwnCertificate = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn own_certificate(options: &TlsConfig) -> Result<Option<OwnCertificate>, String> {
    match (&options.cert_file, &options.key_file) {
        (None, None) => Ok(None),
        (Some(cert), Some(key)) => {
            let key = pem::first(key).map_err(|error| format!("keyFile {error}"))?;
            Ok(Some((certificates(cert)?, key)))
        }
        (Some(_), None) | (None, Some(_)) => Err("certFile and keyFile belong together".to_owned()),
    }
}

fn certificates(file: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    match pem::all(file)? {
        list if list.is_empty() => Err(format!("{file}: no certificate inside")),
        list => Ok(list),
    }
}

/// Verifies as GOST does: nothing by default, the chain with an authority file, chain and name when `secure`.
#[derive(Debug)]
struct Verifier {
    chain: Option<Arc<WebPkiServerVerifier>>,
    /// Certificates of the authority file. One of them presented by the server itself is as good as signed by it,
    /// although a self-signed one with the authority flag is none for a leaf otherwise.
    pinned: Vec<CertificateDer<'static>>,
    check_name: bool,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        if self.pinned.contains(end_entity) {
            if self.check_name {
                let parsed = ParsedCertificate::try_from(end_entity)?;
                rustls::client::verify_server_name(&parsed, server_name)?;
            }
            return Ok(ServerCertVerified::assertion());
        }
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.check_name => Ok(ServerCertVerified::assertion()),
            outcome => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &PROVIDER.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &PROVIDER.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        PROVIDER.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;
