//! An agent that says what it can do, and nothing else: what the page makes of agents that can do little.

use anyhow::{Context as _, Result};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use shared::envelope::Sealer;
use shared::link::{Frame, Hello};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;

/// Such an agent; connected for as long as it is held, unless the panel loses patience with it.
#[derive(Debug)]
pub(crate) struct Played(JoinHandle<()>);

impl Played {
    /// Connects with a node's secret and says hello.
    pub(crate) async fn connect(panel: SocketAddr, secret: &str, capabilities: &[&str]) -> Result<Self> {
        let url = format!("ws://{panel}/system-info?type=1&secret={secret}&version=1.0");
        let (mut socket, _) = tokio_tungstenite::connect_async(url).await.context("no link")?;
        let hello = Hello {
            agent: "played".into(),
            version: "1.0".into(),
            capabilities: capabilities.iter().map(|capability| (*capability).to_owned()).collect(),
            digests: BTreeMap::new(),
            failed: BTreeMap::new(),
        };
        let frame = serde_json::to_string(&Frame::message("hello", json!(hello)))?;
        let sealed = Sealer::new(secret).seal(&frame, [0; 12], 0);
        socket.send(Message::Text(sealed.into())).await?;
        // What it is asked stays unanswered.
        let hears = async move { while let Some(Ok(_)) = socket.next().await {} };
        Ok(Self(tokio::spawn(hears)))
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        self.0.abort();
    }
}
