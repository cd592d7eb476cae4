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
    serve_before(folder, policy, None).await
}

/// The same; what is below /api/ is asked of the panel at that address.
pub(crate) async fn serve_before(
    folder: PathBuf,
    policy: String,
    panel: Option<SocketAddr>,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (folder, policy) = (folder.clone(), policy.clone());
            tokio::spawn(async move {
                // What goes wrong here is missed by the page.
                let _ = tokio::time::timeout(LIMIT, answer(stream, &folder, &policy, panel)).await;
            });
        }
    });
    Ok(address)
}

async fn answer(
    mut stream: TcpStream,
    folder: &Path,
    policy: &str,
    panel: Option<SocketAddr>,
) -> io::Result<()> {
    let mut request = Vec::new();
    let end = loop {
        if let Some(end) = request.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    };
    if let Some(panel) = panel.filter(|_| request.split(|byte| *byte == b' ').nth(1).is_some_and(is_api)) {
        return forward(stream, &request, end, panel).await;
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

fn is_api(path: &[u8]) -> bool {
    path.starts_with(b"/api/")
}

/// Hands a request on, as one that ends its connection: the next one may be for a file.
async fn forward(mut stream: TcpStream, request: &[u8], end: usize, panel: SocketAddr) -> io::Result<()> {
    let (head, body) = request.split_at(end);
    let mut upstream = TcpStream::connect(panel).await?;
    for line in String::from_utf8_lossy(head).split("\r\n") {
        if !line.to_ascii_lowercase().starts_with("connection:") {
            upstream.write_all(format!("{line}\r\n").as_bytes()).await?;
        }
    }
    upstream.write_all(b"Connection: close").await?;
    upstream.write_all(body).await?;
    tokio::io::copy_bidirectional(&mut stream, &mut upstream).await.map(|_| ())
}
