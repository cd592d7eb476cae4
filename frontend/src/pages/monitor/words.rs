//! Measurements in words.

use crate::format;
use crate::i18n::{Lang, Text, monitor as words};
use shared::api::CandidateDecision;
use shared::best_exit::{Leg, LegFailure};
use shared::ids::NodeId;

/// Why a leg failed.
pub fn failure(failure: LegFailure) -> Text {
    match failure {
        LegFailure::AllLost => words::LEG_FAILED_ALL_LOST,
        LegFailure::Refused => words::LEG_FAILED_REFUSED,
        LegFailure::Unresolved => words::LEG_FAILED_UNRESOLVED,
        LegFailure::Unreachable => words::LEG_FAILED_UNREACHABLE,
        LegFailure::Unsuccessful => words::LEG_FAILED_UNSUCCESSFUL,
    }
}

/// A leg in a few characters.
pub fn leg(leg: &Leg, lang: Lang) -> String {
    match leg {
        Leg::Measured { latency_ms, loss } => {
            let loss = words::LOSS_OF.with(lang, &[("loss", &format::percent(*loss))]);
            format!("{} · {loss}", format::ms(*latency_ms))
        }
        Leg::Failed { reason } => failure(*reason).say(lang).to_owned(),
        Leg::Unmeasured { .. } => words::LEG_UNMEASURED.say(lang).to_owned(),
    }
}

/// The name of an exit among candidates, which carry the names of the moment they were measured.
pub fn exit_name(candidates: &[CandidateDecision], id: NodeId) -> Option<String> {
    candidates.iter().find(|c| c.exit_node_id == id).map(|c| c.exit_name.clone())
}
