//! The tunnel editor as a bundle that pages load when they need it.

frontend::bundle!("tunnel-editor-", frontend::pages::editor::mount::mount);
