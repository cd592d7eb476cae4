//! The page of ExitPilot.
//!
//! - [`pages`]: the screens; they put [`ui`] and [`api`] together
//! - [`ui`]: elements that know neither the panel nor the screens
//! - [`api`]: the panel's endpoints, the session, and data that keeps itself fresh
//! - [`i18n`]: every word, in Chinese and English
//! - [`module`]: screens whose code is loaded when they are first opened

pub mod api;
pub mod app;
pub mod browser;
pub mod clock;
pub mod format;
pub mod i18n;
pub mod lasting;
pub mod module;
pub mod pages;
pub mod reactive;
pub mod router;
pub mod theme;
pub mod ui;

/// Draws the page into the document's body.
pub fn start() {
    std::panic::set_hook(Box::new(|info| {
        console_error_panic_hook::hook(info);
        browser::announce_panic();
    }));
    leptos::mount::mount_to_body(app::App);
}
