//! What needs somebody.

use super::names::Names;
use crate::api::live::Live;
use crate::i18n::{Lang, Text, common};
use shared::api::{DecisionState, DeploymentStatus, Forward, Node, NodeDeployment, Tunnel};
use std::sync::Arc;

/// The panel's version: the page comes with it.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// One thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Where it is.
    pub href: String,
    /// What is said about it.
    pub text: String,
    /// Something does not work, as opposed to something that may be meant so.
    pub is_bad: bool,
}

fn line(href: impl Into<String>, text: String, is_bad: bool) -> Line {
    Line { href: href.into(), text, is_bad }
}

/// Everything, worst first.
pub fn lines(live: Live, names: Names, lang: Lang) -> Vec<Line> {
    let tunnels = live.tunnels.get().unwrap_or_default();
    let forwards = live.forwards.get().unwrap_or_default();
    let nodes = live.nodes.get().unwrap_or_default();
    let mut lines = Vec::new();
    for tunnel in tunnels.iter().filter(|tunnel| tunnel.enabled) {
        failing(&mut lines, tunnel, names, lang);
    }
    for forward in forwards.iter().filter(|forward| forward.enabled) {
        let said = common::ATTENTION_FORWARD_FAILED;
        undeployed(
            &mut lines,
            "/forwards",
            said,
            ("forward", &forward.name),
            &forward.deployment,
            names,
            lang,
        );
    }
    away(&mut lines, &nodes, lang);
    waiting(&mut lines, &tunnels, lang);
    outdated(&mut lines, &nodes, lang);
    at_rest(&mut lines, &tunnels, &forwards, lang);
    lines
}

fn failing(lines: &mut Vec<Line>, tunnel: &Tunnel, names: Names, lang: Lang) {
    let mut owners = tunnel.best_exit.iter().flat_map(|best| &best.owners);
    if owners.any(|owner| owner.reason == "all_exits_failed") {
        let text = common::ATTENTION_ALL_FAILED.with(lang, &[("tunnel", &tunnel.name)]);
        lines.push(line(format!("/tunnels/{}/monitor", tunnel.id), text, true));
    }
    let said = common::ATTENTION_DEPLOY_FAILED;
    undeployed(lines, "/tunnels", said, ("tunnel", &tunnel.name), &tunnel.deployment, names, lang);
}

fn undeployed(
    lines: &mut Vec<Line>,
    href: &str,
    said: Text,
    what: (&str, &str),
    nodes: &[NodeDeployment],
    names: Names,
    lang: Lang,
) {
    for node in nodes.iter().filter(|node| node.status == DeploymentStatus::Failed) {
        let (name, reason) = (names.of(node.node_id), node.reason.clone().unwrap_or_default());
        lines.push(line(href, said.with(lang, &[what, ("node", &name), ("reason", &reason)]), true));
    }
}

fn away(lines: &mut Vec<Line>, nodes: &[Arc<Node>], lang: Lang) {
    for node in nodes.iter().filter(|node| !node.online) {
        let is_new = node.last_seen.is_none();
        let said = if is_new { common::ATTENTION_NODE_NEW } else { common::ATTENTION_NODE_OFFLINE };
        lines.push(line("/nodes", said.with(lang, &[("name", &node.name)]), !is_new));
    }
}

fn waiting(lines: &mut Vec<Line>, tunnels: &[Arc<Tunnel>], lang: Lang) {
    for tunnel in in_state(tunnels, DecisionState::Waiting) {
        let text = common::ATTENTION_WAITING.with(lang, &[("tunnel", &tunnel.name)]);
        lines.push(line(format!("/tunnels/{}/monitor", tunnel.id), text, false));
    }
}

fn outdated(lines: &mut Vec<Line>, nodes: &[Arc<Node>], lang: Lang) {
    for node in nodes.iter().filter(|node| node.online && is_outdated(node)) {
        let values = [("name", node.name.as_str()), ("version", &node.version), ("panel", VERSION)];
        lines.push(line("/nodes", common::ATTENTION_NODE_OLD.with(lang, &values), false));
    }
}

/// What somebody may have stopped on purpose, in one line each: there may be hundreds.
fn at_rest(lines: &mut Vec<Line>, tunnels: &[Arc<Tunnel>], forwards: &[Arc<Forward>], lang: Lang) {
    let paused = in_state(tunnels, DecisionState::Paused).count();
    let disabled = tunnels.iter().filter(|tunnel| !tunnel.enabled).count();
    let stopped = forwards.iter().filter(|forward| !forward.enabled).count();
    for (count, said, href) in [
        (paused, common::ATTENTION_PAUSED, "/settings"),
        (disabled, common::ATTENTION_DISABLED, "/tunnels"),
        (stopped, common::ATTENTION_FORWARDS_PAUSED, "/forwards"),
    ] {
        if count > 0 {
            lines.push(line(href, said.with(lang, &[("count", &count.to_string())]), false));
        }
    }
}

fn in_state(tunnels: &[Arc<Tunnel>], state: DecisionState) -> impl Iterator<Item = &Arc<Tunnel>> {
    let is_in = move |tunnel: &&Arc<Tunnel>| {
        tunnel.enabled && tunnel.best_exit.as_ref().is_some_and(|best| best.status == state)
    };
    tunnels.iter().filter(is_in)
}

/// Its agent is ours and older than the panel. Other agents list no capabilities, and their versions say nothing here.
pub fn is_outdated(node: &Node) -> bool {
    !node.capabilities.is_empty() && is_older(&node.version, VERSION)
}

/// Of two versions such as `1.10.2`; what is no number is no reason to call it old.
fn is_older(version: &str, than: &str) -> bool {
    let numbers = |text: &str| -> Option<Vec<u32>> {
        let text = text.trim_start_matches('v').split(['-', '+']).next()?;
        text.split('.').map(|part| part.parse().ok()).collect()
    };
    match (numbers(version), numbers(than)) {
        (Some(version), Some(than)) => version < than,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_older;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(is_older("0.9.0", "0.10.0"));
        assert!(is_older("v0.1.0", "0.1.1-rc1"));
        assert!(!is_older("0.10.0", "0.9.9"));
        assert!(!is_older("0.1.0", "0.1.0"));
        assert!(!is_older("", "0.1.0"));
        assert!(!is_older("unknown", "0.1.0"));
    }
}
