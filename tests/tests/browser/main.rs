//! The page in a real browser, in front of a real panel.
//!
//! Each test has a panel and a browser of its own and ends with a browser log in which nothing is wrong. What the page
//! must be seen to do while links get bad runs in the lab, with agents as processes; the rest needs no more than a
//! panel on loopback. `dashboard` is about another page: one made for Clash, in front of an agent; `package` and `plugin` about pages that use our npm packages. Screenshots of every screen go to `target/screenshots`, and of the last moment of a failed test.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod accessible;
#[path = "../interop/address.rs"]
mod address;
mod assets;
mod audit;
mod browser;
mod chart;
mod chart_view;
mod choosing;
mod connection;
mod dashboard;
mod dashboard_site;
mod editor;
mod forwards;
mod leaks;
mod login;
mod looks;
mod monitor;
mod newcomer;
mod nodes;
mod on_demand;
mod package;
mod page;
mod played;
mod plugin;
mod run;
mod settings;
mod users;
mod what_if;
