//! The API in process: every endpoint, who may use it, and what it says to nonsense.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod access;
mod binary;
mod compressed;
mod document;
mod forwards;
mod history;
mod install;
mod invalid;
mod nodes;
mod page;
mod panel;
mod replaying;
mod sessions;
mod settings;
mod strategies;
mod streams;
mod tunnels;
mod users;
mod what_if;
