//! Who may use the API: those with the secret; and from within a browser, only pages of known origins.

use super::{Served, message};
use anyhow::Context as _;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use std::sync::Arc;
use subtle::ConstantTimeEq as _;

const METHODS: &str = "GET, POST, PUT, PATCH, DELETE";
const HEADERS: &str = "Content-Type, Authorization";
/// Seconds for which a browser need not ask again.
const MAX_AGE: &str = "300";
/// A page from the internet asks for an address of a private network.
const ASKS_PRIVATE: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOWS_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// Where a page comes from, as browsers write it: scheme, host, and the port unless it is the usual one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin(String);

impl Origin {
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let parse = || {
            let uri: Uri = text.parse().context("no address")?;
            let scheme = uri.scheme_str().context("it has no scheme")?;
            anyhow::ensure!(["http", "https"].contains(&scheme), "neither http:// nor https://");
            let authority = uri.authority().context("it has no host")?;
            anyhow::ensure!(!authority.as_str().contains('@'), "it has a user");
            anyhow::ensure!(uri.path_and_query().is_none_or(|path| path == "/"), "it has a path");
            let usual = if scheme == "http" { 80 } else { 443 };
            let host = authority.host().to_ascii_lowercase();
            Ok(match authority.port_u16().filter(|port| *port != usual) {
                Some(port) => Self(format!("{scheme}://{host}:{port}")),
                None => Self(format!("{scheme}://{host}")),
            })
        };
        parse().with_context(|| format!("`{text}` is no origin such as https://dashboard.example:8443"))
    }
}

/// Whether a page of another origin asks, and whether it may.
enum Page {
    /// None does, or one that is served from this very address.
    Own,
    Allowed(HeaderValue),
    Foreign,
}

impl Page {
    fn of(headers: &HeaderMap, allowed: &[Origin]) -> Self {
        let Some(origin) = headers.get(header::ORIGIN) else { return Self::Own };
        let text = origin.to_str().unwrap_or_default();
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        if host.is_some_and(|host| text.split_once("://").is_some_and(|(_, at)| at == host)) {
            return Self::Own;
        }
        match allowed.iter().any(|allowed| allowed.0 == text) {
            true => Self::Allowed(origin.clone()),
            false => Self::Foreign,
        }
    }
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
}

/// Lets requests through that carry the secret.
pub(super) async fn guard(State(served): State<Arc<Served>>, request: Request, next: Next) -> Response {
    let (headers, page) = (request.headers(), Page::of(request.headers(), &served.origins));
    let asks_first =
        request.method() == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let asks_private = headers.contains_key(ASKS_PRIVATE);
    let upgrades = upgrades(headers);
    let mut response = if matches!(page, Page::Foreign) && (asks_first || upgrades) {
        // A browser shows others no answer but asks for websockets without asking first.
        message(StatusCode::FORBIDDEN, "Forbidden")
    } else if asks_first {
        StatusCode::NO_CONTENT.into_response()
    } else if !is_known(&request, upgrades, &served.secret) {
        message(StatusCode::UNAUTHORIZED, "Unauthorized")
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    if let Page::Allowed(origin) = page {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        if asks_first {
            headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(HEADERS));
            headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
            if asks_private {
                headers.insert(ALLOWS_PRIVATE, HeaderValue::from_static("true"));
            }
        }
    }
    response
}

fn upgrades(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(header::UPGRADE).and_then(|value| value.to_str().ok());
    upgrade.is_some_and(|protocol| protocol.eq_ignore_ascii_case("websocket"))
}

/// Pages cannot give a websocket a header, so that one may carry the secret in its address.
fn is_known(request: &Request, upgrades: bool, secret: &str) -> bool {
    // Takes a time that depends on the lengths only.
    let is_secret = |given: &str| bool::from(given.as_bytes().ct_eq(secret.as_bytes()));
    if upgrades
        && let Ok(Query(Token { token: Some(token) })) = Query::try_from_uri(request.uri())
        && !token.is_empty()
    {
        return is_secret(&token);
    }
    let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    given.and_then(|given| given.strip_prefix("Bearer ")).is_some_and(is_secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_written_as_browsers_do() {
        let origin = |text: &str| Origin::parse(text).unwrap().0;
        assert_eq!(origin("https://Dash.example"), "https://dash.example");
        assert_eq!(origin("https://dash.example:443/"), "https://dash.example");
        assert_eq!(origin("http://127.0.0.1:8080"), "http://127.0.0.1:8080");
        assert_eq!(origin("http://[::1]:80"), "http://[::1]");
        for wrong in ["*", "", "dash.example", "ftp://dash.example", "https://dash.example/ui", "https://u@d"]
        {
            let error = Origin::parse(wrong).unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{wrong}` is no origin")), "{error}");
        }
    }
}
