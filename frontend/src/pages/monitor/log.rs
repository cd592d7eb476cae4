use super::page::Monitored;
use super::words as say;
use crate::api::live::use_live;
use crate::api::{ApiError, client};
use crate::format;
use crate::i18n::{common, errors, lang, monitor as words, reason, t};
use crate::reactive::{Effect, RwSignal, Show, Signal, each, phrase};
use crate::ui::chip::exit_class;
use crate::ui::{Button, Problem};
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::api::DecisionLogEntry;
use shared::testid;
use std::sync::Arc;

/// Entries fetched at a time.
const PAGE: u32 = 30;

/// Switches, refusals and changes of the reason, newest first.
#[component]
pub fn DecisionLog(shared: Monitored) -> AnyView {
    let live = use_live();
    let entries = RwSignal::new(Vec::<Arc<DecisionLogEntry>>::new());
    let ended = RwSignal::new(false);
    let loaded = RwSignal::new(false);
    let busy = RwSignal::new(false);
    let failure = RwSignal::new(None::<ApiError>);

    let fetch = move |before: Option<i64>| {
        if busy.get_untracked() {
            return;
        }
        busy.set(true);
        spawn_local(async move {
            let answer = client::decision_log(shared.id, PAGE, before).await;
            let _ = busy.try_set(false);
            match answer {
                Ok(page) => {
                    let full = page.len() >= PAGE as usize;
                    let _ = entries.try_update(|entries| take(entries, page));
                    // Only the oldest page knows whether anything is older.
                    if !full || before.is_some() {
                        let _ = ended.try_update(|ended| *ended |= !full);
                    }
                    let _ = loaded.try_set(true);
                    let _ = failure.try_set(None);
                }
                Err(error) => {
                    let _ = failure.try_set(Some(error));
                }
            }
        });
    };
    Effect::run(move || {
        live.decisions.track();
        fetch(None);
    });
    let older = move |()| fetch(entries.with_untracked(|entries| entries.last().map(|entry| entry.id)));
    let text = Signal::derive(move || failure.get().map(|e| errors::api(&e, lang())).unwrap_or_default());
    view! {
        <section class="card">
            <h2>{t(words::LOG_TITLE)}</h2>
            <Show when=move || failure.with(Option::is_some) && !loaded.get()>
                <Problem text on_retry=Callback::new(move |()| fetch(None)) />
            </Show>
            <ol class="log">
                {each(move || entries.get(), |entry| (entry.id, 0), move |entry| view! {
                    <Entry shared entry />
                }.into_any())}
            </ol>
            <Show when=move || loaded.get() && entries.with(Vec::is_empty)>
                <p class="muted">{t(words::LOG_EMPTY)}</p>
            </Show>
            <Show when=move || loaded.get() && !ended.get()>
                <p class="more">
                    <Button text=common::LOAD_MORE on_press=Callback::new(older) disabled=busy testid=testid::LOG_MORE />
                </p>
            </Show>
        </section>
    }
    .into_any()
}

/// Adds a page to the entries there are, newest first, each once.
fn take(entries: &mut Vec<Arc<DecisionLogEntry>>, page: Vec<DecisionLogEntry>) {
    for entry in page {
        if let Err(place) = entries.binary_search_by(|other| entry.id.cmp(&other.id)) {
            entries.insert(place, Arc::new(entry));
        }
    }
}

#[component]
fn Entry(shared: Monitored, entry: Arc<DecisionLogEntry>) -> AnyView {
    let id = entry.id;
    let colour = entry.to_exit_node_id.map(exit_class).unwrap_or_default();
    let code = entry.reason.code();
    let named = entry.clone();
    let sentence = move || {
        let name = |id| say::exit_name(&named.candidates, id).unwrap_or_else(|| shared.names.of(id));
        reason::sentence(&named.reason, lang(), &name)
    };
    let at = entry.at;
    view! {
        <li class=format!("log-entry {colour}") data-testid=testid::with(testid::LOG_ENTRY, id) data-code=code>
            <time>{phrase(move || format::date_time(at, lang()))}</time>
            <span class="log-owner">{entry.owner_name.clone()}</span>
            <span class="log-code">{t(reason::short(code))}</span>
            <span class="log-text">{phrase(sentence)}</span>
        </li>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::best_exit::Reason;
    use shared::ids::NodeId;

    fn entry(id: i64) -> DecisionLogEntry {
        DecisionLogEntry {
            id,
            at: id,
            owner_node_id: NodeId(1),
            owner_name: "a".into(),
            from_exit_node_id: None,
            to_exit_node_id: None,
            reason: Reason::CurrentIsBest,
            candidates: Vec::new(),
        }
    }

    #[test]
    fn pages_overlap_and_come_in_any_order() {
        let mut entries = Vec::new();
        for page in [vec![5, 4, 3], vec![3, 2], vec![7, 6, 5]] {
            take(&mut entries, page.into_iter().map(entry).collect());
        }
        assert_eq!(entries.iter().map(|e| e.id).collect::<Vec<_>>(), [7, 6, 5, 4, 3, 2]);
    }
}
