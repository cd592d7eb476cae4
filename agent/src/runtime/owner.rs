//! The one task that changes what runs. Changes come one after another; readers see snapshots.

use super::entry::{Built, Entry, Plan, Socket, State};
use super::places::{Named, Places};
use super::{ApplyError, Change, View};
use crate::chain::Chain;
use crate::chain::group::groups::Deciders;
use crate::chain::probe::tasks::{ProbeTasks, warnings};
use crate::limit::LimitKind;
use crate::metadata::ConfigError;
use crate::net::ListenAddress;
use crate::service::Service;
use crate::service::build::{is_paused, set_paused};
use crate::service::plane::Plane;
use arc_swap::ArcSwap;
use shared::gost::{ChainConfig, GostConfig, ServiceConfig};
use shared::link::{chain_key, service_key};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// A change and who wants to know how it went.
pub(super) struct Order {
    pub(super) change: Change,
    pub(super) answer: oneshot::Sender<Result<(), ApplyError>>,
}

/// Owns everything that is configured.
pub(super) struct Owner {
    pub(super) plane: Arc<Plane>,
    view: Arc<ArcSwap<View>>,
    pub(super) services: BTreeMap<String, Entry>,
    /// Chains loaded at start and not understood, with the reason; kept, since another version may understand them. The
    /// others are in the registry.
    pub(super) invalid_chains: BTreeMap<String, (ChainConfig, String)>,
    pub(super) probes: ProbeTasks,
    pub(super) deciders: Deciders,
    /// In which order it was configured.
    places: Places,
}

impl Owner {
    pub(super) fn new(plane: Arc<Plane>, view: Arc<ArcSwap<View>>) -> Self {
        Self {
            plane,
            view,
            services: BTreeMap::new(),
            invalid_chains: BTreeMap::new(),
            probes: ProbeTasks::default(),
            deciders: Deciders::default(),
            places: Places::default(),
        }
    }

