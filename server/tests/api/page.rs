//! The embedded page, built or not.

use crate::panel::Panel;
use axum::http::{Method, header};

fn is_built() -> bool {
    std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/site/index.html")).exists()
}

#[tokio::test]
async fn the_page_is_served_for_its_own_addresses_with_a_strict_policy() {
    let panel = Panel::new().await;
    for path in ["/", "/tunnels", "/tunnels/7/edit"] {
        let answer = panel.call(Method::GET, path).send().await;
        assert_eq!(answer.headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert_eq!(answer.headers[header::REFERRER_POLICY], "no-referrer");
        if !is_built() {
            assert_eq!(answer.status, 503);
            assert_eq!(answer.text, "the page was not built: run cargo xtask build\n");
            continue;
        }
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.headers[header::CONTENT_TYPE], "text/html; charset=utf-8");
        assert_eq!(answer.headers[header::CACHE_CONTROL], "no-cache");
        let policy = answer.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
        assert!(!policy.contains("unsafe-inline") && !policy.contains("'unsafe-eval'"), "{policy}");
        let scripts = answer.text.matches("<script").count() - answer.text.matches("<script src").count();
        assert!(scripts == 0 || policy.contains("'sha256-"), "{policy}");
    }
}

#[tokio::test]
async fn unknown_files_and_hidden_ones_are_not_the_page() {
    let panel = Panel::new().await;
    for path in ["/nothing.js", "/.keep", "/index.html.br", "/../Cargo.toml", "/a/b.css"] {
        panel.call(Method::GET, path).send().await.expect(404);
    }
    panel.call(Method::POST, "/").send().await.expect(405);
}

#[tokio::test]
async fn files_are_compressed_cached_and_known_by_their_tag() {
    if !is_built() {
        return;
    }
    let panel = Panel::new().await;
    let index = panel.call(Method::GET, "/").send().await;
    let mut parts = index.text.split('"');
    let wasm = parts.find(|part| part.ends_with(".wasm")).unwrap().trim_start_matches('.').to_owned();
    let plain = panel.call(Method::GET, &wasm).send().await;
    assert_eq!(plain.headers[header::CONTENT_TYPE], "application/wasm");
    assert_eq!(plain.headers[header::CACHE_CONTROL], "public, max-age=31536000, immutable");
    assert!(!plain.headers.contains_key(header::CONTENT_ENCODING));
    let known = panel
        .call(Method::GET, &wasm)
        .header(header::IF_NONE_MATCH, plain.headers[header::ETAG].to_str().unwrap());
    assert_eq!(known.send().await.status, 304);
}
