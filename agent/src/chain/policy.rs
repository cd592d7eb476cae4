//! The texts of strategies.

use super::group::strategy;

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
    /// The same client gets the same node while that one is usable.
    ConsistentHash,
    /// The one whose probe was the fastest.
    LowestLatency,
    /// All at once; the first that is fully up.
    Parallel,
}

/// Every text and what it means; GOST's, and one of our own.
const TEXTS: [(&str, Policy); 13] = [
    ("fifo", Policy::Fifo),
    ("ha", Policy::Fifo),
    ("", Policy::Round),
    ("round", Policy::Round),
    ("rr", Policy::Round),
    ("rand", Policy::Rand),
    ("random", Policy::Rand),
    ("hash", Policy::Hash),
    ("hash(consistent)", Policy::ConsistentHash),
    ("lowestlatency", Policy::LowestLatency),
    ("lowest", Policy::LowestLatency),
    ("ll", Policy::LowestLatency),
    ("parallel", Policy::Parallel),
];

impl Policy {
    /// Understands the texts; nothing means `round`, as in GOST. Unknown text is an error that says where it ceases to be
    /// understood, unlike in GOST, where it silently means `round`.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some((_, policy)) = TEXTS.iter().find(|(known, _)| *known == text) {
            return Ok(*policy);
        }
        let common = |known: &str| known.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
        let known = || TEXTS.iter().map(|(known, _)| *known).chain(strategy::NAMES);
        let understood = known().map(common).max().unwrap_or(0);
        let expected: Vec<_> =
            known().filter(|known| !known.is_empty() && common(known) == understood).collect();
        Err(format!(
            "`{text}` is not supported: not understood from character {}, expected {}",
            understood + 1,
            expected.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_and_alias() {
        for (text, policy) in TEXTS {
            assert_eq!(Policy::parse(text), Ok(policy));
        }
    }

    #[test]
    fn what_is_not_understood_is_named_with_its_place() {
        for text in ["best", "Fifo", "lowest latency", "parallel ", " fifo", "hash()", "hash(host)", "rоund"]
        {
            let error = Policy::parse(text).unwrap_err();
            assert!(error.starts_with(&format!("`{text}` is not supported")), "{error}");
        }
        let error = Policy::parse("hash(host)").unwrap_err();
        assert!(error.ends_with("from character 6, expected hash(consistent)"), "{error}");
        let error = Policy::parse("best").unwrap_err();
        assert!(error.contains("character 1") && error.contains("fifo, ha, round"), "{error}");
    }
}
