//! Measurements → legs → scores → a ranking.

use super::{Outcome, input};
use crate::best_exit::{Candidate, Leg, Score, Settings, rank as rank_candidates};
use crate::field::FieldError;
use crate::ids::NodeId;
use crate::link::Sample;
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LegArguments {
    measured: Measured,
}

/// One of the three ways in which agents tell what they measured.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Measured {
    samples: Option<Vec<Sample>>,
    average: Option<Average>,
    counts: Option<Counts>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Average {
    success: bool,
    latency_ms: f64,
    loss_percent: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Counts {
    sent: u32,
    received: u32,
    rtts_ms: Vec<f64>,
}

/// What one round says about a leg: `{ measured: { samples } | { average } | { counts } }`.
pub fn leg(json: &str) -> Outcome<Leg> {
    let LegArguments { measured } = input::arguments(json)?;
    match (measured.samples, measured.average, measured.counts) {
        (Some(samples), None, None) => Ok(Leg::from_samples(&samples)),
        (None, Some(it), None) => Ok(Leg::from_average(it.success, it.latency_ms, it.loss_percent)),
        (None, None, Some(it)) => Ok(Leg::from_counts(it.sent, it.received, &it.rtts_ms)),
        _ => {
            let message = "give either `samples`, or `average`, or `counts`";
            Err(FieldError::new("measured", "one_of", message))
        }
    }
}

fn penalty(given: Option<f64>) -> Outcome<f64> {
    let settings = Settings::default();
    let Some(penalty) = given else { return Ok(settings.loss_penalty_ms_per_percent) };
    let settings = Settings { loss_penalty_ms_per_percent: penalty, ..settings };
    settings.validate().into_iter().next().map_or(Ok(penalty), Err)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScoreArguments {
    leg_a: Leg,
    leg_b: Leg,
    loss_penalty_ms_per_percent: Option<f64>,
}

/// The score of two legs, or null: `{ legA, legB, lossPenaltyMsPerPercent? }`.
pub fn score(json: &str) -> Outcome<Option<Score>> {
    let it: ScoreArguments = input::arguments(json)?;
    Ok(Score::of(&it.leg_a, &it.leg_b, penalty(it.loss_penalty_ms_per_percent)?))
}

/// A candidate in its place.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Placed {
    /// The exit.
    pub exit: NodeId,
    /// Null: failed, or not measured.
    pub score: Option<Score>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RankArguments {
    candidates: Vec<Candidate>,
    loss_penalty_ms_per_percent: Option<f64>,
}

/// Candidates from the best to the worst: `{ candidates, lossPenaltyMsPerPercent? }`.
pub fn rank(json: &str) -> Outcome<Vec<Placed>> {
    let it: RankArguments = input::arguments(json)?;
    let ranked = rank_candidates(&it.candidates, penalty(it.loss_penalty_ms_per_percent)?);
    Ok(ranked.into_iter().map(|it| Placed { exit: it.exit, score: it.score }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leg_is_told_in_one_way() {
        let samples = r#"{"outcome":"ok","ms":10},{"outcome":"lost"}"#;
        let told = leg(&format!(r#"{{"measured":{{"samples":[{samples}]}}}}"#)).unwrap();
        assert_eq!(told, Leg::Measured { latency_ms: 10.0, loss: 0.5 });
        let counts = r#"{"measured":{"counts":{"sent":2,"received":1,"rttsMs":[10]}}}"#;
        assert_eq!(leg(counts).unwrap(), told);
        for none in [
            r#"{"measured":{}}"#,
            r#"{"measured":{"samples":[],"counts":{"sent":1,"received":1,"rttsMs":[]}}}"#,
        ] {
            assert_eq!(leg(none).unwrap_err().code, "one_of");
        }
    }

    #[test]
    fn a_penalty_is_checked() {
        let legs = r#""legA":{"state":"measured","latencyMs":30,"loss":0.02},"legB":{"state":"measured","latencyMs":20,"loss":0.03}"#;
        assert_eq!(score(&format!("{{{legs}}}")).unwrap().map(|it| it.latency_ms), Some(50.0));
        let error = score(&format!("{{{legs},\"lossPenaltyMsPerPercent\":-1}}")).unwrap_err();
        assert_eq!((error.field.as_str(), error.code.as_str()), ("lossPenaltyMsPerPercent", "out_of_range"));
    }
}
