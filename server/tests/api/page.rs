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

/// Every file that the page was built into, those in folders too, without its compressed forms: paths below the page's
/// folder.
fn files(folder: &std::path::Path, above: &str) -> Vec<String> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = format!("{above}{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            files.extend(self::files(&entry.path(), &format!("{name}/")));
        } else if !name.starts_with('.') && !name.ends_with(".br") && !name.ends_with(".gz") {
            files.push(name);
        }
    }
    files
}

#[tokio::test]
async fn every_file_has_its_type_its_forms_and_a_name_that_never_means_another() {
    if !is_built() {
        return;
    }
    let panel = Panel::new().await;
    let folder = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/site"));
    let files = files(folder, "");
    assert!(files.iter().any(|name| name.contains('/')), "no screen is loaded on demand: {files:?}");
    for ending in ["html", "js", "css", "wasm", "svg"] {
        assert!(files.iter().any(|name| name.ends_with(ending)), "no {ending} among {files:?}");
    }
    for name in &files {
        let path = format!("/{name}");
        let (media_type, caching) = match name.rsplit('.').next().unwrap() {
            "html" => ("text/html; charset=utf-8", "no-cache"),
            "js" => ("text/javascript; charset=utf-8", "public, max-age=31536000, immutable"),
            "css" => ("text/css; charset=utf-8", "public, max-age=31536000, immutable"),
            "wasm" => ("application/wasm", "public, max-age=31536000, immutable"),
            "svg" => ("image/svg+xml", "public, max-age=31536000, immutable"),
            other => panic!("nobody says what {other} is: {name}"),
        };
        for (accepted, encoding, ending) in [
            ("gzip, deflate, br, zstd", Some("br"), ".br"),
            ("gzip", Some("gzip"), ".gz"),
            ("br;q=0, gzip", Some("gzip"), ".gz"),
            ("identity", None, ""),
        ] {
            let answer =
                panel.call(Method::GET, &path).header(header::ACCEPT_ENCODING, accepted).response().await;
            let headers = answer.headers().clone();
            let case = format!("{name} for {accepted}: {headers:?}");
            assert_eq!(answer.status(), 200, "{case}");
            assert_eq!(headers[header::CONTENT_TYPE], media_type, "{case}");
            assert_eq!(headers[header::CACHE_CONTROL], caching, "{case}");
            assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff", "{case}");
            assert!(headers[header::VARY].to_str().unwrap().contains("Accept-Encoding"), "{case}");
            let encoded = headers.get(header::CONTENT_ENCODING).map(|value| value.to_str().unwrap());
            assert_eq!(encoded, encoding, "{case}");
            let body = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
            assert_eq!(body, std::fs::read(folder.join(format!("{name}{ending}"))).unwrap(), "{case}");
        }
    }
}
