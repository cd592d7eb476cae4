use crate::api::{ApiError, client};
use crate::format;
use crate::i18n::{Lang, audit as words, common, errors, lang, t};
use crate::reactive::{Effect, RwSignal, Show, Signal, each, phrase};
use crate::ui::field::said;
use crate::ui::search::SearchBox;
use crate::ui::{Button, Empty, Heading, Loading, Problem};
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::api::AuditEntry;
use shared::testid;
use std::sync::Arc;
use std::time::Duration;

/// Entries fetched at a time.
const PAGE: u32 = 50;
/// After the last letter of a search: shorter than a person waits, longer than between two letters.
const TYPING: Duration = Duration::from_millis(250);

/// What is shown, and how far it is fetched.
#[derive(Clone, Copy)]
struct Entries {
    all: RwSignal<Vec<Arc<AuditEntry>>>,
    search: RwSignal<String>,
    /// Something was fetched, if only that there is nothing.
    loaded: RwSignal<bool>,
    ended: RwSignal<bool>,
    busy: RwSignal<bool>,
    failure: RwSignal<Option<ApiError>>,
}

impl Entries {
    /// Fetches the newest, or with `older` what follows on those that are there.
    fn fetch(self, older: bool) {
        self.busy.set(true);
        self.failure.set(None);
        let last = self.all.with_untracked(|all| all.last().map(|entry| entry.id));
        let before = last.filter(|_| older);
        let search = self.search.get_untracked();
        spawn_local(async move {
            let answer = client::audit_log(PAGE, before, search.trim()).await;
            // The screen may be gone, or something else is searched for by now.
            if self.search.try_get_untracked().as_ref() != Some(&search) {
                return;
            }
            self.busy.set(false);
            match answer {
                Ok(page) => {
                    // A page that is not older than what is there would never end.
                    let fresh =
                        page.into_iter().filter(|entry| before.is_none_or(|before| entry.id < before));
                    let fresh: Vec<_> = fresh.map(Arc::new).collect();
                    self.ended.set(fresh.len() < PAGE as usize);
                    self.all.update(|all| {
                        if !older {
                            all.clear();
                        }
                        all.extend(fresh);
                    });
                    self.loaded.set(true);
                }
                Err(error) => self.failure.set(Some(error)),
            }
        });
    }

    /// Fetches anew when something else is searched for.
    fn follow_search(self) {
        Effect::with_before(move |before: Option<String>| {
            let now = self.search.get();
            if before.is_some_and(|before| before != now) {
                let asked = now.clone();
                let fetch = move || {
                    if self.search.try_get_untracked() == Some(asked) {
                        self.fetch(false);
                    }
                };
                set_timeout(fetch, TYPING);
            }
            now
        });
    }
}

/// Who changed what, newest first.
#[component]
pub fn AuditPage() -> AnyView {
    let entries = Entries {
        all: RwSignal::new(Vec::new()),
        search: RwSignal::new(String::new()),
        loaded: RwSignal::new(false),
        ended: RwSignal::new(false),
        busy: RwSignal::new(false),
        failure: RwSignal::new(None),
    };
    entries.fetch(false);
    entries.follow_search();
    let Entries { all, search, loaded, ended, busy, failure } = entries;
    let text = Signal::derive(move || failure.get().map(|e| errors::api(&e, lang())).unwrap_or_default());
    let searched = move || search.with(|search| !search.trim().is_empty());
    let nothing = move || loaded.get() && all.with(Vec::is_empty);
    let retry = move |()| entries.fetch(loaded.get_untracked() && !ended.get_untracked());
    view! {
        <Heading text=said(words::TITLE) />
        <Show when=move || loaded.get()>
            <div class="toolbar">
                <SearchBox value=search hint=words::SEARCH_HINT testid=testid::AUDIT_SEARCH />
            </div>
        </Show>
        <Show when=move || loaded.get() && !all.with(Vec::is_empty)>
            <Table entries=all />
        </Show>
        <Show when=move || nothing() && !searched()>
            <Empty text=words::EMPTY />
        </Show>
        <Show when=move || nothing() && searched()>
            <Empty text=words::NONE_FOUND />
        </Show>
        <Show when=move || failure.with(Option::is_some)>
            <Problem text on_retry=Callback::new(retry) />
        </Show>
        <Show when=move || busy.get() && !loaded.get()>
            <Loading />
        </Show>
        <Show when=move || loaded.get() && !ended.get()>
            <p class="more">
                <Button text=common::LOAD_MORE on_press=Callback::new(move |()| entries.fetch(true)) disabled=busy />
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
                        <th scope="col">{t(words::WHEN)}</th>
                        <th scope="col">{t(words::WHO)}</th>
                        <th scope="col">{t(words::WHAT)}</th>
                        <th scope="col">{t(words::OBJECT)}</th>
                        <th scope="col">{t(words::DETAIL)}</th>
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
    let (at, said) = (entry.at, entry.detail.clone());
    view! {
        <tr data-testid=testid::with(testid::AUDIT_ROW, entry.id)>
            <td class="number">{phrase(move || format::date_time(at, lang()))}</td>
            <td>{entry.username.clone()}</td>
            <td title=entry.action.clone()>{action(entry.action.clone())}</td>
            <td>{object(&entry.object)}</td>
            <td class="muted">{phrase(move || detail(&said, lang()))}</td>
        </tr>
    }
    .into_any()
}

fn action(code: String) -> AnyView {
    match words::action(&code) {
        Some(text) => phrase(t(text)),
        None => view! { <code>{code}</code> }.into_any(),
    }
}

/// Settings have no name of their own.
fn object(name: &str) -> AnyView {
    match name {
        "settings" => phrase(t(common::NAV_SETTINGS)),
        name => name.to_owned().into_any(),
    }
}

/// Changes with the fields called as on their forms.
fn detail(text: &str, lang: Lang) -> String {
    let called = |change: &str| {
        if let Some(role) = words::role(change) {
            return Some(role.say(lang).to_owned());
        }
        let (name, values) = change.split_once(": ")?;
        Some(format!("{}: {values}", words::field(name)?.say(lang)))
    };
    text.split("; ")
        .map(|change| called(change).unwrap_or_else(|| change.to_owned()))
        .collect::<Vec<_>>()
        .join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_called_as_on_their_forms_and_the_rest_stays() {
        let text = "cooldownMs: 30000 → 2000; probeTarget: \"a:1\" → \"b; name: x:2\"; other: 1 → 2";
        assert_eq!(
            detail(text, Lang::Zh),
            "切换冷却: 30000 → 2000; 探测目标: \"a:1\" → \"b; 名称: x:2\"; other: 1 → 2"
        );
        assert_eq!(detail("10.0.0.1", Lang::En), "10.0.0.1");
        assert_eq!(detail("viewer", Lang::Zh), "只读用户");
        assert_eq!(detail("role: \"viewer\" → \"admin\"", Lang::En), "Role: \"viewer\" → \"admin\"");
        assert_eq!(detail("", Lang::En), "");
    }
}
