use crate::clock;
use leptos::prelude::*;
use shared::api::WallMs;
use std::time::Duration;

/// The time of day, a second fresh, as long as the screen that asked for it lives.
pub fn every_second() -> ReadSignal<WallMs> {
    let (now, set_now) = signal(clock::now());
    let tick = move || {
        let _ = set_now.try_set(clock::now());
    };
    if let Ok(handle) = set_interval_with_handle(tick, Duration::from_secs(1)) {
        on_cleanup(move || handle.clear());
    }
    now
}
