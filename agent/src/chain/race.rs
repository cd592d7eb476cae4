//! Several ways at once: the first that is fully up wins, the others are closed.

use super::asking::Asking;
use super::blame::{Cause, ChainFailure, PathFailure};
use super::dial::{Budget, Patience, Up, through};
use super::search::{Entrant, Search};
use crate::net::Interface;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use shared::address::HostPort;
use std::io;
use tokio::sync::watch;

/// Ways that are tried at once for one client; another begins when one of them fails.
pub(crate) const AT_ONCE: usize = 8;

/// Tries `first` and all others of its tier; the next tier is for when they have failed. `None`: they have.
pub(super) async fn race<'a>(
    search: &mut Search<'a>,
    first: Entrant<'a>,
    (target, interface): (&HostPort, Option<&Interface>),
    asking: &mut Asking<'_>,
    budget: &Budget,
) -> Result<Option<(Entrant<'a>, Up)>, ChainFailure> {
    let tier = first.tier(search.chain());
    let (told, spoken) = watch::channel(false);
    let mut running = FuturesUnordered::new();
    let mut waiting = vec![first];
    let mut others = true;
    loop {
        waiting.iter().for_each(|entrant| search.walk.hold(&entrant.indices));
        while others && running.len() + waiting.len() < AT_ONCE {
            let next = search.next().filter(|entrant| entrant.tier(search.chain()) == tier);
            others = next.is_some();
            waiting.extend(next.inspect(|entrant| search.walk.hold(&entrant.indices)));
        }
        for entrant in waiting.drain(..) {
            // Nobody stands in another's way, so all have the time there is, unless somebody waits for a place.
            let patience = if others { Patience::Stage } else { Patience::All };
            let mut racer = asking.racer(&spoken);
            running.push(async move {
                let up = through(&entrant.nodes, interface, target, &mut racer, (budget, patience)).await;
                (entrant, up)
            });
        }
        match next_finished(&mut running, asking, &told).await {
            Err(_) => return Err(ChainFailure::ClientGone),
            Ok(None) => return Ok(None),
            Ok(Some((entrant, Ok(up)))) => return Ok(Some((entrant, up))),
            Ok(Some((_, Err(PathFailure { cause: Cause::ClientGone, .. })))) => {
                return Err(ChainFailure::ClientGone);
            }
            Ok(Some((entrant, Err(failure)))) => {
                search.walk.release(&entrant.indices);
                search.failed(entrant, failure);
                others = true;
            }
        }
    }
}

/// The result of the first that finishes; `None` when none is left. Tells them meanwhile that the client has spoken. An
/// error means that it is gone.
pub(crate) async fn next_finished<F: Future>(
    running: &mut FuturesUnordered<F>,
    asking: &mut Asking<'_>,
    told: &watch::Sender<bool>,
) -> io::Result<Option<F::Output>> {
    loop {
        let silent = !*told.borrow();
        tokio::select! {
            biased;
            finished = running.next() => return Ok(finished),
            spoken = asking.has_spoken(), if silent => {
                spoken?;
                told.send_replace(true);
            }
        }
    }
}
