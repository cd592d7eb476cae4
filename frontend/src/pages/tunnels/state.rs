//! A tunnel's state in words and colours.

use crate::i18n::{Lang, groups, tunnels as words};
use crate::ui::Tone;
use shared::api::{BestExit, DecisionState, DeploymentStatus, NodeDeployment};

/// The best-exit chip.
pub fn best_exit_chip(best: &BestExit, lang: Lang) -> (String, Tone) {
    let named = !best.summary.is_empty();
    let name = [("name", best.summary.as_str())];
    match best.status {
        DecisionState::Paused if named => (words::CHIP_PAUSED_AT.with(lang, &name), Tone::Neutral),
        DecisionState::Paused => (words::CHIP_PAUSED.say(lang).into(), Tone::Neutral),
        DecisionState::Waiting => (words::CHIP_WAITING.say(lang).into(), Tone::Waiting),
        DecisionState::Applied if named => (words::CHIP_BEST.with(lang, &name), Tone::Accent),
        DecisionState::Applied => (words::CHIP_MANY.say(lang).into(), Tone::Accent),
    }
}

/// The deployment of all nodes in one chip: the worst decides.
pub fn deployment_chip(deployment: &[NodeDeployment], lang: Lang) -> (String, Tone) {
    let count = |status| deployment.iter().filter(|node| node.status == status).count();
    let say = |text: crate::i18n::Text, count: usize| text.with(lang, &[("count", &count.to_string())]);
    match (count(DeploymentStatus::Failed), count(DeploymentStatus::Pending)) {
        (0, 0) => (say(words::DEPLOYED, deployment.len()), Tone::Good),
        (0, pending) => (say(words::PENDING, pending), Tone::Waiting),
        (failed, _) => (say(words::FAILED, failed), Tone::Bad),
    }
}

/// One node's state.
pub fn status(status: DeploymentStatus) -> (crate::i18n::Text, Tone) {
    match status {
        DeploymentStatus::Applied => (words::STATE_APPLIED, Tone::Good),
        DeploymentStatus::Pending => (words::STATE_PENDING, Tone::Waiting),
        DeploymentStatus::Failed => (words::STATE_FAILED, Tone::Bad),
    }
}

/// Why a node is waited for, where the panel says it in one of its own sentences; what agents say stays as it is.
pub fn pending_reason(reason: &str) -> Option<crate::i18n::Text> {
    match reason {
        "the node is offline" => Some(groups::OFFLINE),
        "the node has not answered yet" => Some(groups::PENDING),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::ids::NodeId;

    #[test]
    fn chips_of_best_exits() {
        let chip = |status, summary: &str| {
            let best = BestExit { status, summary: summary.into(), owners: Vec::new() };
            best_exit_chip(&best, Lang::Zh).0
        };
        assert_eq!(chip(DecisionState::Applied, "hk-2"), "最优出口: hk-2");
        assert_eq!(chip(DecisionState::Applied, ""), "多个出口");
        assert_eq!(chip(DecisionState::Waiting, ""), "等待探测");
        assert_eq!(chip(DecisionState::Waiting, "hk-2"), "等待探测");
        assert_eq!(chip(DecisionState::Paused, "hk-2"), "探测已暂停: hk-2");
        assert_eq!(chip(DecisionState::Paused, ""), "探测已暂停");
    }

    #[test]
    fn the_worst_node_decides_about_the_deployment() {
        let node = |id, status| NodeDeployment { node_id: NodeId(id), status, reason: None };
        let mut all = vec![node(1, DeploymentStatus::Applied), node(2, DeploymentStatus::Applied)];
        assert_eq!(deployment_chip(&all, Lang::En), ("Deployed (nodes: 2)".into(), Tone::Good));
        all.push(node(3, DeploymentStatus::Pending));
        assert_eq!(deployment_chip(&all, Lang::En), ("1 pending".into(), Tone::Waiting));
        all.push(node(4, DeploymentStatus::Failed));
        assert_eq!(deployment_chip(&all, Lang::En), ("1 failed".into(), Tone::Bad));
    }
}
