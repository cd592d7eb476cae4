use super::form::{Form, GroupForm, shift};
use super::group::GroupFields;
use crate::i18n::{common, editor as words, lang, t};
use crate::reactive::{Memo, Show, Signal, each, part, phrase};
use crate::ui::errors::FieldMessage;
use crate::ui::{Button, FieldErrors, Icon, Look};
use leptos::prelude::*;
use shared::api::Group;
use shared::strategy::Place;
use shared::testid;
use shared::topology::MAX_HOPS;

/// The middle hops, in order.
#[component]
pub fn Hops(form: Form, errors: FieldErrors) -> AnyView {
    let add = move |()| {
        let hop = form.keeping(|| GroupForm::from_group(&Group::default()));
        form.hops.update(|hops| hops.push(hop));
    };
    let error = errors.of("hops");
    view! {
        <section class="card" aria-labelledby="hops-title">
            <header class="section-head">
                <h2 id="hops-title">{t(words::HOPS_TITLE)}</h2>
                <p class="hint">{t(words::HOPS_HINT)}</p>
            </header>
            <Show when=move || form.hops.with(Vec::is_empty)>
                <p class="muted">{t(words::HOPS_NONE)}</p>
            </Show>
            {each(move || form.hops.get(), |hop| (i64::from(hop.key), 0), move |hop| view! {
                <Hop form hop errors />
            }.into_any())}
            <FieldMessage id="hops-error".to_owned() field="hops".to_owned() error />
            <div>
                <Button text=words::ADD_HOP icon_of=Icon::Plus on_press=Callback::new(add)
                    disabled=Signal::derive(move || form.hops.with(|hops| hops.len() >= MAX_HOPS))
                    testid=testid::EDITOR_ADD_HOP />
            </div>
        </section>
    }
    .into_any()
}

#[component]
fn Hop(form: Form, hop: GroupForm, errors: FieldErrors) -> AnyView {
    let place = Memo::new(move |_| {
        form.hops.with(|hops| hops.iter().position(|other| other.key == hop.key)).unwrap_or_default()
    });
    let count = Memo::new(move |_| form.hops.with(Vec::len));
    let path = Signal::derive(move || format!("hops[{}]", place.get()));
    let holders = Signal::derive(move || form.holders(place.get()));
    let number = move || (place.get() + 1).to_string();
    let title = move || words::HOP.with(lang(), &[("number", &number())]);
    let remove_label = Signal::derive(move || words::REMOVE_HOP.with(lang(), &[("number", &number())]));
    let go =
        move |up| Callback::new(move |()| form.hops.update(|hops| shift(hops, place.get_untracked(), up)));
    let remove = move |()| form.hops.update(|hops| hops.retain(|other| other.key != hop.key));
    // A moved hop is drawn anew under its new number, so that test ids say where it is.
    let fields = move || {
        view! { <GroupFields form group=hop place=Place::Hop holders name=format!("hop-{}", place.get()) path errors /> }
    };
    let buttons = move || {
        let index = place.get();
        view! {
            <Button text=common::MOVE_UP on_press=go(true) look=Look::Quiet icon_of=Icon::Up bare=true
                disabled=Signal::derive(move || place.get() == 0) testid=testid::with(testid::EDITOR_HOP_UP, index) />
            <Button text=common::MOVE_DOWN on_press=go(false) look=Look::Quiet icon_of=Icon::Down bare=true
                disabled=Signal::derive(move || place.get() + 1 >= count.get())
                testid=testid::with(testid::EDITOR_HOP_DOWN, index) />
            <Button text=common::REMOVE label=remove_label on_press=Callback::new(remove) look=Look::Quiet
                icon_of=Icon::Cross bare=true testid=testid::with(testid::EDITOR_REMOVE_HOP, index) />
        }
    };
    view! {
        <div class="hop">
            <header class="hop-head">
                <h3>{phrase(title)}</h3>
                <span class="member-buttons">{part(buttons)}</span>
            </header>
            {part(fields)}
        </div>
    }
    .into_any()
}
