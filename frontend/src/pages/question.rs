//! Dialogs that are open while something is asked.

use crate::reactive::{Effect, RwSignal};

/// The open state of a dialog that shows what is asked; closing it withdraws the question.
pub fn closes<T: Clone + Send + Sync + 'static>(asked: RwSignal<Option<T>>) -> RwSignal<bool> {
    let open = RwSignal::new(false);
    Effect::run(move || {
        let wanted = asked.with(Option::is_some);
        if open.get_untracked() != wanted {
            open.set(wanted);
        }
    });
    Effect::with_before(move |before: Option<bool>| {
        let now = open.get();
        if before == Some(true) && !now {
            asked.set(None);
        }
        now
    });
    open
}
