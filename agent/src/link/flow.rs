//! What services have carried, for a compatible panel that keeps accounts of it (`POST /flow/upload`).
//!
//! The protocol gives a report no number by which the panel could know one that it has already. So a report that was
//! sent and never answered is counted either twice or not at all; here it counts as taken, since users may be charged
//! for it. What certainly did not arrive, or was refused, is part of the next report.

mod accounts;
mod upload;

use super::Link;
use super::address::Scheme;
use accounts::Accounts;

/// The accounts of a link, over all its connections.
#[derive(Debug, Default)]
pub(super) struct Flow {
    accounts: Accounts,
    /// The last report was not taken, and the log says so.
    failing: bool,
}

impl Flow {
    /// Reports every period until it is dropped. Our own panel reads no such reports.
    pub(super) async fn report(&mut self, link: &Link, scheme: Scheme, ours: bool) -> String {
        if ours {
            return std::future::pending().await;
        }
        let mut ticks = tokio::time::interval(link.options.timings.traffic);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.accounts.open(link.runtime.traffics());
            // Booked before it is sent: cut off in the middle it may have arrived.
            let due = self.accounts.take();
            if due.is_empty() {
                continue;
            }
            let outcome = upload::upload(link, scheme, &due).await;
            if outcome.as_ref().is_err_and(upload::Undelivered::is_certain) {
                self.accounts.give_back(&due);
            }
            match &outcome {
                Ok(()) if self.failing => tracing::info!("the panel takes reports of traffic again"),
                Err(error) if !self.failing => tracing::warn!("a report of traffic: {error}"),
                Ok(()) | Err(_) => {}
            }
            self.failing = outcome.is_err();
        }
    }
}
