//! `best`: many tunnels decided in a round, by both sets of rules.

use crate::{Checksum, Measured, clock};
use shared::best_exit::{
    Applied, Candidate, DecisionRules, Leg, LegFailure, OwnerState, Round, Settings, Verdict,
};
use shared::ids::NodeId;
use shared::replay::Random;

/// Exits of each tunnel.
pub(crate) const EXITS: u64 = 4;
pub(crate) const RULES: [(&str, DecisionRules); 2] =
    [("classic", DecisionRules::Classic), ("adaptive", DecisionRules::Adaptive)];
/// Groups of exits that tunnels share, and rounds of each that are measured in turn.
const KINDS: usize = 16;
const ROUNDS: usize = 64;

#[derive(Clone, Copy)]
pub(crate) struct Size {
    /// Tunnels with one owner each.
    tunnels: usize,
    /// Rounds before the measured ones: the longest window of the adaptive rules is full then.
    warm: usize,
    /// Rounds that are measured.
    measured: usize,
}

/// As many as a small panel has, whose memory of them fits into a processor's cache; and as many as a large one has.
pub(crate) const FULL: [Size; 2] =
    [Size { tunnels: 500, warm: 70, measured: 201 }, Size { tunnels: 10_000, warm: 70, measured: 31 }];
pub(crate) const QUICK: [Size; 2] =
    [Size { tunnels: 100, warm: 70, measured: 5 }, Size { tunnels: 500, warm: 70, measured: 5 }];

/// What was measured, by kind and round. Numbers come from sums and products alone, so that every machine has the same.
fn rounds() -> Vec<Vec<Candidate>> {
    let mut random = Random::new(42);
    let mut rounds = Vec::new();
    for kind in 0..KINDS {
        let base: Vec<(f64, f64)> =
            (0..EXITS).map(|_| (random.between(20.0, 90.0), random.between(5.0, 60.0))).collect();
        let lossy = random.between(0.0, 0.1);
        for round in 0..ROUNDS {
            let candidate = |exit: u64| {
                let (a, b) = base[usize::try_from(exit).expect("a few exits")];
                // An evening of the first exit, and a little of everything else.
                let evening = if exit == 0 && round >= ROUNDS / 2 { 60.0 } else { 0.0 };
                let mut leg = |ms: f64| match random.draw() % 200 {
                    0 => Leg::Failed { reason: LegFailure::AllLost },
                    1 => Leg::Unmeasured { reason: "its agent is away".to_owned() },
                    _ => {
                        let loss = if random.chance(lossy) { 0.25 } else { 0.0 };
                        Leg::Measured { latency_ms: ms + random.between(0.0, 6.0), loss }
                    }
                };
                let (leg_a, leg_b) = (leg(a + evening), leg(b));
                let exit = i64::try_from(exit).expect("a few exits")
                    + 1000 * i64::try_from(kind).expect("a few kinds");
                Candidate { exit: NodeId(exit), leg_a, leg_b }
            };
            rounds.push((0..EXITS).map(candidate).collect());
        }
    }
    rounds
}

pub(crate) fn measure(name: &str, decision_rules: DecisionRules, size: Size) -> Measured {
    let settings = Settings { decision_rules, ..Settings::default() };
    let rounds = rounds();
    let mut owners: Vec<OwnerState> =
        (0..size.tunnels).map(|_| OwnerState::new(Applied::default())).collect();
    let (mut ms, mut checksum) = (Vec::new(), Checksum::new());
    let mut verdicts: Vec<Verdict> = Vec::with_capacity(size.tunnels);
    for number in 0..size.warm + size.measured {
        let now = 1_000_000_000 + number as u64 * settings.round_interval_ms;
        let before = clock::now_ms();
        for (i, owner) in owners.iter_mut().enumerate() {
            // Tunnels of one kind are at different places of the same day.
            let candidates = &rounds[i % KINDS * ROUNDS + (i / KINDS + number) % ROUNDS];
            let round =
                Round { now, complete: true, monitoring: true, owner_online: true, candidates, pin: None };
            verdicts.push(owner.evaluate(&round, &settings));
        }
        let after = clock::now_ms();
        if number >= size.warm {
            ms.push(after - before);
        }
        // Outside of the measured time: the owners' answers, and what is compared between machines.
        for (owner, verdict) in owners.iter_mut().zip(verdicts.drain(..)) {
            for ranked in &verdict.ranked {
                checksum.add(ranked.exit.0.unsigned_abs());
            }
            verdict.reason.code().bytes().for_each(|byte| checksum.add(u64::from(byte)));
            if let Some(order) = verdict.push {
                checksum.add(order[0].0.unsigned_abs());
                owner.accepted(order, now);
            }
        }
    }
    let name = format!("{name}: {} tunnels x {EXITS} exits", size.tunnels);
    Measured { name, ms, units: size.tunnels as u64 * EXITS, checksum }
}
