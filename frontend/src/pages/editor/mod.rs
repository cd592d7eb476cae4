//! The tunnel editor.

pub mod capability;
pub mod form;
pub mod group;
pub mod hops;
pub mod members;
pub mod page;
pub mod save;
pub mod strategy;

pub use page::{EditTunnel, NewTunnel};
