//! The screens.

pub mod attention;
pub mod audit;
pub mod diagnose;
pub mod editor;
pub mod forwards;
pub mod loaded;
pub mod login;
pub mod monitor;
pub mod names;
pub mod nodes;
pub mod overview;
pub mod question;
pub mod sending;
pub mod settings;
pub mod shell;
pub mod tunnels;
