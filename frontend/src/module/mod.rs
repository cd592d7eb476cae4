//! Screens whose code is no part of a first visit: each is a bundle of its own that the page loads when the screen is
//! first opened.
//!
//! - [`loader`]: the page's side; loads, shows, follows, takes away
//! - [`bundle`]: what a bundle exports
//! - [`guest`]: the bundle's side; what it was given, and what keeps it on the screen

pub mod bundle;
pub mod guest;
pub mod loader;
