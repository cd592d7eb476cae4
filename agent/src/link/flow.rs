//! What a compatible panel is told beside the websocket: what services have carried, of which it keeps accounts
//! (`POST /flow/upload`), and what is configured (`POST /flow/config`), so that it deletes what it has forgotten.
//!
//! The protocol gives a report of traffic no number by which the panel could know one that it has already. So one that
//! was sent and never answered is counted either twice or not at all; here it counts as taken, since users may be charged
//! for it. What certainly did not arrive, or was refused, is part of the next report.

mod accounts;
mod upload;

use super::Link;
use super::address::Scheme;
use accounts::Accounts;
use shared::link::{CONFIG_PATH, TRAFFIC_PATH};
use tokio::time::{MissedTickBehavior, interval, interval_at};
use upload::{Undelivered, upload};

/// The reports of a link, over all its connections.
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
        let timings = &link.options.timings;
        let mut traffic = interval(timings.traffic);
        let mut config = interval_at(link.options.clock.instant() + timings.first_config, timings.config);
        for ticks in [&mut traffic, &mut config] {
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        loop {
            let outcome = tokio::select! {
                _ = traffic.tick() => self.report_traffic(link, scheme).await,
                _ = config.tick() => Some(upload(link, scheme, CONFIG_PATH, &link.runtime.config()).await),
            };
            // Nothing was to be told.
            let Some(outcome) = outcome else { continue };
            match &outcome {
                Ok(()) if self.failing => tracing::info!("the panel takes reports again"),
                Err(error) if !self.failing => tracing::warn!("a report to the panel: {error}"),
                Ok(()) | Err(_) => {}
            }
            self.failing = outcome.is_err();
        }
    }

    /// `None` when nothing was carried since the last one.
    async fn report_traffic(&mut self, link: &Link, scheme: Scheme) -> Option<Result<(), Undelivered>> {
        self.accounts.open(link.runtime.traffics());
        // Booked before it is sent: cut off in the middle it may have arrived.
        let due = self.accounts.take();
        if due.is_empty() {
            return None;
        }
        let outcome = upload(link, scheme, TRAFFIC_PATH, &due).await;
        if outcome.as_ref().is_err_and(Undelivered::is_certain) {
            self.accounts.give_back(&due);
        }
        Some(outcome)
    }
}
