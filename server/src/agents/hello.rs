//! How a connection begins: what an agent says of itself, and what must be assumed of one that says nothing.

use super::Inner;
use super::board::{Key, Known};
use super::session::{Kind, Session};
use crate::plan::{Intent, names};
use shared::api::Event;
use shared::ids::NodeId;
use shared::link::Hello;

/// An agent's version and capabilities are stored and shown; longer texts and lists are cut.
const MAX_TEXT_CHARS: usize = 100;
/// See [`MAX_TEXT_CHARS`].
const MAX_CAPABILITIES: usize = 256;
/// Notes a new connection: what runs there, and that it is there.
pub(super) async fn note_connection(inner: &Inner, session: &Session, hello: Option<&Hello>) {
    let cut = |text: &str| text.chars().take(MAX_TEXT_CHARS).collect::<String>();
    let (version, capabilities) = match hello {
        Some(hello) => {
            let capabilities = hello.capabilities.iter().take(MAX_CAPABILITIES).map(|text| cut(text));
            (cut(&hello.version), capabilities.collect())
        }
        None => (cut(&session.version), Vec::new()),
    };
    session.identify(match hello {
        Some(hello) => {
            let can = |name| hello.capabilities.iter().any(|capability| capability == name);
            Kind::Ours { probe_batch: can("probe-batch"), connect_through: can("connect-through") }
        }
        None => Kind::Peer,
    });
    let at = inner.clock.wall_ms();
    if let Err(error) = inner.db.node_connected(session.node, &version, &capabilities, at).await {
        tracing::error!(node.id = session.node.0, %error, "the node's version could not be stored");
    }
    inner.bus.send(Event::Node { node_id: session.node, online: true });
}

/// Notes in the database that a node's agent was heard.
pub(super) async fn note_alive(inner: &Inner, node: NodeId) {
    if let Err(error) = inner.db.node_seen(node, inner.clock.wall_ms()).await {
        tracing::error!(node.id = node.0, %error, "it could not be stored that the node was heard");
    }
}

/// What an agent says that it runs.
pub(super) fn said(hello: &Hello) -> Vec<(Key, Known)> {
    let digests = hello.digests.iter().filter_map(|(key, digest)| {
        // A configured object that does not run is sent again; the node then says why it cannot.
        let known =
            if hello.failed.contains_key(key) { Known::Unknown } else { Known::Digest(digest.clone()) };
        Some((Key::parse(key)?, known))
    });
    let failed = hello.failed.keys().filter_map(|key| Some((Key::parse(key)?, Known::Unknown)));
    digests.chain(failed).collect()
}

/// What a peer's agent may run of tunnels and forwards that this node is part of. It cannot be asked, and something
/// may have been disabled while neither it nor this panel was there.
pub(super) fn suspects(intent: &Intent, node: NodeId) -> Vec<Key> {
    let mut keys = Vec::new();
    for (id, tunnel) in &intent.tunnels {
        let groups = tunnel.hops.iter().chain(&tunnel.exit);
        let relays = groups.flat_map(|group| &group.nodes).any(|member| member.node == node);
        if relays {
            keys.push(Key::Service(names::relay(*id)));
        }
        if relays || tunnel.entry.contains(&node) {
            keys.push(Key::Chain(names::chain(*id)));
        }
    }
    for (id, forward) in &intent.forwards {
        if intent.tunnels.get(&forward.tunnel).is_some_and(|tunnel| tunnel.entry.contains(&node)) {
            keys.push(Key::Service(names::forward_tcp(*id, forward.user)));
            keys.push(Key::Service(names::forward_udp(*id, forward.user)));
        }
    }
    keys
}
