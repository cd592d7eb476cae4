//! Bodies of requests to the panel, and the validation that panel and page share.

use crate::Target;
use serde::Serialize;
use serde::de::DeserializeOwned;
use shared::api::{
    ForwardInput, LoginRequest, NodeInput, PasswordChange, PinInput, SettingsInput, TunnelInput,
};
use shared::ids::NodeId;
use shared::link::{Hello, ProbeBatchResult, Report, TcpPingResult};
use shared::topology::{Findings, KnownNode, World, validate_forward, validate_tunnel};
use std::sync::LazyLock;

pub(crate) const TARGET: Target = Target {
    name: "api",
    run: fuzz,
    words: &[
        "{\"name\":\"",
        "\"type\":\"tunnel\"",
        "\"entry\":{",
        "\"hops\":[{",
        "\"exit\":{",
        "\"nodes\":[{\"nodeId\":",
        "1}",
        "\"port\":",
        "\"connectIp\":\"",
        "\"strategy\":\"best\"",
        "\"protocol\":\"tls\"",
        "\"maxFails\":",
        "\"failTimeoutMs\":",
        "\"tunnelId\":",
        "\"listenPort\":",
        "\"listenIp\":\"",
        "\"targets\":[\"",
        "\"portRange\":\"",
        "\"serverIp\":\"",
        "\"probeTarget\":\"",
        "\"decisionRules\":",
        "\"roundIntervalMs\":",
        "\"pingCount\":",
        "null",
        "true",
        "-1",
        "0.1",
        "1e308",
        "65535",
        "4294967296",
        "]",
        "}",
    ],
};

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let node = |name: &str, capabilities: &[&str]| KnownNode {
        name: name.to_owned(),
        port_range: "1000-2000,3000".to_owned(),
        capabilities: capabilities.iter().map(|&text| text.to_owned()).collect(),
        seen: true,
        taken_ports: [(1000, "another tunnel".to_owned())].into(),
    };
    let nodes = [node("a", &[]), node("b", &["protocol:tls"]), node("c", &["protocol:tls", "strategy:fifo"])];
    World { nodes: (1..).map(NodeId).zip(nodes).collect(), tunnel_names: ["taken".to_owned()].into() }
});

fn fuzz(bytes: &[u8]) {
    if let Some(tunnel) = read::<TunnelInput>(bytes) {
        told(&validate_tunnel(&tunnel, &WORLD));
        told(&validate_tunnel(&tunnel, &World::default()));
    }
    if let Some(forward) = read::<ForwardInput>(bytes) {
        let nodes: Vec<KnownNode> = WORLD.nodes.values().cloned().collect();
        told(&validate_forward(&forward, Some(&nodes)));
        told(&validate_forward(&forward, None));
    }
    let _ = read::<NodeInput>(bytes);
    let _ = read::<PinInput>(bytes);
    let _ = read::<LoginRequest>(bytes);
    let _ = read::<PasswordChange>(bytes);
    let _ = read::<Hello>(bytes);
    // Numbers with fractions may lose their last digit when they are read.
    let _ = serde_json::from_slice::<Report>(bytes);
    let _ = serde_json::from_slice::<ProbeBatchResult>(bytes);
    let _ = serde_json::from_slice::<TcpPingResult>(bytes);
    if let Ok(settings) = serde_json::from_slice::<SettingsInput>(bytes) {
        let _ = settings.over(shared::best_exit::Settings::default());
    }
}

/// Reads a body, which must be the same when it is written and read again.
fn read<T: Serialize + DeserializeOwned + PartialEq>(bytes: &[u8]) -> Option<T> {
    let input: T = serde_json::from_slice(bytes).ok()?;
    let json = serde_json::to_string(&input).expect("a body can be written");
    let again: T = serde_json::from_str(&json).expect("what we write we can read");
    assert!(again == input, "{json}");
    Some(input)
}

/// What is found wrong names a field and has a code and a sentence.
fn told(findings: &Findings) {
    for finding in findings.errors.iter().chain(&findings.warnings) {
        assert!(!finding.field.is_empty() && !finding.code.is_empty() && !finding.message.is_empty());
    }
}
