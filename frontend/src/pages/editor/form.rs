//! What is typed into the editor, and how it becomes what is sent.

use crate::reactive::{RwSignal, StoredValue};
use crate::ui::Checked;
use leptos::prelude::*;
use shared::api::{EntryGroup, EntryNode, Group, GroupNode, IpPreference, TunnelInput, TunnelType};
use shared::field::FieldError;
use shared::ids::NodeId;
use shared::strategy::{Protocol, Strategy};
use shared::topology::{World, validate_tunnel};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A node of a group, with what is typed for it.
#[derive(Clone, Copy, PartialEq)]
pub struct Member {
    /// The node.
    pub node: NodeId,
    /// Relay port; empty = automatic.
    pub port: RwSignal<String>,
    /// Connect address; empty = the node's.
    pub connect_ip: RwSignal<String>,
}

impl Member {
    /// A node as it is added.
    pub fn new(node: NodeId) -> Self {
        Self { node, port: RwSignal::new(String::new()), connect_ip: RwSignal::new(String::new()) }
    }

    fn from_node(node: &GroupNode) -> Self {
        Self {
            node: node.node_id,
            port: RwSignal::new(node.port.map(|port| port.to_string()).unwrap_or_default()),
            connect_ip: RwSignal::new(node.connect_ip.clone().unwrap_or_default()),
        }
    }
}

/// A hop or the exits, with what is typed for it.
#[derive(Clone, Copy, PartialEq)]
pub struct GroupForm {
    /// Tells hops apart while they are moved.
    pub key: u32,
    /// How a node is chosen.
    pub strategy: RwSignal<Strategy>,
    /// The transport.
    pub protocol: RwSignal<Protocol>,
    /// Text of the number.
    pub max_fails: RwSignal<String>,
    /// Text of the number of milliseconds.
    pub fail_timeout: RwSignal<String>,
    /// In order.
    pub members: RwSignal<Vec<Member>>,
}

impl GroupForm {
    /// From what is stored, or from the defaults.
    pub fn from_group(group: &Group) -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        Self {
            key: LAST.fetch_add(1, Ordering::Relaxed),
            strategy: RwSignal::new(group.strategy.clone()),
            protocol: RwSignal::new(group.protocol.clone()),
            max_fails: RwSignal::new(group.max_fails.to_string()),
            fail_timeout: RwSignal::new(group.fail_timeout_ms.to_string()),
            members: RwSignal::new(group.nodes.iter().map(Member::from_node).collect()),
        }
    }

    /// The group as it would be sent; texts that are no numbers go to `errors`.
    fn to_group(self, path: &str, errors: &mut Vec<FieldError>) -> Group {
        let standard = Group::default();
        let mut number = |text: String, field: &str, fallback: u64| match text.trim().parse::<u64>() {
            Ok(number) => number,
            Err(_) => {
                errors.push(FieldError::new(
                    format!("{path}.{field}"),
                    "whole_number",
                    "write a whole number",
                ));
                fallback
            }
        };
        let max_fails = number(self.max_fails.get(), "maxFails", u64::from(standard.max_fails));
        let fail_timeout_ms = number(self.fail_timeout.get(), "failTimeoutMs", standard.fail_timeout_ms);
        let mut nodes = Vec::new();
        for (index, member) in self.members.get().into_iter().enumerate() {
            let port = member.port.get();
            let port = match port.trim() {
                "" => None,
                text => match text.parse::<u16>() {
                    Ok(port) if port > 0 => Some(port),
                    _ => {
                        let message = "the port must be a number from 1 to 65535";
                        errors.push(FieldError::new(
                            format!("{path}.nodes[{index}].port"),
                            "port_invalid",
                            message,
                        ));
                        None
                    }
                },
            };
            let connect_ip = member.connect_ip.get().trim().to_owned();
            nodes.push(GroupNode {
                node_id: member.node,
                port,
                connect_ip: (!connect_ip.is_empty()).then_some(connect_ip),
            });
        }
        Group {
            strategy: self.strategy.get(),
            protocol: self.protocol.get(),
            // Too many to count is out of range, which validation says.
            max_fails: u32::try_from(max_fails).unwrap_or(u32::MAX),
            fail_timeout_ms,
            nodes,
        }
    }
}

