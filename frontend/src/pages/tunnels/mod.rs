//! Tunnels: the list, and what is asked before one is deleted.

pub mod delete;
pub mod list;
pub mod row;
pub mod state;
