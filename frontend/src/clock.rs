//! The page's only door to the time of day.

use shared::api::WallMs;

/// UTC milliseconds now, as this browser's clock has it.
pub fn now() -> WallMs {
    js_sys::Date::now() as WallMs
}
