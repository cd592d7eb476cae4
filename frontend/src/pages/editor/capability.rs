//! What the agents of a group's nodes cannot do.

use crate::i18n::{Lang, editor as words, lang, strategy};
use crate::pages::names::Names;
use crate::ui::Choice;
use shared::api::Node;
use shared::ids::NodeId;
use shared::strategy::{Protocol, Strategy};
use shared::topology::cannot_carry_out;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Names of the nodes whose agent has said what it can do, and not this. Who says nothing is given the benefit of the
/// doubt, as in validation.
fn cannot(nodes: &BTreeMap<NodeId, Arc<Node>>, members: &[NodeId], capability: &str) -> Vec<String> {
    members
        .iter()
        .filter_map(|id| nodes.get(id))
        .filter(|node| !node.capabilities.is_empty() && !node.capabilities.iter().any(|c| c == capability))
        .map(|node| node.name.clone())
        .collect()
}

/// The protocols on offer for a group, those that an agent of it cannot do with the reason. One that this page does
/// not know is kept.
pub fn protocols(names: Names, members: &[NodeId], current: &Protocol) -> Vec<Choice> {
    protocol_choices(&names.all(), members, current, lang())
}

fn protocol_choices(
    nodes: &BTreeMap<NodeId, Arc<Node>>,
    members: &[NodeId],
    current: &Protocol,
    lang: Lang,
) -> Vec<Choice> {
    let unknown = matches!(current, Protocol::Other(_)).then(|| current.clone());
    Protocol::KNOWN
        .into_iter()
        .chain(unknown)
        .map(|protocol| {
            let label = strategy::protocol(&protocol, lang);
            let missing = match protocol {
                Protocol::Other(_) => Vec::new(),
                _ => cannot(nodes, members, &protocol.capability()),
            };
            if missing.is_empty() {
                return Choice::new(protocol.as_str(), label);
            }
            let why = words::AGENT_CANNOT.with(lang, &[("nodes", &missing.join(", "))]);
            Choice { possible: false, ..Choice::new(protocol.as_str(), format!("{label} — {why}")) }
        })
        .collect()
}

/// Names of the nodes whose agent cannot carry out a strategy. Agents that list none are given the benefit of the doubt.
pub fn strategy_missing(names: Names, holders: &[NodeId], strategy: &Strategy) -> Vec<String> {
    strategy_missing_in(&names.all(), holders, strategy)
}

fn strategy_missing_in(
    nodes: &BTreeMap<NodeId, Arc<Node>>,
    holders: &[NodeId],
    strategy: &Strategy,
) -> Vec<String> {
    let cannot = |node: &&Arc<Node>| cannot_carry_out(&node.capabilities, node.last_seen.is_some(), strategy);
    holders.iter().filter_map(|id| nodes.get(id)).filter(cannot).map(|node| node.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: i64, capabilities: &str) -> (NodeId, Arc<Node>) {
        let node = format!(
            r#"{{"id":{id},"revision":1,"name":"n{id}","serverIp":"192.0.2.1","serverIpV4":"","serverIpV6":"",
                "portRange":"1-2","interfaceName":"","tcpListenAddr":"","udpListenAddr":"","online":true,
                "version":"","capabilities":{capabilities},"lastSeen":null}}"#
        );
        (NodeId(id), Arc::new(serde_json::from_str(&node).unwrap()))
    }

    #[test]
    fn a_strategy_is_refused_only_by_agents_that_list_theirs() {
        let nodes = BTreeMap::from([
            node(1, r#"["strategy:fifo","strategy:round"]"#),
            node(2, r#"["protocol:tls"]"#),
            node(3, "[]"),
        ]);
        let missing =
            |strategy: Strategy| strategy_missing_in(&nodes, &[1, 2, 3].map(NodeId), &strategy).join(",");
        assert_eq!(missing(Strategy::Hash), "n1");
        assert_eq!(missing(Strategy::Round), "");
        // The agents see `best` as `fifo`.
        assert_eq!(missing(Strategy::Best), "");
        assert_eq!(missing(Strategy::Other("x".into())), "");
        assert_eq!(missing("urltest(tolerance=5ms)".into()), "n1");
    }

    #[test]
    fn what_an_agent_cannot_do_is_offered_with_the_reason_and_cannot_be_chosen() {
        let nodes = BTreeMap::from([node(1, r#"["protocol:tls"]"#), node(2, "[]")]);
        let choices = |members: &[i64], current: &str| {
            let members: Vec<NodeId> = members.iter().map(|id| NodeId(*id)).collect();
            protocol_choices(&nodes, &members, &Protocol::from(current), Lang::En)
        };
        let possible = |choices: Vec<Choice>| -> Vec<String> {
            choices.into_iter().filter(|c| c.possible).map(|c| c.value).collect()
        };
        assert_eq!(possible(choices(&[1, 2], "tls")), ["tls"]);
        assert_eq!(possible(choices(&[2], "tls")).len(), Protocol::KNOWN.len());
        let wss = choices(&[1], "tls").remove(1);
        assert_eq!(wss.label, "WSS — not supported by the agent of n1");
        // A value from a newer panel stays choosable.
        assert_eq!(possible(choices(&[1], "quic")), ["tls", "quic"]);
    }
}
