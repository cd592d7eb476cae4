//! A client of the agent's own HTTP API.

use crate::rig::soon;
use agent::api::{Api, ApiOptions};
use agent::runtime::Runtime;
use agent::standalone::Reload;
use serde_json::Value;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(crate) const TOKEN: &str = "a-secret-token";

pub(crate) async fn api(runtime: &Runtime, reloads: Option<mpsc::Sender<Reload>>) -> SocketAddr {
    let options = ApiOptions { address: "127.0.0.1:0".parse().unwrap(), token: Some(TOKEN.into()) };
    assert!(!format!("{options:?}").contains(TOKEN));
    let api = Api::bind(&options).await.unwrap();
    let address = api.address().unwrap();
    tokio::spawn(api.serve(runtime.clone(), reloads, CancellationToken::new()));
    address
}

/// Status and body.
pub(crate) async fn request(api: SocketAddr, line: &str, token: Option<&str>) -> (u16, String) {
    soon(async {
        let mut stream = TcpStream::connect(api).await.unwrap();
        let auth = token.map_or_else(String::new, |token| format!("Authorization: {token}\r\n"));
        let request = format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{auth}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    })
    .await
}

pub(crate) async fn get(api: SocketAddr, path: &str) -> String {
    let (status, body) = request(api, &format!("GET {path}"), Some(&format!("Bearer {TOKEN}"))).await;
    assert_eq!(status, 200, "{path}: {body}");
    body
}

pub(crate) async fn json(api: SocketAddr, path: &str) -> Value {
    serde_json::from_str(&get(api, path).await).unwrap()
}
