//! Filters and strategies, without time and sockets.

use super::*;
use crate::clock::Random;
use proptest::prelude::*;

const CLEAR: Candidate = Candidate { tried: false, ..Candidate::NOBODY };
const MARKED: Candidate = Candidate { health: Health::Marked, ..CLEAR };
const TRIAL: Candidate = Candidate { health: Health::Trial, ..CLEAR };
const BACKUP: Candidate = Candidate { backup: true, ..CLEAR };
const TRIED: Candidate = Candidate { tried: true, ..CLEAR };
const FAILED: Candidate = Candidate { latency: Latency::Failed, ..CLEAR };
const DRAW: Draw = Draw { turn: 0, random: 0, client: 0, current: None, network: Network::Tcp4 };

const fn took(ms: u64) -> Candidate {
    Candidate { latency: Latency::Micros(ms * 1000), ..CLEAR }
}

const fn with(policy: Policy) -> Selection {
    Selection { policy, max_latency_us: None, tolerance_us: 0 }
}

const fn limited(policy: Policy, ms: u64) -> Selection {
    Selection { max_latency_us: Some(ms * 1000), ..with(policy) }
}

fn index(selection: &Selection, candidates: &[Candidate], draw: &Draw) -> Option<usize> {
    pick(selection, candidates, draw).map(|picked| picked.index)
}

/// How often each is picked by `n` draws of a seeded generator.
fn counted(candidates: &[Candidate], n: usize) -> Vec<usize> {
    let random = Random::seeded(7);
    let mut counts = vec![0; candidates.len()];
    for _ in 0..n {
        let draw = Draw { random: random.next(), ..DRAW };
        counts[index(&with(Policy::Rand), candidates, &draw).unwrap()] += 1;
    }
    counts
}

const ALL: [Policy; 7] = [
    Policy::Fifo,
    Policy::Round,
    Policy::Rand,
    Policy::Hash,
    Policy::ConsistentHash,
    Policy::LowestLatency,
    Policy::Parallel,
];

#[test]
fn nobody_and_a_single_one() {
    for policy in ALL {
        assert_eq!(index(&with(policy), &[], &DRAW), None, "{policy:?}");
        for only in [CLEAR, MARKED, TRIAL, BACKUP, FAILED, took(900)] {
            let draw = Draw { turn: 5, random: 17, client: 3, current: Some(4), ..DRAW };
            assert_eq!(index(&limited(policy, 50), &[only], &draw), Some(0), "{policy:?}: {only:?}");
        }
    }
}

#[test]
fn filters_before_the_strategy() {
    let marked_backup = Candidate { backup: true, ..MARKED };
    let cases: [(&str, &[Candidate], Option<usize>); 13] = [
        ("marked is left out", &[MARKED, CLEAR], Some(1)),
        ("both unmarked", &[CLEAR, CLEAR], Some(0)),
        ("all marked: last resort in order", &[MARKED, MARKED], Some(0)),
        ("last resort goes on", &[TRIED, MARKED], Some(1)),
        ("a trial counts as usable", &[MARKED, TRIAL, CLEAR], Some(1)),
        ("backup waits", &[BACKUP, CLEAR], Some(1)),
        ("only backups", &[BACKUP, BACKUP], Some(0)),
        ("no backups", &[CLEAR, CLEAR, CLEAR], Some(0)),
        ("a backup is better than a marked primary", &[MARKED, BACKUP], Some(1)),
        ("a marked backup is not", &[MARKED, marked_backup], Some(0)),
        ("tried ones are left out", &[TRIED, CLEAR], Some(1)),
        ("a marked one after all usable are tried", &[MARKED, TRIED], Some(0)),
        ("all tried", &[TRIED, TRIED], None),
    ];
    for (name, candidates, expected) in cases {
        assert_eq!(index(&with(Policy::Fifo), candidates, &DRAW), expected, "{name}");
    }
}

