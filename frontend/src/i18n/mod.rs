//! Words in Chinese and English. Both are given in one place per text, so that neither can be forgotten.

pub mod common;
pub mod editor;
pub mod errors;
pub mod forwards;
pub mod monitor;
pub mod nodes;
pub mod reason;
pub mod settings;
pub mod strategy;
pub mod tunnels;

use crate::browser;
use crate::reactive::ArcRwSignal;
use std::sync::LazyLock;

/// A language of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lang {
    /// Simplified Chinese.
    Zh,
    /// English.
    En,
}

impl Lang {
    /// Both, in the order of the switch.
    pub const ALL: [Lang; 2] = [Lang::Zh, Lang::En];

    /// The BCP 47 tag: `<html lang>`, `Intl` and the stored choice.
    pub fn tag(self) -> &'static str {
        match self {
            Lang::Zh => "zh-CN",
            Lang::En => "en",
        }
    }

    /// The language's own name.
    pub fn own_name(self) -> &'static str {
        match self {
            Lang::Zh => "简体中文",
            Lang::En => "English",
        }
    }

    /// Chinese for every kind of Chinese, English for all else.
    pub fn from_tag(tag: &str) -> Self {
        if tag.to_ascii_lowercase().starts_with("zh") { Lang::Zh } else { Lang::En }
    }
}

/// One text in both languages. `{name}` is filled in by [`Text::with`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    /// Simplified Chinese.
    pub zh: &'static str,
    /// English.
    pub en: &'static str,
}

impl Text {
    /// In the given language.
    pub fn say(self, lang: Lang) -> &'static str {
        match lang {
            Lang::Zh => self.zh,
            Lang::En => self.en,
        }
    }

    /// In the given language, with the values filled in.
    pub fn with(self, lang: Lang, values: &[(&str, &str)]) -> String {
        fill(self.say(lang), values)
    }
}

/// Replaces `{name}` by the value of that name; a name without a value stays as it is.
pub fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(template.len() + 16);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        match after.split_once('}') {
            Some((name, tail)) => {
                match values.iter().find(|(key, _)| *key == name) {
                    Some((_, value)) => out.push_str(value),
                    None => {
                        out.push('{');
                        out.push_str(name);
                        out.push('}');
                    }
                }
                rest = tail;
            }
            None => {
                out.push('{');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Declares texts as constants: `NAME = "中文", "English";`.
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident = $zh:literal, $en:literal;)*) => {
        $($(#[$doc])* pub(crate) const $name: $crate::i18n::Text = $crate::i18n::Text { zh: $zh, en: $en };)*
        #[cfg(test)]
        pub(crate) const ALL: &[(&str, $crate::i18n::Text)] = &[$((stringify!($name), $name)),*];
    };
}
pub(crate) use texts;

const STORED: &str = "exitpilot.language";

/// The language in force. One per page, and above every screen, so that nothing can dispose of it.
static CURRENT: LazyLock<ArcRwSignal<Lang>> = LazyLock::new(|| {
    let tag = browser::stored(STORED).or_else(browser::language).unwrap_or_default();
    ArcRwSignal::new(Lang::from_tag(&tag))
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
            common::ALL,
            editor::ALL,
            errors::ALL,
            forwards::ALL,
            monitor::ALL,
            nodes::ALL,
            reason::ALL,
            settings::ALL,
            strategy::ALL,
            tunnels::ALL,
        ];
        for (name, text) in all.into_iter().flatten() {
            assert!(!text.zh.is_empty() && !text.en.is_empty(), "{name} is empty");
            assert_eq!(holes(text.zh), holes(text.en), "{name} fills in different values");
            assert!(
                text.en.is_ascii() || !text.en.contains(|c: char| ('\u{4e00}'..='\u{9fff}').contains(&c))
            );
        }
    }

    #[test]
    fn values_are_filled_in_by_name() {
        assert_eq!(fill("{b} and {a}", &[("a", "1"), ("b", "2")]), "2 and 1");
        assert_eq!(fill("{unknown} { open", &[("a", "1")]), "{unknown} { open");
        assert_eq!(fill("{a}{a}", &[("a", "{a}")]), "{a}{a}");
    }

    #[test]
    fn tags() {
        assert_eq!(Lang::from_tag("zh-Hant-TW"), Lang::Zh);
        assert_eq!(Lang::from_tag("en-GB"), Lang::En);
        assert_eq!(Lang::from_tag("de"), Lang::En);
        for lang in Lang::ALL {
            assert_eq!(Lang::from_tag(lang.tag()), lang);
        }
    }
}
