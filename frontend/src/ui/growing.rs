//! Long lists, drawn a screenful at a time.

use crate::reactive::{Effect, RwSignal, Signal};
use leptos::prelude::*;
use std::time::Duration;

/// Rows drawn without a break: about a screenful, so that a letter typed meanwhile does not wait to be seen.
const STEP: usize = 24;

/// How many rows of a list to draw: the first few at once, further ones one task after the other until there are `wanted`.
/// Another search begins anew, unless `whole` says that searching hides rows and draws none.
pub fn growing(search: RwSignal<String>, wanted: Signal<usize>, whole: Signal<bool>) -> Signal<usize> {
    let state = RwSignal::new((None::<String>, STEP));
    let of = move || (!whole.get()).then(|| search.get());
    let count = Signal::derive(move || {
        let (drawn_for, count) = state.get();
        let of = of();
        if of.is_none() || of == drawn_for { count } else { STEP }
    });
    Effect::run(move || {
        let (now, of) = (count.get(), of());
        if now < wanted.get() {
            set_timeout(move || _ = state.try_set((of, now + STEP)), Duration::ZERO);
        }
    });
    count
}
