//! What is wrong with a tunnel or with settings.

use super::{Outcome, input};
use crate::api::TunnelInput;
use crate::best_exit::Settings;
use crate::field::FieldError;
use crate::ids::NodeId;
use crate::topology::{Findings, KnownNode, World, validate_tunnel};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is known of the panel.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WorldInput {
    nodes: Vec<NodeInput>,
    #[serde(default)]
    tunnel_names: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NodeInput {
    id: NodeId,
    #[serde(default)]
    name: String,
    #[serde(default = "every_port")]
    port_range: String,
    #[serde(default)]
    capabilities: Vec<String>,
    #[serde(default)]
    seen: bool,
    #[serde(default)]
    taken_ports: BTreeMap<u16, String>,
}

fn every_port() -> String {
    "1-65535".to_owned()
}

impl From<WorldInput> for World {
    fn from(input: WorldInput) -> Self {
        let node = |node: NodeInput| {
            let known = KnownNode {
                name: if node.name.is_empty() { format!("node {}", node.id) } else { node.name },
                port_range: node.port_range,
                capabilities: node.capabilities,
                seen: node.seen,
                taken_ports: node.taken_ports,
            };
            (node.id, known)
        };
        Self {
            nodes: input.nodes.into_iter().map(node).collect(),
            tunnel_names: input.tunnel_names.into_iter().collect(),
        }
    }
}

/// All nodes that a tunnel names, as nodes of which nothing else is known.
fn named_nodes(tunnel: &TunnelInput) -> World {
    let entries = tunnel.entry.nodes.iter().map(|node| node.node_id);
    let groups = tunnel.hops.iter().chain(&tunnel.exit).flat_map(|group| &group.nodes);
    let node = |id: NodeId| {
        let known =
            KnownNode { name: format!("node {id}"), port_range: every_port(), ..KnownNode::default() };
        (id, known)
    };
    World { nodes: entries.chain(groups.map(|node| node.node_id)).map(node).collect(), ..World::default() }
}

/// The result of a validation; both lists empty: all is well.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Checked {
    /// Prevent storing.
    pub errors: Vec<FieldError>,
    /// Are told, and stored all the same.
    pub warnings: Vec<FieldError>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TunnelArguments {
    tunnel: TunnelInput,
    #[serde(default)]
    world: Option<WorldInput>,
}

/// Checks a tunnel as the panel does before it stores it: `{ tunnel, world? }`. Without a world every node is held to be
/// there and able to do everything.
pub fn tunnel(json: &str) -> Outcome<Checked> {
    let TunnelArguments { tunnel, world } = input::arguments(json)?;
    let is_known = world.is_some();
    let world = world.map_or_else(|| named_nodes(&tunnel), World::from);
    let Findings { mut errors, warnings } = validate_tunnel(&tunnel, &world);
    if !is_known {
        // A member's name, and nobody has said the names.
        errors.retain(|error| error.code != "strategy_default");
    }
    Ok(Checked { errors, warnings })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingsArguments {
    settings: Settings,
}

/// Checks settings: `{ settings }`.
pub fn settings(json: &str) -> Outcome<Checked> {
    let SettingsArguments { settings } = input::arguments(json)?;
    Ok(Checked { errors: settings.validate(), warnings: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TUNNEL: &str = r#"{"name":"hk","entry":{"nodes":[{"nodeId":1}]},
        "exit":{"strategy":"selector(default=a)","nodes":[{"nodeId":2},{"nodeId":3,"port":443}]}}"#;

    #[test]
    fn without_a_world_only_the_tunnel_counts() {
        let checked = tunnel(&format!(r#"{{"tunnel":{TUNNEL}}}"#)).unwrap();
        assert_eq!(checked.errors, []);
        let nodes = r#"{"nodes":[{"id":1},{"id":2,"name":"b"},{"id":3,"portRange":"1000-2000"}]}"#;
        let checked = tunnel(&format!(r#"{{"tunnel":{TUNNEL},"world":{nodes}}}"#)).unwrap();
        let found: Vec<&str> = checked.errors.iter().map(|error| error.code.as_str()).collect();
        assert_eq!(found, ["port_outside_range", "strategy_default"]);
    }

    #[test]
    fn the_path_of_what_does_not_fit_begins_with_the_argument() {
        let error = tunnel(r#"{"tunnel":{"name":"hk","entry":{"nodes":[{"nodeId":"x"}]}}}"#).unwrap_err();
        assert_eq!(
            (error.field.as_str(), error.code.as_str()),
            ("tunnel.entry.nodes[0].nodeId", "invalid_type")
        );
        let error = settings(r#"{"settings":{"pingcount":1}}"#).unwrap_err();
        assert_eq!((error.field.as_str(), error.code.as_str()), ("settings.pingcount", "unknown_field"));
        let checked = settings(r#"{"settings":{"pingCount":0}}"#).unwrap();
        assert_eq!(checked.errors[0].field, "pingCount");
    }
}
