//! The panel's REST API as a program uses it.

use super::http::{self, Ask, HttpError};
use super::place::Place;
use http_body_util::BodyExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use shared::api::{
    DecisionLogEntry, DiagnoseLine, Event, Forward, ForwardInput, LegHistory, LoginAnswer, LoginRequest,
    Node, NodeInput, NodeRuntime, OwnerDecision, PinInput, Problem, SettingsAnswer, SettingsInput, Tunnel,
    TunnelDecisions, TunnelInput,
};
use shared::ids::{ForwardId, NodeId, TunnelId};
use std::net::SocketAddr;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::mpsc;

/// For one request. Creating a user hashes a password with argon2 in a debug build on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);
/// Events that wait to be looked at.
const EVENTS: usize = 4096;

/// Why a request did not do what was asked.
#[derive(Debug, Error)]
pub enum ApiError {
    /// No answer.
    #[error("{what}: {source}")]
    NoAnswer {
        /// Method and path.
        what: String,
        /// Why.
        source: HttpError,
    },
    /// The panel says no.
    #[error("{what}: {status} {detail}{}", problem.as_ref().map_or_else(String::new, |p| format!(" {:?}", p.errors)))]
    Refused {
        /// Method and path.
        what: String,
        /// HTTP status.
        status: u16,
        /// What it says, or the start of the body where that is no problem document.
        detail: String,
        /// All of it.
        problem: Option<Box<Problem>>,
    },
    /// The answer is not what was expected.
    #[error("{what}: {source} in {body}")]
    Strange {
        /// Method and path.
        what: String,
        /// Why.
        source: serde_json::Error,
        /// The start of the body.
        body: String,
    },
}

impl ApiError {
    /// The HTTP status, if there was an answer.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::NoAnswer { .. } | Self::Strange { .. } => None,
        }
    }
}

type Answer<T> = Result<T, ApiError>;

/// A logged-in client.
#[derive(Clone, Debug)]
pub struct Api {
    place: Place,
    server: SocketAddr,
    token: Option<String>,
}

impl Api {
    /// Logs in.
    ///
    /// # Errors
    /// As all requests here.
    pub async fn login(place: Place, server: SocketAddr, username: &str, password: &str) -> Answer<Self> {
        let mut api = Self { place, server, token: None };
        let request = LoginRequest { username: username.to_owned(), password: password.to_owned() };
        let answer: LoginAnswer = api.send("POST", "/api/v1/auth/login", &request).await?;
        api.token = Some(answer.token);
        Ok(api)
    }

    async fn raw(&self, method: &str, path: &str, body: Option<Vec<u8>>) -> Answer<Vec<u8>> {
        let ask = Ask { method, path, token: self.token.as_deref(), body, limit: LIMIT };
        let what = || format!("{method} {path}");
        let answer = http::ask(&self.place, self.server, ask).await;
        let (status, body) = answer.map_err(|source| ApiError::NoAnswer { what: what(), source })?;
        if (200..300).contains(&status) {
            return Ok(body);
        }
        let problem: Option<Box<Problem>> = serde_json::from_slice(&body).ok();
        let detail = problem.as_ref().map_or_else(|| start_of(&body), |problem| problem.detail.clone());
        Err(ApiError::Refused { what: what(), status, detail, problem })
    }

