use super::icon::{Icon, icon};
use crate::i18n::{Text, t};
use crate::reactive::Signal;
use crate::router::A;
use leptos::prelude::*;

/// How much a button stands out.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Look {
    /// The thing to do on this screen.
    Primary,
    /// One of several things.
    #[default]
    Plain,
    /// In a row of small things.
    Quiet,
    /// Destroys something.
    Danger,
}

impl Look {
    /// The class that makes it so.
    pub fn class(self) -> &'static str {
        match self {
            Look::Primary => "button primary",
            Look::Plain => "button",
            Look::Quiet => "button quiet",
            Look::Danger => "button danger",
        }
    }
}

/// A button. With `bare` it shows only its icon and says its text to screen readers.
#[component]
pub fn Button(
    text: Text,
    on_press: Callback<()>,
    #[prop(optional)] look: Look,
    #[prop(optional, into)] icon_of: Option<Icon>,
    #[prop(optional)] bare: bool,
    #[prop(optional, into)] label: Option<Signal<String>>,
    #[prop(optional, into)] disabled: Signal<bool>,
    #[prop(optional, into)] testid: String,
) -> AnyView {
    let spoken = move || match label {
        Some(label) => Some(label.get()),
        None if bare => Some(t(text)().to_owned()),
        None => None,
    };
    view! {
        <button
            type="button"
            class=look.class()
            class:bare=bare
            aria-label=spoken
            title=move || bare.then(|| label.map_or_else(|| t(text)().to_owned(), |label| label.get()))
            disabled=move || disabled.get()
            data-testid=testid
            on:click=move |_| on_press.run(())
        >
            {icon_of.map(icon)}
            {(!bare).then(|| view! { <span>{t(text)}</span> })}
        </button>
    }
    .into_any()
}

/// The button that sends a form. It stays enabled while fields are wrong: pressing it is how people learn what is.
#[component]
pub fn Submit(
    text: Text,
    #[prop(into)] busy: Signal<bool>,
    #[prop(optional, into)] testid: String,
) -> AnyView {
    view! {
        <button type="submit" class=Look::Primary.class() disabled=move || busy.get() data-testid=testid
            aria-busy=move || busy.get().to_string()>
            {t(text)}
        </button>
    }
    .into_any()
}

/// A link that looks like a button.
#[component]
pub fn LinkButton(
    text: Text,
    #[prop(into)] href: String,
    #[prop(optional)] look: Look,
    #[prop(optional, into)] icon_of: Option<Icon>,
    #[prop(optional, into)] testid: String,
) -> AnyView {
    view! {
        <A href class=look.class() testid>
            {icon_of.map(icon)}
            <span>{t(text)}</span>
        </A>
    }
    .into_any()
}
