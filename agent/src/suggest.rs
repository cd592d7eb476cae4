//! What somebody may have meant who wrote an unknown word.

/// From this similarity on (of 1) a word is worth a suggestion: `adress` is just near enough to `addr`.
const NEAR: f64 = 0.745;

/// The known word that is nearest to `word`, if one is near.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // One or two letters are like everything.
    if word.chars().count() < 3 {
        return None;
    }
    let lower = word.to_lowercase();
    known
        .into_iter()
        .map(|candidate| (strsim::jaro(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(similarity, _)| *similarity > NEAR)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

/// `, did you mean …?`, or nothing; to be put behind an error.
pub fn hint<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map_or_else(String::new, |near| format!(", did you mean `{near}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_suggested_and_far_ones_not() {
        let known = ["addr", "handler", "listener", "failTimeout", "maxFails"];
        let cases = [
            ("adress", Some("addr")),
            ("addres", Some("addr")),
            ("ADDR", Some("addr")),
            ("failtimeout", Some("failTimeout")),
            ("fail_timeout", Some("failTimeout")),
            ("max_fail", Some("maxFails")),
            ("handel", Some("handler")),
            ("brew", None),
            ("x", None),
        ];
        for (word, expected) in cases {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
        assert_eq!(hint("adr", known), ", did you mean `addr`?");
        assert_eq!(hint("brew", known), "");
        assert_eq!(hint("brew", []), "");
    }
}
