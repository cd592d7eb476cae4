//! The embedded page.

use crate::error::AppError;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use rust_embed::{EmbeddedFile, RustEmbed};
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;
use std::sync::LazyLock;

#[derive(RustEmbed)]
#[folder = "../target/site/"]
struct Site;

/// 64 bits in hexadecimal; that more than four digits of it are zeros happens once in 65,000 builds, and costs nothing
/// but the caching.
const MIN_HASH_DIGITS: usize = 12;
const INDEX: &str = "index.html";
const NOT_BUILT: &str = "the page was not built: run cargo xtask build\n";

/// Which scripts may run is said once: those of the panel, and the inline ones of the built page by their hashes.
static CONTENT_SECURITY_POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let index = Site::get(INDEX).map(|file| String::from_utf8_lossy(&file.data).into_owned());
    let policy = policy(&index.unwrap_or_default());
    // Base64 and our own words are always a valid header; the fallback forbids everything.
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

/// The policy for a page: nothing from elsewhere, nothing inline but what `index` itself holds.
fn policy(index: &str) -> String {
    let hashes = |tag: &str| -> String {
        let hash = |text: &str| base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text));
        inline(index, tag).map(|text| format!(" 'sha256-{}'", hash(text))).collect()
    };
    format!(
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'{}; style-src 'self'{}; img-src 'self' data:; \
         font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'self'; form-action 'self'; \
         frame-ancestors 'none'",
        hashes("script"),
        hashes("style"),
    )
}

/// What stands between the tags of that name, where anything does.
fn inline<'a>(html: &'a str, tag: &'a str) -> impl Iterator<Item = &'a str> {
    let (open, close) = (format!("<{tag}"), format!("</{tag}>"));
    let mut rest = html;
    std::iter::from_fn(move || {
        loop {
            let start = rest.find(&open)?;
            let content = start + rest[start..].find('>')? + 1;
            let end = content + rest[content..].find(&close)?;
            let text = &rest[content..end];
            rest = &rest[end..];
            if !text.is_empty() {
                return Some(text);
            }
        }
    })
}

/// Answers for everything that is no API: a file of the page, or the page itself for its own addresses.
pub(super) fn serve(method: &Method, uri: &Uri, headers: &HeaderMap) -> Response {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return AppError::MethodNotAllowed.into_response();
    }
    let path = uri.path().trim_start_matches('/');
    let last = path.rsplit('/').next().unwrap_or_default();
    let hidden = last.starts_with('.') || last.ends_with(".br") || last.ends_with(".gz");
    if !path.is_empty() && !hidden && Site::get(path).is_some() {
        return file(path, headers);
    }
    if last.contains('.') && path != INDEX {
        return AppError::NotFound(uri.path().to_owned()).into_response();
    }
    if Site::get(INDEX).is_none() {
        return (StatusCode::SERVICE_UNAVAILABLE, NOT_BUILT).into_response();
    }
    file(INDEX, headers)
}

fn file(path: &str, headers: &HeaderMap) -> Response {
    let accepted =
        headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let compressed = [("br", ".br"), ("gzip", ".gz")].into_iter().find_map(|(encoding, ending)| {
        let file = accepts(accepted, encoding).then(|| Site::get(&format!("{path}{ending}")))??;
        Some((file, Some(encoding)))
    });
    let Some((file, encoding)) = compressed.or_else(|| Some((Site::get(path)?, None))) else {
        return AppError::NotFound(format!("/{path}")).into_response();
    };
    let etag = format!("\"{}\"", hex::encode(&file.metadata.sha256_hash()[..16]));
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let mut response = if known.is_some_and(|known| known.split(',').any(|tag| tag.trim() == etag)) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        body(file)
    };
    let caching = if is_hashed(path) { "public, max-age=31536000, immutable" } else { "no-cache" };
    let mut set = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    };
    set(header::CONTENT_TYPE, media_type(path));
    set(header::CACHE_CONTROL, caching);
    set(header::ETAG, &etag);
    set(header::VARY, "Accept-Encoding");
    if let Some(encoding) = encoding {
        set(header::CONTENT_ENCODING, encoding);
    }
    if path.ends_with(".html") {
        let policy = CONTENT_SECURITY_POLICY.clone();
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

fn body(file: EmbeddedFile) -> Response {
    Response::new(match file.data {
        Cow::Borrowed(bytes) => Body::from(bytes),
        Cow::Owned(bytes) => Body::from(bytes),
    })
}

/// Whether an `Accept-Encoding` allows an encoding; `q=0` forbids it.
fn accepts(header: &str, encoding: &str) -> bool {
    header.split(',').any(|part| {
        let mut parts = part.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(encoding));
        let refused = parts
            .filter_map(|parameter| parameter.strip_prefix("q="))
            .any(|q| q.parse::<f32>().is_ok_and(|q| q == 0.0));
        named && !refused
    })
}

/// Whether the name holds a hash of the content, as Trunk writes it: `name-0123456789abcdef.js`, `…_bg.wasm`, without
/// leading zeros. Such a file never changes.
fn is_hashed(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.split(['-', '.', '_'])
        .any(|part| part.len() >= MIN_HASH_DIGITS && part.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "wasm" => "application/wasm",
        "json" | "webmanifest" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_allows_the_inline_scripts_of_the_page_and_no_others() {
        let html =
            r#"<head><script src="/boot.js"></script><script type="module">import init</script></head>"#;
        let found = policy(html);
        // printf 'import init' | openssl dgst -sha256 -binary | base64
        assert!(
            found.contains(
                "script-src 'self' 'wasm-unsafe-eval' 'sha256-iv0Yb4RsovuXpzl70JOQkVb/3AGr1GWlzJHHNc9PTFo=';"
            ),
            "{found}"
        );
        assert!(found.contains("frame-ancestors 'none'") && !found.contains("unsafe-inline"), "{found}");
        assert_eq!(policy("").matches("sha256").count(), 0);
    }

    #[test]
    fn encodings() {
        for (header, br, gzip) in [
            ("gzip, deflate, br, zstd", true, true),
            ("br;q=0, gzip", false, true),
            ("gzip;q=0.5", false, true),
            ("", false, false),
            ("brotli", false, false),
        ] {
            assert_eq!((accepts(header, "br"), accepts(header, "gzip")), (br, gzip), "{header}");
        }
    }

    #[test]
    fn only_names_with_a_hash_are_kept_for_ever() {
        assert!(is_hashed("exitpilot-page-6a8f4dbb0e0eafec_bg.wasm"));
        assert!(is_hashed("exitpilot-page-bc3758ecf35cff6.js"));
        assert!(is_hashed("base-19bd4ab0a0d2a5d3.css"));
        assert!(!is_hashed("index.html") && !is_hashed("favicon.svg"));
    }
}
