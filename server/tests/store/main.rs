//! The database: migrations, constraints, what survives, what is forgotten.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod constraints;
mod decisions;
mod files;
mod rollup;
mod world;
