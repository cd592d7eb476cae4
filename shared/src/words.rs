//! Words in Chinese and English. Both are given in one place per text, so that neither can be forgotten.

/// A language.
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
#[macro_export]
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident = $zh:literal, $en:literal;)*) => {
        $($(#[$doc])* pub(crate) const $name: $crate::words::Text = $crate::words::Text { zh: $zh, en: $en };)*
        #[cfg(test)]
        pub(crate) const ALL: &[(&str, $crate::words::Text)] = &[$((stringify!($name), $name)),*];
    };
}

#[cfg(test)]
mod tests {
    use super::*;

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