    /// Any request with a JSON body.
    ///
    /// # Errors
    /// As all requests here.
    pub async fn send<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: &impl Serialize,
    ) -> Answer<T> {
        // Our own types always have a JSON form.
        let json = serde_json::to_vec(body).unwrap_or_default();
        parsed(method, path, &self.raw(method, path, Some(json)).await?)
    }

    /// Any GET that answers JSON.
    ///
    /// # Errors
    /// As all requests here.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Answer<T> {
        parsed("GET", path, &self.raw("GET", path, None).await?)
    }

    /// Any GET that answers text.
    ///
    /// # Errors
    /// As all requests here.
    pub async fn text(&self, path: &str) -> Answer<String> {
        Ok(String::from_utf8_lossy(&self.raw("GET", path, None).await?).into_owned())
    }

    /// Any request whose answer does not matter.
    ///
    /// # Errors
    /// As all requests here.
    pub async fn call(&self, method: &str, path: &str) -> Answer<()> {
        self.raw(method, path, None).await.map(|_| ())
    }

    /// Tries a tunnel; all lines of the answer.
    ///
    /// # Errors
    /// As all requests here.
    pub async fn diagnose(&self, id: TunnelId) -> anyhow::Result<Vec<DiagnoseLine>> {
        let body = self.raw("POST", &format!("/api/v1/tunnels/{id}/diagnose"), None).await?;
        let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        Ok(lines.map(serde_json::from_slice).collect::<Result<_, _>>()?)
    }

    /// All nodes.
    ///
    /// # Errors
    /// As all requests here.
    pub async fn nodes(&self) -> Answer<Vec<Node>> {
        self.get("/api/v1/nodes").await
    }

    /// One node.
    ///
    /// # Errors
    /// As all requests here.
    pub async fn node(&self, id: NodeId) -> Answer<Node> {
        self.get(&format!("/api/v1/nodes/{id}")).await
    }

    /// The answer has the secret.
    ///
    /// # Errors
    /// As all requests here.
    pub async fn create_node(&self, node: &NodeInput) -> Answer<Node> {
        self.send("POST", "/api/v1/nodes", node).await
    }

    /// All tunnels.
    ///
    /// # Errors
    /// As all requests here.
    pub async fn tunnels(&self) -> Answer<Vec<Tunnel>> {
        self.get("/api/v1/tunnels").await
    }

    /// One tunnel.
    ///
    /// # Errors
    /// As all requests here.
    pub async fn tunnel(&self, id: TunnelId) -> Answer<Tunnel> {
        self.get(&format!("/api/v1/tunnels/{id}")).await
    }

    /// Creates a tunnel.
    ///
    /// # Errors
    /// As all requests here.
    pub async fn create_tunnel(&self, tunnel: &TunnelInput) -> Answer<Tunnel> {
        self.send("POST", "/api/v1/tunnels", tunnel).await
    }

    /// Edits a tunnel.
    ///
    /// # Errors
    /// As all requests here.
    pub async fn update_tunnel(&self, id: TunnelId, tunnel: &TunnelInput) -> Answer<Tunnel> {
        self.send("PUT", &format!("/api/v1/tunnels/{id}"), tunnel).await
    }

    /// What each node should be running.
    ///
    /// # Errors
    /// As all requests here.
    pub async fn runtime(&self, id: TunnelId) -> Answer<Vec<NodeRuntime>> {
        self.get(&format!("/api/v1/tunnels/{id}/runtime")).await
    }

    /// State of a tunnel's decisions.
    ///
    /// # Errors
    /// As all requests here.
    pub async fn decisions(&self, id: TunnelId) -> Answer<TunnelDecisions> {
        self.get(&format!("/api/v1/tunnels/{id}/decisions")).await
    }

    /// The decision of a tunnel's only owner.
    ///
    /// # Errors
    /// As all requests here; and when there is not exactly one owner.
    pub async fn decision(&self, id: TunnelId) -> anyhow::Result<OwnerDecision> {
        let owners = self.decisions(id).await?.owners;
        let [owner] = <[OwnerDecision; 1]>::try_from(owners)
            .map_err(|owners| anyhow::anyhow!("tunnel {id} has {} owners", owners.len()))?;
        Ok(owner)
    }

    /// Newest first.
    ///
    /// # Errors
    /// As all requests here.
    pub async fn decision_log(&self, id: TunnelId) -> Answer<Vec<DecisionLogEntry>> {
        self.get(&format!("/api/v1/tunnels/{id}/decision-log?limit=500")).await
    }

    /// What was measured; `query` has the span and the step.
    ///
    /// # Errors
    /// As all requests here.
    pub async fn quality(&self, id: TunnelId, query: &str) -> Answer<Vec<LegHistory>> {
        self.get(&format!("/api/v1/tunnels/{id}/quality?{query}")).await
    }

    /// Pins an exit.
    ///
    /// # Errors
    /// As all requests here.
    pub async fn pin(&self, id: TunnelId, pin: &PinInput) -> Answer<serde::de::IgnoredAny> {
        self.send("PUT", &format!("/api/v1/tunnels/{id}/pin"), pin).await
    }

    /// One forward.
    ///
    /// # Errors
    /// As all requests here.
    pub async fn forward(&self, id: ForwardId) -> Answer<Forward> {
        self.get(&format!("/api/v1/forwards/{id}")).await
    }

    /// All forwards.
    ///
    /// # Errors
    /// As all requests here.
    pub async fn forwards(&self) -> Answer<Vec<Forward>> {
        self.get("/api/v1/forwards").await
    }

    /// Creates a forward.
    ///
    /// # Errors
    /// As all requests here.
    pub async fn create_forward(&self, forward: &ForwardInput) -> Answer<Forward> {
        self.send("POST", "/api/v1/forwards", forward).await
    }

    /// The settings in force.
    ///
    /// # Errors
    /// As all requests here.
    pub async fn settings(&self) -> Answer<SettingsAnswer> {
        self.get("/api/v1/settings").await
    }

    /// Changes settings.
    ///
    /// # Errors
    /// As all requests here.
    pub async fn put_settings(&self, settings: &SettingsInput) -> Answer<SettingsAnswer> {
        self.send("PUT", "/api/v1/settings", settings).await
    }

    /// One of the numbers at `/metrics`: the sum of all samples of this name.
    ///
    /// # Errors
    /// As all requests here; and when there is no such number.
    pub async fn metric(&self, name: &str) -> anyhow::Result<f64> {
        let text = self.text("/metrics").await?;
        let samples: Vec<f64> = text.lines().filter_map(|line| sample(line, name)).collect();
        anyhow::ensure!(!samples.is_empty(), "no {name} in\n{text}");
        Ok(samples.iter().sum())
    }

    /// The panel's events from now on, until the receiver is dropped or the panel goes away.
    ///
    /// # Errors
    /// As all requests here.
    pub async fn events(&self) -> Answer<mpsc::Receiver<Event>> {
        let path = "/api/v1/events";
        let what = || format!("GET {path}");
        let ask = Ask { method: "GET", path, token: self.token.as_deref(), body: None, limit: LIMIT };
        let opened = tokio::time::timeout(LIMIT, http::open(&self.place, self.server, ask)).await;
        let response = opened.unwrap_or(Err(HttpError::Timeout(LIMIT)));
        let response = response.map_err(|source| ApiError::NoAnswer { what: what(), source })?;
        let status = response.status().as_u16();
        if status != 200 {
            return Err(ApiError::Refused { what: what(), status, detail: String::new(), problem: None });
        }
        let (sender, receiver) = mpsc::channel(EVENTS);
        let mut body = response.into_body();
        tokio::spawn(async move {
            let mut pending = Vec::new();
            loop {
                let frame = tokio::select! {
                    frame = body.frame() => frame,
                    () = sender.closed() => return,
                };
                let Some(Ok(frame)) = frame else { return };
                let Ok(data) = frame.into_data() else { continue };
                pending.extend_from_slice(&data);
                while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = pending.drain(..=end).collect();
                    let Some(json) = line.strip_prefix(b"data:") else { continue };
                    let Ok(event) = serde_json::from_slice(json) else { continue };
                    if sender.send(event).await.is_err() {
                        return;
                    }
                }
            }
        });
        Ok(receiver)
    }
}

fn parsed<T: DeserializeOwned>(method: &str, path: &str, body: &[u8]) -> Answer<T> {
    // 204 has no body, and nothing is `null` in JSON.
    let json = if body.is_empty() { b"null" } else { body };
    serde_json::from_slice(json).map_err(|source| ApiError::Strange {
        what: format!("{method} {path}"),
        source,
        body: start_of(body),
    })
}

fn start_of(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().take(400).collect()
}

/// `name{label="value"} 12` or `name 12`.
fn sample(line: &str, name: &str) -> Option<f64> {
    let rest = line.strip_prefix(name)?;
    let value = match rest.strip_prefix('{') {
        Some(labels) => labels.rsplit_once("} ")?.1,
        None => rest.strip_prefix(' ')?,
    };
    value.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_metric() {
        assert_eq!(sample("a_total 7", "a_total"), Some(7.0));
        assert_eq!(sample("a_total{x=\"b} c\"} 7.5 123", "a_total"), Some(7.5));
        assert_eq!(sample("a_total_other 7", "a_total"), None);
        assert_eq!(sample("# HELP a_total 7", "a_total"), None);
    }
}
