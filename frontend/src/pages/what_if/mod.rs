//! What if: a tunnel's history under other settings and policies, replayed beside the page.
//!
//! - [`screen`]: the page's side, which loads the rest when it is first opened
//! - [`mount`], [`desk`]: the bundle's side; the panel and what is known of it
//! - [`worker`]: where histories are replayed
//! - [`ask`]: what is asked: settings, policies, time, owner
//! - [`answer`]: what came of it, as a table, strips and words
//! - [`adopt`]: putting the settings in force

pub mod adopt;
pub mod answer;
pub mod ask;
pub mod desk;
pub mod mount;
pub mod page;
pub mod screen;
pub mod slider;
pub mod strips;
pub mod worker;

pub use screen::WhatIf;
