//! Settings: of measuring and deciding, of this page, and of the account.

pub mod account;
pub mod decisions;
pub mod page;
pub mod users;

use crate::api::live::use_live;
use crate::api::{Feed, client};
use crate::i18n::settings as words;
use crate::pages::loaded::loaded;
use crate::reactive::Effect;
use crate::ui::Heading;
use crate::ui::field::said;
use leptos::prelude::*;

/// All settings.
#[component]
pub fn SettingsPage() -> AnyView {
    let live = use_live();
    let stored = Feed::new(client::settings);
    Effect::with_before(move |before: Option<()>| {
        live.settings.track();
        if before.is_some() {
            stored.refresh();
        }
    });
    view! {
        <Heading text=said(words::TITLE) />
        <div class="settings">
            {loaded(stored, move || view! { <decisions::DecisionSettings stored /> }.into_any())}
            <page::PageSettings />
            <account::Account />
            <users::UserSettings />
        </div>
    }
    .into_any()
}
