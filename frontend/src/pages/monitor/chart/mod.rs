//! What was measured over time: latency, loss and score of every exit, and when and why the exit was switched.
//!
//! - [`span`]: which stretch of time is looked at, and changing it (pure)
//! - [`ticks`]: where the axes have their lines and what they say (pure)
//! - [`series`]: the legs' history → what each exit was like at each moment (pure)
//! - [`path`]: all of that → shapes (pure)
//! - [`mount`]: the charts as a bundle, which the page loads when a monitor is first opened
//! - [`history`]: the card, and what its parts share
//! - [`plot`]: the drawing of one owner, [`steer`]: pointer and keys on it, [`told`]: the same in words

pub mod history;
pub mod mount;
pub mod path;
pub mod plot;
pub mod series;
pub mod span;
pub mod steer;
pub mod ticks;
pub mod told;

use crate::module::loader::{Given, on_demand};
use leptos::prelude::AnyView;
use shared::ids::TunnelId;
use wasm_bindgen::JsValue;

/// As xtask names the bundle.
const MODULE: &str = "tunnel-charts";

/// The charts of a tunnel on the page, once their code is there.
pub fn charts(id: TunnelId) -> AnyView {
    on_demand(MODULE, Given::new().with("tunnelId", &JsValue::from_f64(id.0 as f64)))
}