/// Everything that is typed. Lives as long as the editor's screen.
#[derive(Clone, Copy)]
pub struct Form {
    /// The version that is edited; none for a new tunnel.
    pub version: RwSignal<Option<i64>>,
    /// The name.
    pub name: RwSignal<String>,
    /// The type.
    pub kind: RwSignal<TunnelType>,
    /// Has a runtime.
    pub enabled: RwSignal<bool>,
    /// Address family between the groups.
    pub ip_preference: RwSignal<IpPreference>,
    /// In order.
    pub entry: RwSignal<Vec<Member>>,
    /// In order.
    pub hops: RwSignal<Vec<GroupForm>>,
    /// The exits; kept while the type is `port`, in case it is changed back.
    pub exit: GroupForm,
    /// Strategies and protocols this page does not know, as they came. They go back as they are: whether they are
    /// fine is for the panel to say, which may be newer.
    unknown: StoredValue<Arc<BTreeSet<String>>>,
    /// What was there when the form was made.
    owner: StoredValue<Option<Owner>>,
}

impl Form {
    /// A form for a tunnel, or for a new one.
    pub fn new(tunnel: Option<&TunnelInput>) -> Self {
        let fresh = TunnelInput { enabled: true, ..TunnelInput::default() };
        let input = tunnel.unwrap_or(&fresh);
        let exit =
            input.exit.clone().unwrap_or_else(|| Group { strategy: Strategy::Best, ..Group::default() });
        let entry = input.entry.nodes.iter().map(|node| Member::new(node.node_id)).collect();
        let mut unknown = BTreeSet::new();
        for group in input.hops.iter().chain(&input.exit) {
            if let Strategy::Other(text) = &group.strategy {
                unknown.insert(text.clone());
            }
            if let Protocol::Other(text) = &group.protocol {
                unknown.insert(text.clone());
            }
        }
        Self {
            version: RwSignal::new(input.version),
            name: RwSignal::new(input.name.clone()),
            kind: RwSignal::new(input.kind),
            enabled: RwSignal::new(input.enabled),
            ip_preference: RwSignal::new(input.ip_preference),
            entry: RwSignal::new(entry),
            hops: RwSignal::new(input.hops.iter().map(GroupForm::from_group).collect()),
            exit: GroupForm::from_group(&exit),
            unknown: StoredValue::new(Arc::new(unknown)),
            owner: StoredValue::new(Owner::current()),
        }
    }

    /// Makes something that lives as long as the form, whatever part of the screen asked for it.
    pub fn keeping<T>(&self, make: impl FnOnce() -> T) -> T {
        match self.owner.get_value() {
            Some(owner) => owner.with(make),
            None => make(),
        }
    }

    /// What would be sent, and the texts that are no numbers.
    pub fn input(&self) -> (TunnelInput, Vec<FieldError>) {
        let mut errors = Vec::new();
        let kind = self.kind.get();
        let (hops, exit) = match kind {
            TunnelType::Port => (Vec::new(), None),
            TunnelType::Tunnel => {
                let hops = self.hops.get();
                let hops = hops
                    .iter()
                    .enumerate()
                    .map(|(index, hop)| hop.to_group(&format!("hops[{index}]"), &mut errors))
                    .collect();
                (hops, Some(self.exit.to_group("exit", &mut errors)))
            }
        };
        let input = TunnelInput {
            version: self.version.get(),
            name: self.name.get().trim().to_owned(),
            kind,
            enabled: self.enabled.get(),
            ip_preference: self.ip_preference.get(),
            entry: EntryGroup {
                nodes: self.entry.get().iter().map(|member| EntryNode { node_id: member.node }).collect(),
            },
            hops,
            exit,
            ..TunnelInput::default()
        };
        (input, errors)
    }

    /// What would be sent, checked by the code that the panel checks it with.
    pub fn checked(&self, world: &World) -> Checked {
        let (input, mut errors) = self.input();
        let unknown = self.unknown.get_value();
        let kept = |error: &FieldError| {
            let text = match error.code.as_str() {
                "strategy_unknown" | "strategy_syntax" => error.params.get("strategy"),
                "protocol_unknown" => error.params.get("protocol"),
                // Whether an agent can do what this page has no word for is not for this page to say either.
                "capability_missing" => error.params.get("capability"),
                _ => None,
            };
            text.is_some_and(|text| unknown.contains(text.trim_start_matches("protocol:")))
        };
        errors.extend(validate_tunnel(&input, world).errors.into_iter().filter(|error| !kept(error)));
        Checked { json: serde_json::to_value(&input).unwrap_or_default(), errors }
    }

