//! Starts the page.

fn main() {
    frontend::start();
}