    /// Works until the runtime is shut down or forgotten.
    pub(super) async fn run(mut self, mut orders: mpsc::Receiver<Order>) {
        let stop = self.plane.stop.clone();
        loop {
            let due = self.services.values().filter_map(|entry| entry.built()?.due()).min();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                order = orders.recv() => {
                    let Some(Order { change, answer }) = order else { break };
                    let named = Named::of(&change);
                    let outcome = self.apply(change).await;
                    if outcome.is_ok() {
                        self.follow_places(named);
                    }
                    self.publish();
                    // Whoever asked may have stopped waiting; the change holds all the same.
                    let _ = answer.send(outcome);
                }
                () = until(due) => {
                    self.listen_again().await;
                    self.publish();
                }
            }
        }
        stop.cancel();
    }

    fn follow_places(&mut self, named: Named) {
        let (registry, invalid, services) = (&self.plane.registry, &self.invalid_chains, &self.services);
        let has_chain = |name: &str| registry.get(name).is_some() || invalid.contains_key(name);
        self.places.follow(named, (has_chain, |name: &str| services.contains_key(name)));
    }

    async fn apply(&mut self, change: Change) -> Result<(), ApplyError> {
        match change {
            Change::AddServices(configs) => {
                if let Some(config) = configs.iter().find(|config| self.services.contains_key(&config.name)) {
                    return Err(ApplyError::ServiceExists(config.name.clone()));
                }
                self.upsert_services(configs).await
            }
            Change::UpsertServices(configs) => self.upsert_services(configs).await,
            Change::DeleteServices(names) => {
                for name in names {
                    if let Some(mut entry) = self.services.remove(&name) {
                        entry.close(Socket::Closed).await;
                    }
                    self.unfollow(&service_key(&name));
                }
                Ok(())
            }
            Change::PauseServices(names) => self.pause(&names).await,
            Change::ResumeServices(names) => self.resume(&names).await,
            Change::AddChain(config) => {
                let name = &config.name;
                if self.plane.registry.get(name).is_some() || self.invalid_chains.contains_key(name) {
                    return Err(ApplyError::ChainExists(name.clone()));
                }
                self.upsert_chain(&config)
            }
            Change::UpsertChain(config) => self.upsert_chain(&config),
            Change::DeleteChain(name) => {
                self.plane.registry.remove(&name);
                self.invalid_chains.remove(&name);
                self.unfollow(&chain_key(&name));
                Ok(())
            }
            Change::AddLimiter(kind, config) => {
                if self.plane.limits.has(kind, &config.name) {
                    return Err(ApplyError::LimiterExists(config.name));
                }
                Ok(self.plane.limits.put(kind, config)?)
            }
            Change::UpsertLimiter(kind, config) => Ok(self.plane.limits.put(kind, config)?),
            Change::DeleteLimiter(kind, name) => {
                self.plane.limits.remove(kind, &name);
                for built in self.services.values().filter_map(Entry::built) {
                    let service = built.service.load();
                    if service.names_limiter(kind, &name) {
                        service.warn_of_missing_limiters(&self.plane);
                    }
                }
                Ok(())
            }
            Change::Replace(config) => self.replace(config).await,
            Change::Load(config) => {
                self.load(config).await;
                Ok(())
            }
        }
    }

    pub(super) fn upsert_chain(&mut self, config: &ChainConfig) -> Result<(), ApplyError> {
        let registry = &self.plane.registry;
        let previous = registry.get(&config.name);
        if previous.as_ref().is_none_or(|chain| chain.config != *config) {
            let chain = Chain::build(config, previous.as_deref())?;
            if !self.plane.options.allow_commands {
                Chain::refuse_commands(config)?;
            }
            let probed = chain.probed();
            warnings(&probed).for_each(|warning| tracing::warn!("chain {warning}"));
            let begun = self.deciders.follow(&chain_key(&config.name), chain.steered(), &self.plane);
            registry.put(chain);
            self.deciders.start(begun, &self.plane);
            self.probes.follow(&chain_key(&config.name), probed, &self.plane);
            self.invalid_chains.remove(&config.name);
        }
        Ok(())
    }

    /// What is part of this object is neither probed nor decided for any more.
    pub(super) fn unfollow(&mut self, object: &str) {
        self.probes.follow(object, Vec::new(), &self.plane);
        self.deciders.end(object, &self.plane);
    }

    /// Everything is built, then everything is bound, and only then anything changes.
    async fn upsert_services(&mut self, configs: Vec<ServiceConfig>) -> Result<(), ApplyError> {
        let mut plans = self.plan(configs)?;
        let mut closed = Vec::new();
        if let Err(error) = self.bind(&mut plans, &BTreeSet::new(), &mut closed).await {
            // With the listeners that it bound already, which may stand where another is to return.
            drop(plans);
            self.reopen(closed).await;
            return Err(error);
        }
        for plan in plans {
            self.commit(plan).await;
        }
        Ok(())
    }

    /// Builds what differs from what runs.
    pub(super) fn plan(&self, configs: Vec<ServiceConfig>) -> Result<Vec<Plan>, ApplyError> {
        let mut names = BTreeSet::new();
        let mut plans = Vec::with_capacity(configs.len());
        for config in configs {
            let path = format!("service {}", config.name);
            if !names.insert(config.name.clone()) {
                return Err(ConfigError::new(path, "is there twice").into());
            }
            let entry = self.services.get(&config.name);
            let previous = entry.and_then(Entry::built).map(|built| built.service.load_full());
            let service = Service::build(&config, previous.as_deref())?;
            if !self.plane.options.allow_commands {
                Service::refuse_commands(&config)?;
            }
            let address = ListenAddress::parse(&config.addr)
                .map_err(|reason| ConfigError::new(format!("{path}: addr"), reason))?;
            let unchanged = entry.is_some_and(|entry| entry.config == config && entry.failure().is_none());
            if !unchanged {
                let paused = is_paused(&config);
                plans.push(Plan { config, service, address, paused, listener: None });
            }
        }
        Ok(plans)
    }

    /// Carries a plan out; nothing in it can fail any more, but for a port that vanishes at this moment.
    pub(super) async fn commit(&mut self, plan: Plan) {
        let Plan { config, service, address, paused, listener } = plan;
        let plane = &self.plane;
        let probed = if paused { Vec::new() } else { service.probed() };
        for warning in warnings(&probed) {
            tracing::warn!("service {warning}");
        }
        service.warn(plane);
        self.probes.follow(&service_key(&config.name), probed, plane);
        let steered = if paused { Vec::new() } else { service.steered() };
        let begun = self.deciders.follow(&service_key(&config.name), steered, plane);
        self.deciders.start(begun, plane);
        let mut entry = match self.services.remove(&config.name) {
            Some(Entry { state: State::Built(mut built), .. }) => {
                built.service.store(Arc::new(service));
                built.address = address;
                Entry { config, state: State::Built(built) }
            }
            Some(Entry { state: State::Invalid(_), .. }) | None => {
                Entry { config, state: State::Built(Built::new(service, address, plane)) }
            }
        };
        if paused {
            entry.close(Socket::Paused).await;
            entry.cut_connections(plane);
        } else if let (Some(listener), State::Built(built)) = (listener, &mut entry.state) {
            match built.open(listener, plane) {
                Ok(None) => {}
                Ok(Some(before)) => before.close().await,
                Err(error) => built.wait(&error, &entry.config.addr, plane),
            }
        }
        self.services.insert(entry.config.name.clone(), entry);
    }

    fn check_names(&self, names: &[String]) -> Result<(), ApplyError> {
        match names.iter().find(|name| !self.services.contains_key(*name)) {
            Some(name) => Err(ApplyError::ServiceNotFound(name.clone())),
            None => Ok(()),
        }
    }

    async fn pause(&mut self, names: &[String]) -> Result<(), ApplyError> {
        self.check_names(names)?;
        for name in names {
            if let Some(entry) = self.services.get_mut(name) {
                set_paused(&mut entry.config, true);
                entry.close(Socket::Paused).await;
                entry.cut_connections(&self.plane);
                let object = service_key(name);
                self.probes.follow(&object, Vec::new(), &self.plane);
                self.deciders.end(&object, &self.plane);
            }
        }
        Ok(())
    }

    /// The same way as an update to the unpaused configuration.
    async fn resume(&mut self, names: &[String]) -> Result<(), ApplyError> {
        self.check_names(names)?;
        let wanted: BTreeSet<_> = names.iter().collect();
        let configs = wanted.into_iter().filter_map(|name| self.services.get(name)).map(|entry| {
            let mut config = entry.config.clone();
            set_paused(&mut config, false);
            config
        });
        self.upsert_services(configs.collect()).await
    }

    /// Lets everybody see what there is now.
    fn publish(&self) {
        let registry = self.plane.registry.all();
        let valid = registry.iter().map(|(name, chain)| (name, &chain.config));
        let invalid = self.invalid_chains.iter().map(|(name, (config, _))| (name, config));
        let chains: BTreeMap<_, _> = valid.chain(invalid).collect();
        let mut failed = BTreeMap::new();
        for (name, (_, reason)) in &self.invalid_chains {
            failed.insert(chain_key(name), reason.clone());
        }
        let (mut listening, mut services) = (BTreeMap::new(), BTreeMap::new());
        for (name, entry) in &self.services {
            failed.extend(entry.failure().map(|reason| (service_key(name), reason.to_owned())));
            services.extend(entry.built().map(|built| (name.clone(), built.service.load_full())));
            listening.extend(entry.listening().map(|open| (name.clone(), open.local)));
        }
        let config = GostConfig {
            services: self.services.values().map(|entry| entry.config.clone()).collect(),
            chains: chains.into_values().cloned().collect(),
            hops: Vec::new(),
            limiters: self.plane.limits.configs(LimitKind::Traffic),
            climiters: self.plane.limits.configs(LimitKind::Connections),
            rlimiters: self.plane.limits.configs(LimitKind::Rate),
        };
        let places = self.places.clone();
        self.view.store(Arc::new(View { config, failed, listening, services, places }));
    }
}

/// Ends at `due`; never, if nothing is due.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
