//! Which node of a group the next attempt uses: pure, with time and randomness as parameters.
//!
//! Fail filter, then backup filter, then the strategy; when nobody passes the fail filter, the last resort.

use super::marks::Health;
use std::net::IpAddr;

/// How one of the usable nodes is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The first in order.
    Fifo,
    /// In turn.
    Round,
    /// Random, weighted.
    Rand,
    /// The same client gets the same node while the usable nodes stay the same.
    Hash,
}

impl Policy {
    /// Understands GOST's texts; nothing means `round`, as in GOST. Unknown text is an error, unlike in GOST, where it
    /// silently means `round`.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "fifo" | "ha" => Ok(Self::Fifo),
            "" | "round" | "rr" => Ok(Self::Round),
            "rand" | "random" => Ok(Self::Rand),
            "hash" => Ok(Self::Hash),
            other => Err(format!("`{other}` is not supported (fifo, round, rand or hash)")),
        }
    }
}

/// What selection knows of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// What the fail filter thinks of it.
    pub health: Health,
    /// Only used when no other node is usable.
    pub backup: bool,
    /// For [`Policy::Rand`]; 0 counts as 1.
    pub weight: u32,
    /// This connection has tried it already.
    pub tried: bool,
}

/// What makes one connection's choice differ from another's.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// Counts the group's connections.
    pub turn: u64,
    /// Uniform over all values.
    pub random: u64,
    /// See [`client_hash`].
    pub client: u32,
}

/// CRC-32 (IEEE) of the client's address as text, without port: GOST's hash source.
pub fn client_hash(client: IpAddr) -> u32 {
    crc32fast::hash(client.to_canonical().to_string().as_bytes())
}

/// The index of the node to try next; `None` when this connection has tried them all.
///
/// While an untried node passes the fail filter, no marked one is chosen. When none is left, the marked ones follow in
/// their order: an attempt that may fail is better than a refusal that must.
pub fn pick(policy: Policy, candidates: &[Candidate], draw: &Draw) -> Option<usize> {
    let usable = |c: &Candidate| !c.tried && c.health != Health::Marked;
    let primary = |c: &Candidate| usable(c) && !c.backup;
    if candidates.iter().any(primary) {
        choose(policy, candidates, primary, draw)
    } else if candidates.iter().any(usable) {
        choose(policy, candidates, usable, draw)
    } else {
        candidates.iter().position(|c| !c.tried)
    }
}