#[test]
fn the_latency_filter_after_the_others() {
    let slow_backup = Candidate { backup: true, ..took(100) };
    let quick_backup = Candidate { backup: true, ..took(10) };
    let cases: [(&str, &[Candidate], Option<usize>); 9] = [
        ("over the limit is left out", &[took(100), took(10)], Some(1)),
        ("the limit itself is within", &[took(50), took(10)], Some(0)),
        ("a failed probe is left out", &[FAILED, took(10)], Some(1)),
        ("no result passes", &[FAILED, CLEAR], Some(1)),
        ("nobody within it: it does not apply", &[took(100), took(200)], Some(0)),
        ("nobody within it, one marked", &[MARKED, took(200)], Some(1)),
        (
            "a slow primary before a quick backup, as the backup filter comes first",
            &[quick_backup, took(100)],
            Some(1),
        ),
        ("among backups too", &[MARKED, slow_backup, quick_backup], Some(2)),
        ("then the slow backup", &[MARKED, slow_backup, TRIED], Some(1)),
    ];
    for (name, candidates, expected) in cases {
        assert_eq!(index(&limited(Policy::Fifo, 50), candidates, &DRAW), expected, "{name}");
    }
    // Exactly those with a result within the limit or without any take turns.
    let four = [took(10), took(100), FAILED, CLEAR];
    let turns = |selection| {
        (0..4).map(move |turn| index(&selection, &four, &Draw { turn, ..DRAW }).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(turns(limited(Policy::Round, 50)), [0, 3, 0, 3]);
    assert_eq!(turns(with(Policy::Round)), [0, 1, 2, 3], "without a limit everybody passes");
}

#[test]
fn fifo_is_always_the_first() {
    for turn in 0..3 {
        let draw = Draw { turn, random: turn * 3, client: 77, current: Some(2), ..DRAW };
        assert_eq!(index(&with(Policy::Fifo), &[CLEAR; 3], &draw), Some(0));
    }
}

#[test]
fn round_cycles_over_the_usable() {
    let candidates = [CLEAR, MARKED, CLEAR, CLEAR];
    let picks: Vec<_> = (0..9)
        .map(|turn| index(&with(Policy::Round), &candidates, &Draw { turn, ..DRAW }).unwrap())
        .collect();
    assert_eq!(picks, [0, 2, 3, 0, 2, 3, 0, 2, 3]);
}

#[test]
fn hash_is_the_checksum_modulo_the_usable() {
    let draw = Draw { client: 654_229_907, ..DRAW };
    assert_eq!(index(&with(Policy::Hash), &[CLEAR; 3], &draw), Some(2));
    assert_eq!(index(&with(Policy::Hash), &[MARKED, CLEAR, CLEAR, CLEAR], &draw), Some(3));
    assert_eq!(index(&with(Policy::Hash), &[CLEAR; 5], &Draw { client: 728_416_889, ..DRAW }), Some(4));
    let many: std::collections::BTreeSet<_> = (0..100)
        .map(|user| {
            let client = crc32fast::hash(format!("user-{user}").as_bytes());
            index(&with(Policy::Hash), &[CLEAR; 100], &Draw { client, ..DRAW }).unwrap()
        })
        .collect();
    assert!(many.len() >= 10, "{}", many.len());
}

#[test]
fn rand_follows_the_weights() {
    let weighing = |weight| Candidate { weight, ..CLEAR };
    // Every remainder once: exact.
    let mut counts = [0; 4];
    for random in 0..500 {
        let candidates = [weighing(0), weighing(3), MARKED, CLEAR];
        counts[index(&with(Policy::Rand), &candidates, &Draw { random, ..DRAW }).unwrap()] += 1;
    }
    assert_eq!(counts, [100, 300, 0, 100]);
    // With a generator: proportions.
    assert!(counted(&[CLEAR; 3], 3000).iter().all(|n| *n >= 500));
    assert!(counted(&[weighing(100), weighing(1)], 2000)[0] >= 1800);
    assert!(counted(&[weighing(99), weighing(1)], 5000)[0] >= 4750);
    let counts = counted(&[weighing(1), weighing(2), weighing(3)], 6000);
    let ratio = counts[2] as f64 / counts[0] as f64;
    assert!((1.5..3.5).contains(&ratio), "{ratio}");
    assert!(counted(&[weighing(0), weighing(0)], 1000).iter().all(|n| *n >= 300), "no weight counts as 1");
}

#[test]
fn lowest_latency() {
    let cases: [(&str, &[Candidate], usize); 9] = [
        ("the fastest", &[took(10), took(50), took(100)], 0),
        ("wherever it stands", &[took(100), took(50), took(10)], 2),
        ("a failed probe is never fast", &[FAILED, took(50)], 1),
        ("no result is never fast", &[CLEAR, took(50)], 1),
        ("only failed ones", &[FAILED], 0),
        ("failed and none: the first", &[FAILED, CLEAR], 0),
        ("none and failed: the first", &[CLEAR, FAILED], 0),
        ("the first of equals", &[took(50), took(10), took(10)], 1),
        ("a marked one may be the fastest", &[Candidate { health: Health::Marked, ..took(1) }, took(50)], 1),
    ];
    for (name, candidates, expected) in cases {
        assert_eq!(index(&with(Policy::LowestLatency), candidates, &DRAW), Some(expected), "{name}");
    }
}

#[test]
fn lowest_latency_stays_within_the_tolerance() {
    let tolerant = Selection { tolerance_us: 5_000, ..with(Policy::LowestLatency) };
    let from = |current, candidates: &[Candidate]| {
        index(&tolerant, candidates, &Draw { current: Some(current), ..DRAW }).unwrap()
    };
    assert_eq!(from(1, &[took(10), took(15)]), 1, "not slower by more than that");
    assert_eq!(from(1, &[took(10), took(16)]), 0);
    assert_eq!(from(1, &[took(10), FAILED]), 0, "a failed one is left at once");
    assert_eq!(from(1, &[took(10), Candidate { health: Health::Marked, ..took(11) }]), 0);
    assert_eq!(from(1, &[took(0), took(3)]), 1, "also when the best is faster than the tolerance");
    assert_eq!(from(7, &[took(10), took(11)]), 0, "somebody who is no longer there");
    let largest = Candidate { latency: Latency::Micros(u64::MAX), ..CLEAR };
    assert_eq!(from(1, &[took(10), largest]), 0, "sums do not wrap");
    let draw = Draw { current: Some(1), ..DRAW };
    assert_eq!(
        index(&with(Policy::LowestLatency), &[took(10), took(10)], &draw),
        Some(0),
        "0 is no tolerance"
    );
}

#[test]
fn parallel_takes_a_tier_at_a_time() {
    let mut candidates = [MARKED, CLEAR, BACKUP, CLEAR];
    let mut seen = Vec::new();
    while let Some(Picked { index, tier }) = pick(&with(Policy::Parallel), &candidates, &DRAW) {
        candidates[index].tried = true;
        seen.push((index, tier));
    }
    assert_eq!(seen, [(1, Tier::Usable), (3, Tier::Usable), (2, Tier::Backup), (0, Tier::Marked)]);
}

fn any_candidate() -> impl Strategy<Value = Candidate> {
    let health = prop_oneof![Just(Health::Clear), Just(Health::Trial), Just(Health::Marked)];
    let latency =
        prop_oneof![Just(Latency::Unknown), Just(Latency::Failed), (0u64..200_000).prop_map(Latency::Micros)];
    (health, any::<bool>(), 0u32..5, latency, any::<u32>(), any::<bool>()).prop_map(
        |(health, backup, weight, latency, identity, tried)| Candidate {
            health,
            backup,
            weight,
            latency,
            identity,
            tried,
        },
    )
}

fn any_selection() -> impl Strategy<Value = Selection> {
    let limit = prop_oneof![Just(None), Just(Some(50_000))];
    (proptest::sample::select(ALL.as_slice()), limit, 0u64..50_000)
        .prop_map(|(policy, max_latency_us, tolerance_us)| Selection { policy, max_latency_us, tolerance_us })
}

fn any_draw() -> impl Strategy<Value = Draw> {
    let current = proptest::option::of(0usize..9);
    (any::<u64>(), any::<u64>(), any::<u32>(), current).prop_map(|(turn, random, client, current)| Draw {
        turn,
        random,
        client,
        current,
        ..DRAW
    })
}

proptest! {
    #[test]
    fn a_filtered_one_is_never_picked_while_another_is_left(
        selection in any_selection(),
        candidates in proptest::collection::vec(any_candidate(), 0..9),
        draw in any_draw(),
    ) {
        let untried = || candidates.iter().filter(|c| !c.tried);
        let Some(index) = index(&selection, &candidates, &draw) else {
            prop_assert_eq!(untried().count(), 0, "somebody was left, and nobody picked");
            return Ok(());
        };
        let chosen = candidates[index];
        prop_assert!(!chosen.tried);
        let alive = || untried().filter(|c| c.health != Health::Marked);
        let within = |c: &Candidate| match (selection.max_latency_us, c.latency) {
            (None, _) | (_, Latency::Unknown) => true,
            (Some(_), Latency::Failed) => false,
            (Some(limit), Latency::Micros(us)) => us <= limit,
        };
        if chosen.health == Health::Marked {
            prop_assert_eq!(alive().count(), 0);
            prop_assert!(candidates[..index].iter().all(|c| c.tried), "last resort goes in order");
        } else {
            prop_assert!(!chosen.backup || alive().all(|c| c.backup));
            let alike = alive().filter(|c| c.backup == chosen.backup);
            prop_assert!(within(&chosen) || alike.into_iter().all(|c| !within(c)));
        }
    }

    #[test]
    fn a_walk_reaches_every_candidate_exactly_once(
        selection in any_selection(),
        candidates in proptest::collection::vec(any_candidate(), 0..9),
        draw in any_draw(),
    ) {
        let mut candidates = candidates;
        for candidate in &mut candidates {
            candidate.tried = false;
        }
        let mut seen = Vec::new();
        while let Some(index) = index(&selection, &candidates, &draw) {
            candidates[index].tried = true;
            seen.push(index);
        }
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..candidates.len()).collect::<Vec<_>>());
    }

    #[test]
    fn the_consistent_hash_moves_only_whom_it_must(
        identities in proptest::collection::btree_set(any::<u32>(), 2..9),
        newcomer: u32, client: u32, gone: prop::sample::Index,
    ) {
        let consistent = with(Policy::ConsistentHash);
        let nodes = |ids: &[u32]| ids.iter().map(|identity| Candidate { identity: *identity, ..CLEAR }).collect::<Vec<_>>();
        let draw = Draw { client, ..DRAW };
        let mut ids: Vec<u32> = identities.into_iter().collect();
        let own = |ids: &[u32]| ids[index(&consistent, &nodes(ids), &draw).unwrap()];
        let before = own(&ids);
        // Order means nothing.
        ids.reverse();
        prop_assert_eq!(own(&ids), before);
        // One that comes takes clients for itself only.
        if !ids.contains(&newcomer) {
            let mut more = ids.clone();
            more.insert(1, newcomer);
            prop_assert!([before, newcomer].contains(&own(&more)));
        }
        // One that goes gives away its own only, and they come back to it.
        let gone = gone.index(ids.len());
        let mut marked = nodes(&ids);
        marked[gone].health = Health::Marked;
        let after = ids[index(&consistent, &marked, &draw).unwrap()];
        prop_assert_eq!(after == before, ids[gone] != before);
    }
}

#[test]
fn the_consistent_hash_spreads_evenly() {
    let nodes: Vec<_> = (0..4u32)
        .map(|i| Candidate { identity: crc32fast::hash(format!("192.0.2.{i}:443#1").as_bytes()), ..CLEAR })
        .collect();
    let mut counts = [0; 4];
    for i in 0..4000u32 {
        let client = super::super::hash::client_hash(std::net::Ipv4Addr::from_bits(0x0a00_0000 + i).into());
        counts[index(&with(Policy::ConsistentHash), &nodes, &Draw { client, ..DRAW }).unwrap()] += 1;
    }
    assert!(counts.iter().all(|n| (800..1200).contains(n)), "{counts:?}");
}
