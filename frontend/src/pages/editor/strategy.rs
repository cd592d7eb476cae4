use super::capability;
use crate::i18n::{editor as words, lang, strategy as say, t};
use crate::pages::names::use_names;
use crate::reactive::{Effect, Memo, RwSignal, Show, Signal, StoredValue, part, phrase};
use crate::ui::TextField;
use crate::ui::errors::FieldMessage;
use crate::ui::field::fresh_id;
use leptos::prelude::*;
use shared::ids::NodeId;
use shared::strategy::{Place, Strategy};
use shared::testid;

/// Chooses a group's strategy, each with a sentence on when to use it. A strategy that this page does not know stays
/// among the choices, as it is.
#[component]
pub fn StrategyPicker(
    value: RwSignal<Strategy>,
    place: Place,
    /// The nodes whose agents would carry it out.
    holders: Signal<Vec<NodeId>>,
    /// The group's name in test ids.
    #[prop(into)]
    group: String,
    #[prop(into)] path: Signal<String>,
    error: Signal<Option<String>>,
) -> AnyView {
    let name = fresh_id();
    let (more, common): (Vec<Strategy>, Vec<Strategy>) =
        value.with_untracked(|value| offered(place, value)).into_iter().partition(is_further);
    let option = {
        let group = group.clone();
        let name = name.clone();
        move |strategy: Strategy| {
            view! { <StrategyOption value strategy holders name=name.clone() group=group.clone() /> }
        }
    };
    let more_chosen = value.with_untracked(|value| more.iter().any(|more| more.kind() == value.kind()));
    let options_of = group.clone();
    let error_id = fresh_id();
    let described_by = error_id.clone();
    view! {
        <fieldset class="field strategies" aria-describedby=described_by
            aria-invalid=move || error.get().map(|_| "true") tabindex="-1"
            data-testid=testid::with(testid::EDITOR_STRATEGY, &group)>
            <legend>{t(words::STRATEGY)}</legend>
            <div class="options">{common.into_iter().map(option.clone()).collect_view()}</div>
            <details open=more_chosen>
                <summary data-testid=testid::with(testid::EDITOR_STRATEGY_MORE, &group)>{t(words::MORE_STRATEGIES)}</summary>
                <div class="options">{more.into_iter().map(option).collect_view()}</div>
            </details>
            <StrategyText value testid=testid::with(testid::EDITOR_STRATEGY_TEXT, options_of) />
            {part(move || view! { <FieldMessage id=error_id.clone() field=path.get() error /> })}
        </fieldset>
    }
    .into_any()
}

/// What may be chosen at a place. A value that this page does not know stays among it, as it is.
pub fn offered(place: Place, value: &Strategy) -> Vec<Strategy> {
    let known = Strategy::KNOWN.into_iter().filter(|strategy| strategy.allowed_at(place));
    let mut all: Vec<Strategy> = known.chain(Strategy::FURTHER.map(Strategy::from)).collect();
    if all.iter().all(|offered| offered.kind() != value.kind()) {
        all.push(value.clone());
    }
    all
}

fn is_further(strategy: &Strategy) -> bool {
    matches!(strategy, Strategy::Hash) || strategy.policy().is_some()
}

/// The text of a strategy that has options, while one is chosen.
#[component]
pub fn StrategyText(value: RwSignal<Strategy>, #[prop(into)] testid: String) -> AnyView {
    let text = RwSignal::new(value.with_untracked(|value| value.as_str().to_owned()));
    // Half a word is no strategy; the field must not go away under whoever types.
    let shown = RwSignal::new(None);
    // What is typed is the strategy; another one that is chosen replaces what is typed.
    Effect::run(move || {
        let (chosen, kind) = value.with(|value| {
            let is_unknown = matches!(value, Strategy::Other(_));
            let found = options(value.kind());
            (value.as_str().to_owned(), if found.is_none() && is_unknown { None } else { Some(found) })
        });
        if let Some(found) = kind {
            shown.set(found);
        }
        let typed = text.get_untracked();
        if Strategy::from(typed.as_str()).as_str() != chosen {
            text.set(chosen);
        }
    });
    Effect::with_before(move |before: Option<()>| {
        let typed = Strategy::from(text.get().as_str());
        if before.is_some() && value.with_untracked(|value| *value != typed) {
            value.set(typed);
        }
    });
    let hint = Signal::derive(move || {
        let options: Option<&'static str> = shown.get();
        words::STRATEGY_OPTIONS.with(lang(), &[("options", options.unwrap_or_default())])
    });
    let testid = StoredValue::new(testid);
    view! {
        <Show when=move || shown.with(Option::is_some)>
            <TextField label=words::STRATEGY_TEXT value=text field="" hint testid=testid.get_value() />
        </Show>
    }
    .into_any()
}

/// The options of a kind, with what they are unless they are written.
fn options(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "selector" => "default=…, interrupt=never|on_switch, drain=0s",
        "urltest" => {
            "url=…, interval=3m, tolerance=50ms, idle_timeout=30m, expected_status=…, fall=1, rise=1, \
             interrupt=never|on_death|on_switch, drain=0s"
        }
        "min" | "min_avg10" | "min_moving_avg" => {
            "url=…, interval=30s, tolerance=0ms, expected_status=…, fall=1, rise=1, \
             interrupt=never|on_death|on_switch, drain=0s"
        }
        "fixed_fallback" => {
            "0, timeout=3s, retries=3, fallback=random|min|min_avg10|min_moving_avg, return_delay=0s, \
             interval=30s, url=…"
        }
        "fixed" => "0, 1, 2, …",
        "lowestlatency" => "tolerance=0ms",
        _ => return None,
    })
}

#[component]
fn StrategyOption(
    value: RwSignal<Strategy>,
    strategy: Strategy,
    holders: Signal<Vec<NodeId>>,
    name: String,
    group: String,
) -> AnyView {
    let names = use_names();
    let id = fresh_id();
    let own = StoredValue::new(strategy.clone());
    let label = move || own.with_value(|strategy| say::label(strategy, lang()));
    let chosen = move || value.with(|value| own.with_value(|own| own.kind() == value.kind()));
    let kind = strategy.kind().to_owned();
    let cannot = Memo::new(move |_| {
        let missing =
            own.with_value(|strategy| capability::strategy_missing(names, &holders.get(), strategy));
        let nodes = missing.join(", ");
        (!missing.is_empty()).then(|| words::AGENT_CANNOT.with(lang(), &[("nodes", &nodes)]))
    });
    view! {
        <div class="option" class:chosen=chosen class:impossible=move || cannot.with(Option::is_some)>
            <input
                type="radio"
                id=id.clone()
                name=name
                value=kind.clone()
                aria-describedby=format!("{id}-when")
                data-testid=testid::of(testid::EDITOR_STRATEGY_OPTION, group, &kind)
                disabled=move || cannot.with(Option::is_some) && !chosen()
                prop:checked=chosen
                on:change=move |_| value.set(own.get_value())
            />
            <label for=id.clone()>{phrase(label)}</label>
            <p class="hint" id=format!("{id}-when")>
                {t(say::when(&strategy))}
                <span class="cannot">{phrase(move || cannot.get().map(|why| format!(" {why}")))}</span>
            </p>
        </div>
    }
    .into_any()
}
