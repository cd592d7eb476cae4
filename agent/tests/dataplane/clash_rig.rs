//! A client of the API that dashboards speak.

use crate::rig::*;
use agent::clash::{Clash, ClashOptions};
use agent::runtime::Runtime;
use futures_util::StreamExt as _;
use serde_json::Value;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_util::sync::CancellationToken;

pub(crate) const SECRET: &str = "a secret of dashboards";
pub(crate) const ORIGIN: &str = "https://dash.example";

pub(crate) fn options(secret: &str, origins: &[&str]) -> ClashOptions {
    let origins = origins.iter().map(|origin| (*origin).to_owned()).collect();
    ClashOptions { address: "127.0.0.1:0".parse().unwrap(), secret: secret.into(), origins }
}

/// The API of a runtime.
pub(crate) struct Dashboard {
    pub(crate) api: SocketAddr,
    pub(crate) stop: CancellationToken,
    pub(crate) served: tokio::task::JoinHandle<()>,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Dashboard {
    pub(crate) async fn of(runtime: &Runtime) -> Self {
        let clash = Clash::bind(&options(SECRET, &[ORIGIN])).await.unwrap();
        let (api, stop) = (clash.address().unwrap(), CancellationToken::new());
        // Before the first connection of the test.
        runtime.watch().begin();
        let served = tokio::spawn(clash.serve(runtime.clone(), stop.clone()));
        Self { api, stop, served }
    }

    /// With these lines in the head.
    pub(crate) async fn ask(&self, line: &str, head: &str, body: &str) -> Answer {
        soon(async {
            let mut stream = TcpStream::connect(self.api).await.unwrap();
            let length = body.len();
            let request = format!(
                "{line} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{head}Content-Length: {length}\r\n\r\n{body}",
                self.api
            );
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            let status = head.split(' ').nth(1).unwrap().parse().unwrap();
            Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
        })
        .await
    }

    /// With the secret; status and body.
    pub(crate) async fn request(&self, line: &str, body: &str) -> (u16, String) {
        let answer = self.ask(line, &format!("Authorization: Bearer {SECRET}\r\n"), body).await;
        (answer.status, answer.body)
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, body) = self.request(&format!("GET {path}"), "").await;
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// A websocket; `token` is part of its address.
    pub(crate) async fn stream(&self, path: &str) -> Result<WebSocketStream<TcpStream>, u16> {
        self.stream_of(path, None).await
    }

    /// A websocket that a page of this origin opens.
    pub(crate) async fn stream_of(
        &self,
        path: &str,
        origin: Option<&str>,
    ) -> Result<WebSocketStream<TcpStream>, u16> {
        let mut request = format!("ws://{}{path}", self.api).into_client_request().unwrap();
        if let Some(origin) = origin {
            request.headers_mut().insert("Origin", origin.parse().unwrap());
        }
        let tcp = TcpStream::connect(self.api).await.unwrap();
        match soon(tokio_tungstenite::client_async(request, tcp)).await {
            Ok((stream, _)) => Ok(stream),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }
}

/// The next message.
pub(crate) async fn next(stream: &mut WebSocketStream<TcpStream>) -> Value {
    soon(async {
        loop {
            if let Message::Text(text) = stream.next().await.unwrap().unwrap() {
                return serde_json::from_str(&text).unwrap();
            }
        }
    })
    .await
}
