//! Groups: picks of a member for a connection.

use crate::{Checksum, Measured, clock};
use shared::policy::{Context, Event, Forest, GroupSpec, Leaf, Network, Outcome, parse};
use std::collections::BTreeMap;

/// Members of each group.
const MEMBERS: usize = 8;
/// Picks in one measured repetition.
const PICKS: u64 = 1_000_000;

/// A name, and policies from the outermost group to the innermost; whether the first member is dead.
type Groups = (&'static [&'static str], bool);

pub(crate) const GROUPS: [(&str, Groups); 8] = [
    ("pick: selector", (&["selector"], false)),
    ("pick: urltest", (&["urltest"], false)),
    ("pick: fixed(1)", (&["fixed(1)"], false)),
    ("pick: min_moving_avg", (&["min_moving_avg"], false)),
    ("pick: fixed_fallback(0)", (&["fixed_fallback(0)"], false)),
    ("pick: fixed_fallback(0), which is dead", (&["fixed_fallback(0)"], true)),
    ("pick: fixed_fallback(0, 3s, 3, random), which is dead", (&["fixed_fallback(0, 3s, 3, random)"], true)),
    ("pick: selector of urltest of min", (&["selector", "urltest", "min"], false)),
];

fn forest((policies, dead): Groups) -> Forest {
    let names: Vec<String> = (0..MEMBERS).map(|i| format!("m{i}")).collect();
    let group = |(depth, text): (usize, &&str)| {
        let mut members = names.clone();
        if depth + 1 < policies.len() {
            members[0] = format!("g{}", depth + 1);
        }
        GroupSpec { name: format!("g{depth}"), members, policy: parse(text).expect("a valid policy").policy }
    };
    let groups: Vec<GroupSpec> = policies.iter().enumerate().map(group).collect();
    let count = groups.len();
    let mut forest = Forest::new(names.iter().map(Leaf::new).collect(), groups, &BTreeMap::new())
        .expect("groups that fit");
    for group in 0..count {
        for leaf in 0..MEMBERS {
            let outcome =
                if dead && leaf == 0 { Outcome::Failed } else { Outcome::Ok(20.0 + 7.0 * leaf as f64) };
            forest.observe(&Event::Tested { group, leaf, outcomes: [Some(outcome); 4] }, 1);
        }
    }
    forest
}

pub(crate) fn measure(name: &str, groups: Groups, repetitions: usize) -> Measured {
    let forest = forest(groups);
    let mut checksum = Checksum::new();
    let mut ms = Vec::new();
    for _ in 0..repetitions {
        let mut picked = [0u64; MEMBERS];
        let before = clock::now_ms();
        for i in 0..PICKS {
            let network = Network::ALL[(i & 3) as usize];
            let context =
                std::hint::black_box(Context { network, random: i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7 });
            if let Some(leaf) = forest.pick(0, context) {
                picked[leaf] += 1;
            }
        }
        ms.push(clock::now_ms() - before);
        picked.into_iter().for_each(|count| checksum.add(count));
    }
    Measured { name: name.to_owned(), ms, units: PICKS, checksum }
}
