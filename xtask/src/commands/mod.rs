//! One file per command. Each returns whether it ended well; an error is something that stopped it half-way.

pub(crate) mod bench;
pub(crate) mod build;
pub(crate) mod ci;
pub(crate) mod demo;
pub(crate) mod fuzz;
pub(crate) mod screenshots;
pub(crate) mod setup;
pub(crate) mod suites;
pub(crate) mod test;
pub(crate) mod tidy;
