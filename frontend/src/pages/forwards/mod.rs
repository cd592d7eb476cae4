//! Forwards: the list, the form, and what is asked before one is deleted.

pub mod form;
pub mod list;
pub mod row;
