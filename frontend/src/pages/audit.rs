use crate::api::{ApiError, client};
use crate::format;
use crate::i18n::{common, errors, lang, t};
use crate::reactive::{RwSignal, Show, Signal, each, phrase};
use crate::ui::field::said;
use crate::ui::{Button, Empty, Heading, Loading, Problem};
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::api::AuditEntry;
use shared::testid;
use std::sync::Arc;

/// Entries fetched at a time.
const PAGE: u32 = 50;

/// Who changed what, newest first.
#[component]
pub fn AuditPage() -> AnyView {
    let entries = RwSignal::new(Vec::<Arc<AuditEntry>>::new());
    let loaded = RwSignal::new(false);
    let ended = RwSignal::new(false);
    let busy = RwSignal::new(false);
    let failure = RwSignal::new(None::<ApiError>);
    let fetch = move || {
        if busy.get_untracked() {
            return;
        }
        busy.set(true);
        failure.set(None);
        let before = entries.with_untracked(|entries| entries.last().map(|entry| entry.id));
        spawn_local(async move {
            let answer = client::audit_log(PAGE, before).await;
            if busy.try_set(false).is_some() {
                return;
            }
            match answer {
                Ok(page) => {
                    // A page that is not newer than what is there would never end.
                    let fresh =
                        page.into_iter().filter(|entry| before.is_none_or(|before| entry.id < before));
                    let fresh: Vec<_> = fresh.map(Arc::new).collect();
                    ended.set(fresh.len() < PAGE as usize);
                    entries.update(|entries| entries.extend(fresh));
                    loaded.set(true);
                }
                Err(error) => failure.set(Some(error)),
            }
        });
    };
    fetch();
    let text = Signal::derive(move || failure.get().map(|e| errors::api(&e, lang())).unwrap_or_default());
    view! {
        <Heading text=said(common::AUDIT_TITLE) />
        <Show when=move || loaded.get() && !entries.with(Vec::is_empty)>
            <Table entries />
        </Show>
        <Show when=move || loaded.get() && entries.with(Vec::is_empty)>
            <Empty text=common::AUDIT_EMPTY />
        </Show>
        <Show when=move || failure.with(Option::is_some)>
            <Problem text on_retry=Callback::new(move |()| fetch()) />
        </Show>
        <Show when=move || busy.get() && !loaded.get()>
            <Loading />
        </Show>
        <Show when=move || loaded.get() && !ended.get()>
            <p class="more">
                <Button text=common::LOAD_MORE on_press=Callback::new(move |()| fetch()) disabled=busy />
            </p>
        </Show>
    }
    .into_any()
}

#[component]
fn Table(entries: RwSignal<Vec<Arc<AuditEntry>>>) -> AnyView {
    view! {
        <div class="card table-scroll">
            <table class="audit">
                <thead>
                    <tr>
                        <th scope="col">{t(common::AUDIT_WHEN)}</th>
                        <th scope="col">{t(common::AUDIT_WHO)}</th>
                        <th scope="col">{t(common::AUDIT_WHAT)}</th>
                        <th scope="col">{t(common::AUDIT_OBJECT)}</th>
                        <th scope="col">{t(common::AUDIT_DETAIL)}</th>
                    </tr>
                </thead>
                <tbody>
                    {each(move || entries.get(), |entry| (entry.id, 0), move |entry| view! {
                        {row(&entry)}
                    }.into_any())}
                </tbody>
            </table>
        </div>
    }
    .into_any()
}

fn row(entry: &AuditEntry) -> AnyView {
    let at = entry.at;
    view! {
        <tr data-testid=testid::with(testid::AUDIT_ROW, entry.id)>
            <td class="number">{phrase(move || format::date_time(at, lang()))}</td>
            <td>{entry.username.clone()}</td>
            <td><code>{entry.action.clone()}</code></td>
            <td>{entry.object.clone()}</td>
            <td class="muted">{entry.detail.clone()}</td>
        </tr>
    }
    .into_any()
}
