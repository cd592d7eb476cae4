use crate::api::{ApiError, Feed};
use crate::i18n::{common, errors, lang, t};
use crate::reactive::{Memo, Show, Signal, StoredValue, part, phrase};
use crate::ui::{Loading, Problem};
use leptos::prelude::*;

/// Shows its content once the data is there; before that what is going on, and after a failed refresh that the data
/// is old.
#[component]
pub fn Loaded(
    #[prop(into)] ready: Signal<bool>,
    #[prop(into)] error: Signal<Option<ApiError>>,
    on_retry: Callback<()>,
    children: ChildrenFn,
) -> AnyView {
    let ready = Memo::new(move |_| ready.get());
    let failed = Memo::new(move |_| error.get().is_some());
    let text =
        Signal::derive(move || error.get().map(|error| errors::api(&error, lang())).unwrap_or_default());
    let children = StoredValue::new(children);
    let content = move || {
        if ready.get() {
            return view! {
                <Show when=move || failed.get()>
                    <p class="stale" role="status">{phrase(move || text.get())} " " {t(common::STALE_DATA)}</p>
                </Show>
                {children.with_value(|children| children())}
            }
            .into_any();
        }
        if failed.get() {
            return view! { <Problem text on_retry /> }.into_any();
        }
        view! { <Loading /> }.into_any()
    };
    part(content)
}

/// [`Loaded`] for one feed.
pub fn loaded<T: PartialEq + Send + Sync>(
    feed: Feed<T>,
    children: impl Fn() -> AnyView + Send + Sync + 'static,
) -> AnyView {
    feed.want();
    let ready = Signal::derive(move || feed.get().is_some());
    let error = Signal::derive(move || feed.error());
    let children = StoredValue::new(children);
    view! {
        <Loaded ready error on_retry=Callback::new(move |()| feed.refresh())>
            {children.with_value(|children| children())}
        </Loaded>
    }
    .into_any()
}
