use super::capability;
use crate::i18n::{editor as words, lang, strategy as say, t};
use crate::pages::names::use_names;
use crate::reactive::{Memo, RwSignal, Signal, StoredValue, part, phrase};
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
    let unknown = value.with_untracked(|value| matches!(value, Strategy::Other(_)).then(|| value.clone()));
    let offered: Vec<Strategy> =
        Strategy::KNOWN.into_iter().filter(|strategy| strategy.allowed_at(place)).chain(unknown).collect();
    let (more, common): (Vec<Strategy>, Vec<Strategy>) =
        offered.into_iter().partition(|strategy| *strategy == Strategy::Hash);
    let option = {
        let group = group.clone();
        let name = name.clone();
        move |strategy: Strategy| {
            view! { <StrategyOption value strategy holders name=name.clone() group=group.clone() /> }
        }
    };
    let more_chosen = value.with_untracked(|value| more.contains(value));
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
            {part(move || view! { <FieldMessage id=error_id.clone() field=path.get() error /> })}
        </fieldset>
    }
    .into_any()
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
    let chosen = move || value.with(|value| own.with_value(|own| own == value));
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
                value=strategy.as_str().to_owned()
                aria-describedby=format!("{id}-when")
                data-testid=testid::of(testid::EDITOR_STRATEGY_OPTION, group, &strategy)
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
