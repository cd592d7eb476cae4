//! Where the dashboard's files are, and a server for files.

use std::env;
use std::io;
use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// For one request.
const LIMIT: Duration = Duration::from_secs(30);

/// The folder of the files: `EXITPILOT_DASHBOARD_DIR`, else the one that `cargo xtask setup` fills. `None` where there is
/// none; then the skip is already announced and the test returns.
pub(crate) fn folder() -> Option<PathBuf> {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")));
    let folders = env::var_os("EXITPILOT_DASHBOARD_DIR").map(PathBuf::from).into_iter();
    let mut folders = folders.chain(cache.map(|cache| cache.join("exitpilot/peers/dashboard")));
    let found = folders.find(|folder| folder.join("index.html").is_file());
    if found.is_none() {
        println!("SKIPPED: no dashboard made for Clash, run cargo xtask setup");
    }
    found
}

/// Serves these files on loopback for as long as the test runs, with this content security policy.
pub(crate) async fn serve(folder: PathBuf, policy: String) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (folder, policy) = (folder.clone(), policy.clone());
            tokio::spawn(async move {
                // What goes wrong here is missed by the page.
                let _ = tokio::time::timeout(LIMIT, answer(stream, &folder, &policy)).await;
            });
        }
    });
    Ok(address)
}

async fn answer(mut stream: TcpStream, folder: &Path, policy: &str) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let request = String::from_utf8_lossy(&request);
    let path = request.split(' ').nth(1).unwrap_or("/").split('?').next().unwrap_or("/");
    let name = Path::new(path.trim_start_matches('/'));
    let name = if name.as_os_str().is_empty() { Path::new("index.html") } else { name };
    let inside = name.components().all(|part| matches!(part, Component::Normal(_)));
    let body = if inside { tokio::fs::read(folder.join(name)).await.ok() } else { None };
    let (status, body) = match body {
        Some(body) => ("200 OK", body),
        None => ("404 Not Found", Vec::new()),
    };
    let kind = match name.extension().and_then(|it| it.to_str()) {
        Some("html") => "text/html",
        Some("js" | "mjs") => "text/javascript",
        Some("json") => "application/json",
        Some("wasm") => "application/wasm",
        Some("css") => "text/css",
        Some("svg") => "image/svg+xml",
        Some("webmanifest") => "application/manifest+json",
        _ => "application/octet-stream",
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\
         Content-Security-Policy: {policy}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&body).await?;
    stream.shutdown().await
}
