use crate::reactive::{Signal, phrase};
use leptos::prelude::*;
use shared::ids::NodeId;

/// What a chip's colour says. The text says it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As it should be.
    Good,
    /// On its way.
    Waiting,
    /// Wrong.
    Bad,
    /// Neither.
    Neutral,
    /// Stands out: a decision in force.
    Accent,
}

impl Tone {
    /// The class that carries the colour.
    pub fn class(self) -> &'static str {
        match self {
            Tone::Good => "good",
            Tone::Waiting => "waiting",
            Tone::Bad => "bad",
            Tone::Neutral => "neutral",
            Tone::Accent => "accent",
        }
    }
}

/// A short state in a coloured pill.
#[component]
pub fn Chip(
    #[prop(into)] text: Signal<String>,
    #[prop(into)] tone: Signal<Tone>,
    #[prop(optional, into)] testid: Option<String>,
    #[prop(optional, into)] title: Option<Signal<String>>,
) -> AnyView {
    view! {
        <span class=move || format!("chip {}", tone.get().class()) data-testid=testid
            title=title.map(|title| move || title.get())>
            {phrase(move || text.get())}
        </span>
    }
    .into_any()
}

/// Colours for exits; the style sheets have as many.
const EXIT_COLOURS: i64 = 8;

/// The class with an exit's colour: the same exit has the same one on every screen.
pub fn exit_class(id: NodeId) -> String {
    format!("exit-colour-{}", id.0.rem_euclid(EXIT_COLOURS))
}

/// The dot in an exit's colour.
pub fn dot(id: NodeId) -> AnyView {
    view! { <span class=format!("dot {}", exit_class(id)) aria-hidden="true"></span> }.into_any()
}

/// Online or offline: a filled or a hollow mark beside its word.
#[component]
pub fn OnlineMark(online: bool, #[prop(optional, into)] testid: Option<String>) -> AnyView {
    use crate::i18n::{common, t};
    let (class, text) = if online { ("online yes", common::ONLINE) } else { ("online no", common::OFFLINE) };
    view! { <span class=class data-testid=testid data-online=online.to_string()>{t(text)}</span> }.into_any()
}
