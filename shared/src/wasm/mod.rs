//! What the npm package `@exitpilot/shared` can do.
//!
//! Arguments come as one JSON object and results go as JSON, so that a browser, Node.js and a test of this crate use the
//! same functions; the package's JavaScript makes the object from the arguments. An error is a [`FieldError`] whose
//! `field` is the path from the argument's name on: `tunnel.exit.nodes[0].port`. Nothing here panics, whatever comes in:
//! a panic would end the module for good.
//!
//! - [`input`]: reading arguments
//! - [`strategies`], [`validation`], [`scoring`], [`machine`], [`replay`]: the functions
//! - [`border`]: the same functions for JavaScript

pub mod border;
pub mod input;
pub mod machine;
pub mod replay;
pub mod scoring;
pub mod strategies;
pub mod validation;

use crate::field::FieldError;

/// What a function of the package gives back: something to write as JSON, or what is wrong with its arguments.
pub type Outcome<T> = Result<T, FieldError>;
