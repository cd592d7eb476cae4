//! The agent without a panel: runs a file.

use crate::clock::{Clock, Random};
use crate::daemon::new_runtime;
use crate::document;
use crate::limit::limiters;
use crate::runtime::{Change, Runtime};
use shared::gost::GostConfig;
use std::path::{Path, PathBuf};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Runs `file` until `stop`; each message in `reloads` reads it again.
///
/// Fails when the file is invalid or something in it cannot be started.
pub async fn run(
    file: PathBuf,
    mut reloads: mpsc::Receiver<()>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let config = checked(&file)?;
    // Whoever may write the file of this machine's agent may run commands on it anyway.
    let runtime = new_runtime(&Clock::system(), &Random::system(), true);
    runtime.apply(Change::Load(config)).await?;
    let failed = runtime.failed();
    if !failed.is_empty() {
        runtime.shutdown().await;
        let reasons: Vec<String> =
            failed.iter().map(|(object, reason)| format!("{object}: {reason}")).collect();
        anyhow::bail!("{}", reasons.join("\n"));
    }
    tracing::info!("ready");
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(()) = reloads.recv() => reload(&runtime, &file).await,
        }
    }
    runtime.shutdown().await;
    Ok(())
}

/// Reads and validates a file without running anything.
pub fn checked(file: &Path) -> anyhow::Result<GostConfig> {
    let config = document::read(file)?;
    let problems = Runtime::validate(&config).err().unwrap_or_default();
    anyhow::ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(config)
}

/// An invalid file changes nothing.
async fn reload(runtime: &Runtime, file: &Path) {
    let config = match checked(file) {
        Ok(config) => config,
        Err(error) => {
            tracing::error!("not reloaded, still running the old configuration: {error:#}");
            return;
        }
    };
    let mut refused = 0;
    for change in difference(&runtime.config(), config) {
        if let Err(error) = runtime.apply(change).await {
            tracing::error!("not changed: {error}");
            refused += 1;
        }
    }
    tracing::info!(refused, "reloaded {}", file.display());
}

/// The changes that lead from what runs to what is wanted. Chains come before the services that name them and go
/// after them.
fn difference(running: &GostConfig, wanted: GostConfig) -> Vec<Change> {
    let gone_services: Vec<String> = running
        .services
        .iter()
        .map(|service| &service.name)
        .filter(|name| wanted.services.iter().all(|service| service.name != **name))
        .cloned()
        .collect();
    let gone_chains: Vec<String> = running
        .chains
        .iter()
        .map(|chain| &chain.name)
        .filter(|name| wanted.chains.iter().all(|chain| chain.name != **name))
        .cloned()
        .collect();
    let gone_limiters: Vec<_> = limiters(running)
        .filter(|(kind, limiter)| !limiters(&wanted).any(|(k, l)| k == *kind && l.name == limiter.name))
        .map(|(kind, limiter)| Change::DeleteLimiter(kind, limiter.name.clone()))
        .collect();
    let limits: Vec<_> = limiters(&wanted)
        .filter(|wanted| limiters(running).all(|running| running != *wanted))
        .map(|(kind, limiter)| Change::UpsertLimiter(kind, limiter.clone()))
        .collect();
    let chains = wanted.chains.into_iter().filter(|chain| !running.chains.contains(chain));
    let services = wanted.services.into_iter().filter(|service| !running.services.contains(service));
    let mut changes = Vec::new();
    // First, since a new service may want the port of one that goes.
    if !gone_services.is_empty() {
        changes.push(Change::DeleteServices(gone_services));
    }
    changes.extend(limits);
    changes.extend(chains.map(Change::UpsertChain));
    changes.extend(services.map(|service| Change::UpsertServices(vec![service])));
    changes.extend(gone_chains.into_iter().map(Change::DeleteChain));
    changes.extend(gone_limiters);
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config(services: &[(&str, u16)], chains: &[&str]) -> GostConfig {
        let service = |(name, port): &(&str, u16)| {
            json!({"name": name, "addr": format!("127.0.0.1:{port}"), "handler": {"type": "relay"},
                   "listener": {"type": "tcp"}})
        };
        let chain = |name: &&str| json!({"name": name, "hops": []});
        let document = json!({"services": services.iter().map(service).collect::<Vec<_>>(),
                              "chains": chains.iter().map(chain).collect::<Vec<_>>()});
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn only_what_differs_is_changed_in_a_safe_order() {
        let running = config(&[("a", 1), ("b", 2), ("c", 3)], &["x", "y"]);
        assert_eq!(difference(&running, running.clone()), []);
        let wanted = config(&[("a", 1), ("b", 9), ("d", 3)], &["y", "z"]);
        let changes = difference(&running, wanted.clone());
        let service = |name: &str| wanted.services.iter().find(|s| s.name == name).unwrap().clone();
        let expected = [
            Change::DeleteServices(vec!["c".into()]),
            Change::UpsertChain(wanted.chains[1].clone()),
            Change::UpsertServices(vec![service("b")]),
            Change::UpsertServices(vec![service("d")]),
            Change::DeleteChain("x".into()),
        ];
        assert_eq!(changes, expected);
    }
}
