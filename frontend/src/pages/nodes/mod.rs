//! Nodes: the list, the form, the install command, and what is asked before one is deleted.

pub mod delete;
pub mod form;
pub mod install;
pub mod list;
