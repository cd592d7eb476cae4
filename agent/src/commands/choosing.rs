//! Persons' choices that come from the panel.

use super::{Answer, Commands, MAX_CHANGES, to_value};
use shared::link::{ChooseMember, chain_key};

impl Commands {
    /// In turn with changes of the chain that the group is part of.
    pub(super) fn choose(&self, answer: Answer, choice: ChooseMember) {
        let chain = choice.group.strip_prefix("chain/").and_then(|rest| rest.split('/').next());
        let key = chain.map_or_else(|| choice.group.clone(), chain_key);
        let Some(turn) = self.lanes.turn(vec![key]) else {
            answer.refuse(format!("busy: {MAX_CHANGES} changes are waiting"));
            return;
        };
        let (runtime, stop) = (self.runtime.clone(), self.stop.clone());
        self.tasks.spawn(async move {
            let work = async {
                turn.begin().await;
                let ChooseMember { group, member } = choice;
                let outcome = runtime.choose(&group, member.clone()).await.map_err(|error| error.to_string());
                match &outcome {
                    Ok(()) => tracing::info!(group, member, "chosen by the panel"),
                    Err(reason) => tracing::warn!(group, member, "the panel's choice was refused: {reason}"),
                }
                drop(turn);
                let state = outcome.and_then(|()| to_value(runtime.group_state(&group)));
                answer.send(state).await;
            };
            tokio::select! {
                () = work => {}
                () = stop.cancelled() => {}
            }
        });
    }
}