    /// The nodes before the hop at an index, or before the exits: the last hop's or the entry's.
    pub fn holders(&self, index: usize) -> Vec<NodeId> {
        let nodes = |members: &[Member]| members.iter().map(|member| member.node).collect();
        match index.checked_sub(1).and_then(|before| self.hops.with(|hops| hops.get(before).copied())) {
            Some(hop) => hop.members.with(|members| nodes(members)),
            None => self.entry.with(|members| nodes(members)),
        }
    }

    /// All nodes of the tunnel, for not offering one twice.
    pub fn used(&self) -> Vec<NodeId> {
        let mut used = Vec::new();
        let mut add = |members: &[Member]| used.extend(members.iter().map(|member| member.node));
        self.entry.with(|members| add(members));
        if self.kind.get() == TunnelType::Tunnel {
            self.exit.members.with(|members| add(members));
            for hop in self.hops.get() {
                hop.members.with(|members| add(members));
            }
        }
        used
    }
}

/// Moves an item by one place; at the end it stays.
pub fn shift<T>(items: &mut [T], from: usize, up: bool) {
    let to = if up { from.checked_sub(1) } else { Some(from + 1) };
    if let Some(to) = to.filter(|to| *to < items.len() && from < items.len()) {
        items.swap(from, to);
    }
}

/// Takes an item out and puts it in at another place.
pub fn relocate<T>(items: &mut Vec<T>, from: usize, to: usize) {
    if from < items.len() && to < items.len() {
        let item = items.remove(from);
        items.insert(to, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::topology::KnownNode;

    fn world() -> World {
        let node = |name: &str| KnownNode {
            name: name.into(),
            port_range: "10000-60000".into(),
            capabilities: vec!["protocol:tls".into(), "protocol:wss".into()],
            ..KnownNode::default()
        };
        World { nodes: [1, 2, 3].map(|id| (NodeId(id), node(&id.to_string()))).into(), ..World::default() }
    }

    fn tunnel() -> TunnelInput {
        serde_json::from_str(
            r#"{"version":7,"name":"hk","ipPreference":"v6","enabled":false,"entry":{"nodes":[{"nodeId":1}]},
                "hops":[{"strategy":"weighted(3)","protocol":"quic","nodes":[{"nodeId":2,"port":20001}]}],
                "exit":{"strategy":"best","protocol":"wss","maxFails":5,"failTimeoutMs":1000,
                        "nodes":[{"nodeId":3,"connectIp":"192.0.2.1"}]}}"#,
        )
        .unwrap()
    }

    #[test]
    fn opening_and_saving_changes_nothing() {
        let owner = Owner::new();
        owner.set();
        let form = Form::new(Some(&tunnel()));
        let (input, errors) = form.input();
        assert_eq!(input, tunnel());
        assert_eq!(errors, []);
        // The unknown strategy and protocol are the panel's to judge.
        assert_eq!(form.checked(&world()).errors, []);
        // Typed anew they are not.
        let other = Form::new(None);
        other.exit.strategy.set(Strategy::Other("weighted(3)".into()));
        assert!(other.checked(&world()).errors.iter().any(|error| error.code == "strategy_unknown"));
    }

    #[test]
    fn texts_that_are_no_numbers_are_told_at_their_field() {
        let owner = Owner::new();
        owner.set();
        let form = Form::new(Some(&tunnel()));
        form.exit.max_fails.set("many".into());
        form.hops.get_untracked()[0].members.get_untracked()[0].port.set("70000".into());
        let fields: Vec<String> = form.checked(&world()).errors.into_iter().map(|e| e.field).collect();
        assert_eq!(fields, ["hops[0].nodes[0].port", "exit.maxFails"]);
        form.kind.set(TunnelType::Port);
        assert_eq!(form.checked(&world()).errors, []);
        assert_eq!(form.input().0.exit, None);
        // Changed back, everything typed is still there.
        form.kind.set(TunnelType::Tunnel);
        assert_eq!(form.exit.max_fails.get_untracked(), "many");
    }

    #[test]
    fn order() {
        let mut items = vec![1, 2, 3];
        shift(&mut items, 0, true);
        shift(&mut items, 2, false);
        assert_eq!(items, [1, 2, 3]);
        shift(&mut items, 2, true);
        assert_eq!(items, [1, 3, 2]);
        relocate(&mut items, 0, 2);
        assert_eq!(items, [3, 2, 1]);
        relocate(&mut items, 0, 9);
        assert_eq!(items, [3, 2, 1]);
    }
}
