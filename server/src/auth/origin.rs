//! Whether a request that carries the session cookie was made by the panel's own page.

use axum::http::{HeaderMap, Uri, header};

/// Whether `Origin` names the host the request was sent to, or the panel's public address.
///
/// Browsers send `Origin` with every write. Without it nothing proves where the request comes from: false.
pub fn is_own(headers: &HeaderMap, uri: &Uri, public_url: Option<&str>) -> bool {
    let Some(origin) = headers.get(header::ORIGIN).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let Some((_, origin_host)) = origin.split_once("://") else { return false };
    // HTTP/2 has no Host header, the authority is part of the address there.
    let host = headers
        .get(header::HOST)
        .and_then(|value| value.to_str().ok())
        .or_else(|| uri.authority().map(|authority| authority.as_str()));
    let public = public_url.is_some_and(|url| url.trim_end_matches('/').eq_ignore_ascii_case(origin));
    public || host.is_some_and(|host| host.eq_ignore_ascii_case(origin_host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        let table = [
            (Some("http://panel:6365"), "panel:6365", None, true),
            (Some("https://Panel:6365"), "panel:6365", None, true),
            (Some("http://evil"), "panel:6365", None, false),
            (Some("http://panel"), "panel:6365", None, false),
            (Some("http://panel:6365.evil"), "panel:6365", None, false),
            (Some("null"), "panel:6365", None, false),
            (None, "panel:6365", None, false),
            (Some("https://panel.example"), "127.0.0.1:6365", Some("https://panel.example/"), true),
            (Some("http://panel.example"), "127.0.0.1:6365", Some("https://panel.example"), false),
        ];
        for (origin, host, public, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            assert_eq!(is_own(&headers, &Uri::from_static("/"), public), expected, "{origin:?} {host}");
        }
    }
}
