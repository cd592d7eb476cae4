//! The panel's executable.

use clap::Parser as _;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    server::cli::Cli::parse().run().await
}