/// Applies the policy to the candidates that `allowed` lets through.
fn choose(
    policy: Policy,
    candidates: &[Candidate],
    allowed: impl Fn(&Candidate) -> bool,
    draw: &Draw,
) -> Option<usize> {
    let passing = || candidates.iter().enumerate().filter(|(_, c)| allowed(c));
    let at = |place: u64| passing().nth(usize::try_from(place).ok()?).map(|(i, _)| i);
    let count = passing().count() as u64;
    if count == 0 {
        return None;
    }
    match policy {
        Policy::Fifo => at(0),
        Policy::Round => at(draw.turn % count),
        Policy::Hash => at(u64::from(draw.client) % count),
        Policy::Rand => {
            let weight = |c: &Candidate| u64::from(c.weight.max(1));
            let mut left = draw.random % passing().map(|(_, c)| weight(c)).sum::<u64>();
            for (i, candidate) in passing() {
                match left.checked_sub(weight(candidate)) {
                    Some(rest) => left = rest,
                    None => return Some(i),
                }
            }
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CLEAR: Candidate = Candidate { health: Health::Clear, backup: false, weight: 1, tried: false };
    const MARKED: Candidate = Candidate { health: Health::Marked, ..CLEAR };
    const TRIAL: Candidate = Candidate { health: Health::Trial, ..CLEAR };
    const BACKUP: Candidate = Candidate { backup: true, ..CLEAR };
    const TRIED: Candidate = Candidate { tried: true, ..CLEAR };
    const DRAW: Draw = Draw { turn: 0, random: 0, client: 0 };

    #[test]
    fn filters_before_the_strategy() {
        let marked_backup = Candidate { backup: true, ..MARKED };
        let cases: [(&str, &[Candidate], Option<usize>); 14] = [
            ("nobody", &[], None),
            ("single", &[CLEAR], Some(0)),
            ("single marked: last resort", &[MARKED], Some(0)),
            ("marked is left out", &[MARKED, CLEAR], Some(1)),
            ("all marked: last resort in order", &[MARKED, MARKED], Some(0)),
            ("last resort goes on", &[TRIED, MARKED], Some(1)),
            ("a trial counts as usable", &[MARKED, TRIAL, CLEAR], Some(1)),
            ("backup waits", &[BACKUP, CLEAR], Some(1)),
            ("only backups", &[BACKUP, BACKUP], Some(0)),
            ("a backup is better than a marked primary", &[MARKED, BACKUP], Some(1)),
            ("a marked backup is not", &[MARKED, marked_backup], Some(0)),
            ("tried ones are left out", &[TRIED, CLEAR], Some(1)),
            ("a marked one after all usable are tried", &[MARKED, TRIED], Some(0)),
            ("all tried", &[TRIED, TRIED], None),
        ];
        for (name, candidates, expected) in cases {
            assert_eq!(pick(Policy::Fifo, candidates, &DRAW), expected, "{name}");
        }
    }

    #[test]
    fn round_cycles_over_the_usable() {
        let candidates = [CLEAR, MARKED, CLEAR, CLEAR];
        let picks: Vec<_> =
            (0..9).map(|turn| pick(Policy::Round, &candidates, &Draw { turn, ..DRAW }).unwrap()).collect();
        assert_eq!(picks, [0, 2, 3, 0, 2, 3, 0, 2, 3]);
    }

    #[test]
    fn hash_is_crc32_of_the_address_modulo_the_usable() {
        assert_eq!(client_hash("127.0.0.1".parse().unwrap()), 3_619_153_832);
        assert_eq!(client_hash("10.0.0.1".parse().unwrap()), 654_229_907);
        assert_eq!(client_hash("::ffff:10.0.0.1".parse().unwrap()), 654_229_907);
        let draw = Draw { client: client_hash("10.0.0.1".parse().unwrap()), ..DRAW };
        assert_eq!(pick(Policy::Hash, &[CLEAR; 3], &draw), Some(2));
        assert_eq!(pick(Policy::Hash, &[MARKED, CLEAR, CLEAR, CLEAR], &draw), Some(3));
    }

    #[test]
    fn rand_follows_the_weights_exactly() {
        let heavy = Candidate { weight: 3, ..CLEAR };
        let unset = Candidate { weight: 0, ..CLEAR };
        let mut counts = [0; 4];
        for random in 0..500 {
            counts[pick(Policy::Rand, &[unset, heavy, MARKED, CLEAR], &Draw { random, ..DRAW }).unwrap()] +=
                1;
        }
        assert_eq!(counts, [100, 300, 0, 100]);
    }

    #[test]
    fn strategy_texts() {
        let known = [
            ("", Policy::Round),
            ("round", Policy::Round),
            ("rr", Policy::Round),
            ("fifo", Policy::Fifo),
            ("ha", Policy::Fifo),
            ("rand", Policy::Rand),
            ("random", Policy::Rand),
            ("hash", Policy::Hash),
        ];
        for (text, policy) in known {
            assert_eq!(Policy::parse(text), Ok(policy));
        }
        for text in ["best", "Fifo", "lowest", "parallel", " fifo"] {
            assert!(Policy::parse(text).unwrap_err().contains(text));
        }
    }

    fn any_candidate() -> impl Strategy<Value = Candidate> {
        let health = prop_oneof![Just(Health::Clear), Just(Health::Trial), Just(Health::Marked)];
        (health, any::<bool>(), 0u32..5, any::<bool>())
            .prop_map(|(health, backup, weight, tried)| Candidate { health, backup, weight, tried })
    }

    fn any_policy() -> impl Strategy<Value = Policy> {
        prop_oneof![Just(Policy::Fifo), Just(Policy::Round), Just(Policy::Rand), Just(Policy::Hash)]
    }

    proptest! {
        #[test]
        fn a_marked_node_is_never_picked_while_an_unmarked_one_is_left(
            policy in any_policy(),
            candidates in proptest::collection::vec(any_candidate(), 0..9),
            turn: u64, random: u64, client: u32,
        ) {
            let picked = pick(policy, &candidates, &Draw { turn, random, client });
            let untried = || candidates.iter().filter(|c| !c.tried);
            let Some(index) = picked else {
                prop_assert_eq!(untried().count(), 0, "somebody was left, and nobody picked");
                return Ok(());
            };
            let chosen = candidates[index];
            prop_assert!(!chosen.tried);
            if chosen.health == Health::Marked {
                prop_assert!(untried().all(|c| c.health == Health::Marked));
                prop_assert!(candidates[..index].iter().all(|c| c.tried), "last resort goes in order");
            } else if chosen.backup {
                prop_assert!(untried().filter(|c| c.health != Health::Marked).all(|c| c.backup));
            }
        }

        #[test]
        fn a_walk_reaches_every_candidate_exactly_once(
            policy in any_policy(),
            candidates in proptest::collection::vec(any_candidate(), 0..9),
            turn: u64, random: u64, client: u32,
        ) {
            let mut candidates = candidates;
            for candidate in &mut candidates {
                candidate.tried = false;
            }
            let draw = Draw { turn, random, client };
            let mut seen = Vec::new();
            while let Some(index) = pick(policy, &candidates, &draw) {
                candidates[index].tried = true;
                seen.push(index);
            }
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..candidates.len()).collect::<Vec<_>>());
        }
    }
}
