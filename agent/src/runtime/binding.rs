//! Listeners: who gets an address, who makes room for it, and trying again where one could not be had.

use super::ApplyError;
use super::entry::{Built, Entry, Plan, Socket, State, listen_error};
use super::owner::Owner;
use crate::service::plane::Plane;
use shared::gost::ServiceConfig;
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

impl Owner {
    /// Binds the addresses that are new. Services of the names `gone` make room if they are in the way, as those do that
    /// move. `closed` receives the ones whose listeners had to.
    pub(super) async fn bind(
        &mut self,
        plans: &mut [Plan],
        gone: &BTreeSet<String>,
        closed: &mut Vec<(String, SocketAddr)>,
    ) -> Result<(), ApplyError> {
        for at in 0..plans.len() {
            let plan = &plans[at];
            let kept = self.services.get(&plan.config.name).is_some_and(|entry| {
                entry.listening().is_some() && entry.built().is_some_and(|built| built.listens_as(plan))
            });
            if plan.paused || kept {
                continue;
            }
            let listener = match plan.service.bind(&plan.address).await {
                // The port may be held by a service that gives it up in this very change: `0.0.0.0:1` for
                // `192.0.2.1:1`, or two services that change places.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    let leaving = self.leaving(plans, gone, plan);
                    if leaving.is_empty() {
                        return Err(listen_error(&plan.config, error));
                    }
                    for (name, local) in leaving {
                        if let Some(entry) = self.services.get_mut(&name) {
                            entry.close(Socket::Closed).await;
                            closed.push((name, local));
                        }
                    }
                    plans[at].service.bind(&plans[at].address).await
                }
                outcome => outcome,
            };
            let listener = listener.map_err(|error| listen_error(&plans[at].config, error))?;
            plans[at].listener = Some(listener);
        }
        Ok(())
    }

    /// The services that listen on the port of `comer` and will not, once the plans are carried out; with where they
    /// listen now.
    fn leaving(&self, plans: &[Plan], gone: &BTreeSet<String>, comer: &Plan) -> Vec<(String, SocketAddr)> {
        let leaves = |name: &String, plan: Option<&Plan>| {
            let entry = self.services.get(name)?;
            let (local, built) = (entry.listening()?.local, entry.built()?);
            let in_the_way = local.port() == comer.address.port()
                && built.service.load().takes_datagrams() == comer.service.takes_datagrams();
            let moves = plan.is_none_or(|plan| plan.paused || !built.listens_as(plan));
            (in_the_way && moves).then(|| (name.clone(), local))
        };
        let moving = plans.iter().filter_map(|plan| leaves(&plan.config.name, Some(plan)));
        moving.chain(gone.iter().filter_map(|name| leaves(name, None))).collect()
    }

    /// Puts listeners back, where they were, that made room for a change which then failed.
    pub(super) async fn reopen(&mut self, closed: Vec<(String, SocketAddr)>) {
        for (name, local) in closed {
            let Some(Entry { config, state: State::Built(built) }) = self.services.get_mut(&name) else {
                continue;
            };
            let bound = built.service.load().bind_at(local);
            let opened = bound.and_then(|listener| built.open(listener, &self.plane));
            if opened.is_err() {
                listen(config, built, &self.plane).await;
            }
        }
    }

    /// Tries those once more whose time has come.
    pub(super) async fn listen_again(&mut self) {
        let now = self.plane.options.clock.instant();
        for Entry { config, state } in self.services.values_mut() {
            if let State::Built(built) = state
                && built.due().is_some_and(|due| due <= now)
            {
                listen(config, built, &self.plane).await;
            }
        }
    }
}

/// Tries to listen; if that fails, it is tried again later.
pub(super) async fn listen(config: &ServiceConfig, built: &mut Built, plane: &Arc<Plane>) {
    let service = built.service.load_full();
    let opened = match service.bind(&built.address).await {
        Ok(listener) => built.open(listener, plane).map(|_| ()),
        Err(error) => Err(error),
    };
    match opened {
        Ok(()) => tracing::info!(service = config.name, addr = config.addr, "listening"),
        Err(error) => {
            tracing::warn!(service = config.name, addr = config.addr, %error, "not listening, will try again");
            built.wait(&error, &config.addr, plane);
        }
    }
}
