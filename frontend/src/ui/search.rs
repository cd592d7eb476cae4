use super::field::said;
use super::icon::{Icon, icon};
use crate::i18n::{Text, common};
use crate::reactive::RwSignal;
use leptos::prelude::*;

/// An input that filters a list.
#[component]
pub fn SearchBox(value: RwSignal<String>, hint: Text, #[prop(into)] testid: String) -> AnyView {
    let hint = said(hint);
    let name = said(common::SEARCH);
    view! {
        <div class="search">
            {icon(Icon::Search)}
            <input
                type="search"
                class="input"
                aria-label=move || name.get()
                placeholder=move || hint.get()
                data-testid=testid
                prop:value=move || value.get()
                on:input=move |event| value.set(event_target_value(&event))
            />
        </div>
    }
    .into_any()
}

/// Whether a text has all words of a search in it, in any case of the letters that names of hosts are made of.
pub fn matches(search: &str, texts: &[&str]) -> bool {
    search.split_whitespace().all(|word| {
        let word = word.to_ascii_lowercase();
        texts.iter().any(|text| text.to_ascii_lowercase().contains(&word))
    })
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn every_word_must_be_found_somewhere() {
        assert!(matches("", &["x"]));
        assert!(matches("HK best", &["hk-best", "node"]));
        assert!(matches("best 香港", &["香港-1", "Best"]));
        assert!(!matches("hk tokyo", &["hk-best"]));
    }
}
