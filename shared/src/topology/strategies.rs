//! Whether a group's strategy makes sense: for its place, its members, and the agents that would carry it out.

use super::{Findings, KnownNode, World};
use crate::api::Group;
use crate::field::FieldError;
use crate::ids::NodeId;
use crate::policy::{self, Expected, Policy};
use crate::strategy::{Place, Strategy};

/// What agents of other panels are known to do.
const EVERYWHERE: [&str; 4] = ["strategy:fifo", "strategy:round", "strategy:rand", "strategy:hash"];
/// Capabilities that say which strategies an agent knows begin like this.
const KIND: &str = "strategy:";

/// Whether it is known that an agent with these capabilities cannot carry out a strategy. Who has never been here, and who tells other
/// things only, is given the benefit of the doubt.
pub fn cannot_carry_out(capabilities: &[String], seen: bool, strategy: &Strategy) -> bool {
    let Some(wanted) = strategy.capability() else { return false };
    if capabilities.is_empty() {
        // Told more than the name, an agent of another panel would fall back to `round` without a word.
        return seen && (strategy.policy().is_some() || !EVERYWHERE.contains(&wanted.as_str()));
    }
    capabilities.iter().any(|known| known.starts_with(KIND)) && !capabilities.contains(&wanted)
}

/// Checks the strategy of a hop or of the exits. `holders` choose among the members.
pub(super) fn check_group(
    findings: &mut Findings,
    path: &str,
    group: &Group,
    place: Place,
    world: &World,
    holders: &[NodeId],
) {
    let name = |id: &NodeId| world.nodes.get(id).map_or("", |node| node.name.as_str());
    let members: Vec<&str> = group.nodes.iter().map(|member| name(&member.node_id)).collect();
    let holders: Vec<&KnownNode> = holders.iter().filter_map(|id| world.nodes.get(id)).collect();
    check(findings, &format!("{path}.strategy"), &group.strategy, place, &members, &holders);
    let usual = Group::default();
    let is_usual = (group.max_fails, group.fail_timeout_ms) == (usual.max_fails, usual.fail_timeout_ms);
    if group.strategy.policy().is_some_and(Policy::is_decided_ahead) && !is_usual {
        let message =
            "this strategy decides by itself when a member is left out; the fail filter is not used";
        findings.warnings.push(FieldError::new(format!("{path}.maxFails"), "fail_filter_unused", message));
    }
}

/// Checks a strategy. `members`: by what operators know those it chooses among.
pub(super) fn check(
    findings: &mut Findings,
    field: &str,
    strategy: &Strategy,
    place: Place,
    members: &[&str],
    holders: &[&KnownNode],
) {
    if !strategy.allowed_at(place) {
        findings.error(not_allowed(field, strategy));
        return;
    }
    if strategy.as_str().contains(char::is_control) {
        findings.error(FieldError::new(field, "control_character", "remove the control characters"));
    }
    if let Some(policy) = strategy.policy() {
        check_policy(findings, field, policy, members);
        if let Ok(parsed) = policy::parse(strategy.as_str()) {
            for warning in parsed.warnings {
                findings.warnings.push(FieldError::new(field, "timeout_raised", warning));
            }
        }
    }
    let cannot = holders.iter().filter(|node| cannot_carry_out(&node.capabilities, node.seen, strategy));
    let cannot: Vec<&str> = cannot.map(|node| node.name.as_str()).collect();
    if !cannot.is_empty() {
        let nodes = cannot.join(", ");
        let name = match strategy.policy() {
            Some(policy) => policy.name(),
            None => strategy.as_str(),
        };
        let message = format!("the agent of {nodes} cannot carry out `{name}`");
        let error = FieldError::new(field, "strategy_unsupported", message);
        findings.error(error.with("nodes", nodes).with("strategy", name));
    }
}

/// Why a strategy is not possible: as it is for exits only, or because its text is none; then also where in the text.
pub fn not_allowed(field: &str, strategy: &Strategy) -> FieldError {
    let Strategy::Other(text) = strategy else {
        let message = format!("`{strategy}` is possible for exits only");
        return FieldError::new(field, "strategy_not_here", message).with("strategy", strategy);
    };
    match policy::parse(text) {
        Err(error) if error.expected != Expected::KnownName => {
            let place = error.at + 1;
            FieldError::new(field, "strategy_syntax", error.to_string())
                .with("strategy", text)
                .with("at", place)
                .with("expected", error.expected.code())
                .with("detail", error.expected.detail())
                .with("found", error.found)
        }
        _ => FieldError::new(field, "strategy_unknown", format!("the strategy `{text}` is not known"))
            .with("strategy", text),
    }
}

fn check_policy(findings: &mut Findings, field: &str, policy: &Policy, members: &[&str]) {
    let index = match policy {
        Policy::Fixed(index) | Policy::FixedFallback { index, .. } => Some(*index),
        _ => None,
    };
    // A group without members is an error of its own.
    if let (Some(index), Some(last)) =
        (index.filter(|index| *index >= members.len()), members.len().checked_sub(1))
    {
        let message = format!("there is no member {index}: the first is 0, the last {last}");
        let error = FieldError::new(field, "strategy_member", message);
        findings.error(error.with("index", index).with("last", last));
    }
    match policy {
        Policy::Selector { default: Some(default), .. } if !members.contains(&default.as_str()) => {
            let message = format!("the default `{default}` is none of the members");
            findings.error(FieldError::new(field, "strategy_default", message).with("default", default));
        }
        Policy::Hash { host: true, .. } => {
            let message = "clients of a forward do not say where they want to go; use `hash` by client";
            findings.error(FieldError::new(field, "strategy_by_host", message));
        }
        _ => {}
    }
}
