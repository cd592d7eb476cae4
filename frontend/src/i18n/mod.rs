//! Words in Chinese and English. Both are given in one place per text, so that neither can be forgotten.

pub mod audit;
pub mod chart;
pub mod common;
pub mod editor;
pub mod errors;
pub mod forwards;
pub mod groups;
pub mod monitor;
pub mod nodes;
pub mod reason;
pub mod settings;
pub mod tunnels;
pub mod what_if;

use crate::browser;
use crate::lasting::Lasting;
use std::sync::LazyLock;

pub use shared::strategy::words as strategy;
pub(crate) use shared::texts;
pub use shared::words::{Lang, Text, fill};

const STORED: &str = "exitpilot.language";

/// The language in force. One per page, and above every screen, so that nothing can dispose of it.
static CURRENT: LazyLock<Lasting<Lang>> = LazyLock::new(|| {
    let tag = browser::stored(STORED).or_else(browser::language).unwrap_or_default();
    Lasting::new(Lang::from_tag(&tag))
});

/// The language in force; whoever asks is run again when it changes.
pub fn lang() -> Lang {
    CURRENT.get()
}

/// The language in force, for event handlers.
pub fn lang_now() -> Lang {
    CURRENT.get_untracked()
}

/// Changes the language and remembers it.
pub fn choose(lang: Lang) {
    browser::store(STORED, lang.tag());
    CURRENT.set(lang);
}

/// Changes the language for as long as this code is there; for screens within somebody else's page.
pub fn follow(lang: Lang) {
    if lang != lang_now() {
        CURRENT.set(lang);
    }
}

/// A text as a part of a view; follows the language.
pub fn t(text: Text) -> impl Fn() -> &'static str + Copy + Send + Sync + 'static {
    move || text.say(lang())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holes(text: &str) -> Vec<&str> {
        let mut names: Vec<&str> =
            text.split('{').skip(1).filter_map(|part| part.split_once('}')).map(|(name, _)| name).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn every_text_says_the_same_in_both_languages() {
        let all = [
            audit::ALL,
            chart::ALL,
            common::ALL,
            editor::ALL,
            errors::ALL,
            forwards::ALL,
            groups::ALL,
            monitor::ALL,
            nodes::ALL,
            reason::ALL,
            settings::ALL,
            tunnels::ALL,
            what_if::ALL,
        ];
        for (name, text) in all.into_iter().flatten() {
            assert!(!text.zh.is_empty() && !text.en.is_empty(), "{name} is empty");
            assert_eq!(holes(text.zh), holes(text.en), "{name} fills in different values");
            assert!(
                text.en.is_ascii() || !text.en.contains(|c: char| ('\u{4e00}'..='\u{9fff}').contains(&c))
            );
        }
    }
}
