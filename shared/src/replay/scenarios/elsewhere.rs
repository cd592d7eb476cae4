//! What is no matter of rules.

use super::{Judged, Scenario};
use crate::best_exit::Leg;
use crate::link::Sample;

pub(super) fn elsewhere() -> Vec<Scenario> {
    let other =
        |id, what, proof| Scenario { id, what, accept: "proved elsewhere", judged: Judged::Elsewhere(proof) };
    let leg = Leg::from_samples(&[
        Sample::Ok { ms: 40.0, retransmits: 0 },
        Sample::Ok { ms: 1041.0, retransmits: 1 },
        Sample::Ok { ms: 42.0, retransmits: 0 },
    ]);
    let good = leg.numbers().is_some_and(|(ms, loss)| ms == 41.0 && (loss - 1.0 / 3.0).abs() < 1e-9);
    vec![
        Scenario {
            id: "26",
            what: "one retransmission in a round",
            accept: "counted lost, latency unchanged",
            judged: Judged::Value(good, format!("{leg:?}")),
        },
        other(
            "18",
            "the wall clock jumps",
            "rules see monotonic time only (MonoMs); server/src/best_exit/owner.rs tests the restart",
        ),
        other(
            "20",
            "doubled, reordered and late answers",
            "answers are matched to their round: server/src/best_exit/round_tests.rs",
        ),
        other(
            "27",
            "200 tunnels share 10 exits",
            "legs are shared: server/src/best_exit/legs.rs and its tests",
        ),
        other(
            "28",
            "one dead exit and deadlines of 900 ms",
            "legs run side by side: agent/src/probe and its tests",
        ),
        other(
            "30",
            "IPv6 dies, IPv4 is fine",
            "a leg has one address; per-family state is the policies': shared/tests/policy/dae.rs",
        ),
    ]
}
