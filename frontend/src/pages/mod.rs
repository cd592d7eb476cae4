//! The screens.

pub mod diagnose;
pub mod editor;
pub mod loaded;
pub mod login;
pub mod monitor;
pub mod names;
pub mod shell;
pub mod tunnels;
