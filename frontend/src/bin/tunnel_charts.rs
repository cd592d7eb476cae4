//! The charts of the monitor as a bundle that the page loads when it needs them.

frontend::bundle!("tunnel-charts-", frontend::pages::monitor::chart::mount::mount);
