//! Light, dark, or as the system has it.

use crate::browser;
use crate::i18n::{Text, settings};
use crate::lasting::Lasting;
use std::sync::LazyLock;

/// The look of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// As the system has it.
    System,
    /// Light.
    Light,
    /// Dark.
    Dark,
}

const STORED: &str = "exitpilot.theme";

static CURRENT: LazyLock<Lasting<Theme>> = LazyLock::new(|| {
    let stored = browser::stored(STORED);
    let theme = Theme::ALL.into_iter().find(|theme| stored.as_deref() == Some(theme.as_str()));
    Lasting::new(theme.unwrap_or(Theme::System))
});

impl Theme {
    /// All, in the order of the switch.
    pub const ALL: [Theme; 3] = [Theme::System, Theme::Light, Theme::Dark];

    /// As stored, and as the value of `data-theme`.
    pub fn as_str(self) -> &'static str {
        match self {
            Theme::System => "system",
            Theme::Light => "light",
            Theme::Dark => "dark",
        }
    }

    /// What it is called.
    pub fn name(self) -> Text {
        match self {
            Theme::System => settings::THEME_SYSTEM,
            Theme::Light => settings::THEME_LIGHT,
            Theme::Dark => settings::THEME_DARK,
        }
    }
}

/// The theme in force.
pub fn current() -> Theme {
    CURRENT.get()
}

/// Changes the theme and remembers it.
pub fn choose(theme: Theme) {
    browser::store(STORED, theme.as_str());
    let attribute = (theme != Theme::System).then_some(theme.as_str());
    browser::set_root_attribute("data-theme", attribute);
    CURRENT.set(theme);
}
