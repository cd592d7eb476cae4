//! The panel's executable.

fn main() {}
