//! The what-if screen as a bundle that the page loads when it is opened.

frontend::bundle!("what-if-", frontend::pages::what_if::mount::mount);
