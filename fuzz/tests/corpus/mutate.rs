//! Inputs near those of a corpus.

use agent::clock::Random;

/// Longer ones find nothing more here and take long.
const LONGEST: usize = 4096;
const INTERESTING: [u8; 9] = [0, 1, 4, 0x7f, 0x80, 0xff, b'\n', b' ', b'0'];

/// Takes one of the corpus and changes it in a few places.
pub(crate) fn mutated(corpus: &[Vec<u8>], words: &[&str], random: &Random) -> Vec<u8> {
    let mut bytes = pick(corpus, random).cloned().unwrap_or_default();
    for _ in 0..1 + below(random, 6) {
        change(&mut bytes, corpus, words, random);
        bytes.truncate(LONGEST);
    }
    bytes
}

fn below(random: &Random, limit: usize) -> usize {
    (random.next() % limit.max(1) as u64) as usize
}

fn pick<'a, T>(all: &'a [T], random: &Random) -> Option<&'a T> {
    all.get(below(random, all.len()))
}

fn change(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], words: &[&str], random: &Random) {
    let at = below(random, bytes.len() + 1);
    let end = at + below(random, (bytes.len() - at).min(64) + 1);
    let byte = random.next() as u8;
    match below(random, 10) {
        0 => drop(bytes.drain(at..end)),
        1 => bytes.truncate(at),
        2 => bytes.insert(at, byte),
        3 => {
            let piece = bytes[at..end].to_vec();
            bytes.splice(at..at, piece);
        }
        4 => {
            let other = pick(corpus, random).map_or(&[][..], Vec::as_slice);
            let piece = &other[below(random, other.len() + 1)..];
            bytes.splice(at..end, piece.iter().copied());
        }
        5 => {
            let word = pick(words, random).map_or(&b""[..], |word| word.as_bytes());
            bytes.splice(at..if byte.is_multiple_of(2) { at } else { end }, word.iter().copied());
        }
        kind => {
            let Some(place) = bytes.get_mut(at) else { return };
            match kind {
                6 => *place ^= 1 << (byte % 8),
                7 => *place = INTERESTING[below(random, INTERESTING.len())],
                8 => *place = place.wrapping_add((byte % 17).wrapping_sub(8)),
                _ => *place = byte,
            }
        }
    }
}
