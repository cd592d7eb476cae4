//! The API in process: every endpoint, who may use it, and what it says to nonsense.

mod access;
mod document;
mod forwards;
mod history;
mod invalid;
mod nodes;
mod page;
mod panel;
mod sessions;
mod settings;
mod streams;
mod tunnels;
