//! The tunnel editor: a bundle of its own (see [`crate::module`]), for the page and for other people's pages.

pub mod capability;
pub mod desk;
pub mod form;
pub mod group;
pub mod hops;
pub mod members;
pub mod mount;
pub mod page;
pub mod save;
pub mod screen;
pub mod strategy;

pub use screen::{EditTunnel, NewTunnel};
