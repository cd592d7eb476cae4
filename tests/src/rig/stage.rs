//! The whole system in a lab: a panel, nodes with their agents, a target, and users.

use super::agent::{Agent, AgentOptions};
use super::api::Api;
use super::eventually::eventually;
use super::panel::{Panel, PanelOptions};
use super::place::Place;
use super::target::Target;
use crate::netlab::{Host, Impairment, Lab, LabError};
use anyhow::{Context as _, Result, bail, ensure};
use shared::api::{
    DeploymentStatus, EntryGroup, EntryNode, Forward, ForwardInput, Group, GroupNode, NodeDeployment,
    NodeInput, SettingsInput, Tunnel, TunnelInput, TunnelType,
};
use shared::ids::{ForwardId, NodeId, TunnelId};
use shared::strategy::{Protocol, Strategy};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// One way between the panel and a node.
const PANEL_DELAY: Duration = Duration::from_micros(500);
/// For agents to connect and for configuration to be applied, in debug builds on a busy machine.
const SETTLE: Duration = Duration::from_secs(60);

/// What is on the stage.
#[derive(Clone, Debug)]
pub struct StageOptions {
    /// Name of the lab.
    pub name: String,
    /// Names of the nodes that users connect to.
    pub entries: Vec<String>,
    /// Names of the nodes in between.
    pub mids: Vec<String>,
    /// Names of the exits.
    pub exits: Vec<String>,
    /// On top of the panel's defaults and the probe target.
    pub settings: SettingsInput,
    /// How the panel is started.
    pub panel: PanelOptions,
    /// What agents log; empty = their default.
    pub agent_log: String,
}

impl StageOptions {
    /// One entry, one middle node, three exits.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            name: name.to_owned(),
            entries: names(&["entry-1"]),
            mids: names(&["mid-1"]),
            exits: names(&["exit-a", "exit-b", "exit-c"]),
            settings: SettingsInput::default(),
            panel: PanelOptions::default(),
            agent_log: String::new(),
        }
    }
}

/// Everything that runs. Fields are dropped in this order: programs before the network they are in.
#[derive(Debug)]
pub struct Stage {
    /// By node name.
    pub agents: BTreeMap<String, Agent>,
    /// The panel.
    pub panel: Panel,
    /// Its API.
    pub api: Api,
    /// Ids by node name.
    pub nodes: BTreeMap<String, NodeId>,
    /// The end of the tunnels.
    pub target: Target,
    /// Names of the exits.
    pub exits: Vec<String>,
    /// The network.
    pub lab: Lab,
}

impl Stage {
    /// Builds the network, starts everything and waits until every agent is connected.
    ///
    /// # Errors
    /// [`LabError::Unavailable`] somewhere in the chain where there can be no lab; everything else is a failure.
    pub async fn start(options: StageOptions) -> Result<Self> {
        let lab = Lab::new(&options.name)?;
        let panel_host = lab.host("panel")?;
        let names: Vec<&String> = options.entries.iter().chain(&options.mids).chain(&options.exits).collect();
        let mut hosts: BTreeMap<IpAddr, String> = BTreeMap::new();
        for name in &names {
            let host = lab.host(name)?;
            hosts.insert(host.ip().into(), (*name).clone());
            lab.link(&panel_host, &host).set_both(Impairment::delay(PANEL_DELAY))?;
        }
        let client = lab.host("client")?;
        hosts.insert(client.ip().into(), "client".to_owned());
        let target = Target::start(lab.host("target")?, hosts)?;

        let panel = Panel::start(&panel_host, options.panel.clone()).await?;
        let api = panel.api().await?;
        let settings =
            SettingsInput { probe_target: Some(target.probe().to_string()), ..options.settings.clone() };
        api.put_settings(&settings).await?;
        let mut stage = Self {
            agents: BTreeMap::new(),
            panel,
            api,
            nodes: BTreeMap::new(),
            target,
            exits: options.exits.clone(),
            lab,
        };
        for name in names {
            stage.add_node(name, &options.agent_log).await?;
        }
        stage.all_online().await?;
        Ok(stage)
    }

    /// Makes a node on the host of its name and starts its agent.
    ///
    /// # Errors
    /// What the panel says; when the agent cannot be started.
    pub async fn add_node(&mut self, name: &str, log: &str) -> Result<()> {
        let host = self.lab.host(name)?;
        let node =
            NodeInput { name: name.to_owned(), server_ip: host.ip().to_string(), ..NodeInput::default() };
        let node = self.api.create_node(&node).await?;
        let secret = node.secret.context("the answer to a new node has its secret")?;
        let options =
            AgentOptions { name: name.to_owned(), panel: self.panel.address(), secret, log: log.to_owned() };
        self.agents.insert(name.to_owned(), Agent::start(&host, options)?);
        self.nodes.insert(name.to_owned(), node.id);
        Ok(())
    }

    /// Waits until the panel says that every node is online.
    ///
    /// # Errors
    /// When it does not; says who is missing.
    pub async fn all_online(&self) -> Result<()> {
        eventually("every agent is connected", SETTLE, async || {
            let nodes = self.api.nodes().await?;
            let away: Vec<&str> = nodes.iter().filter(|n| !n.online).map(|n| n.name.as_str()).collect();
            ensure!(away.is_empty(), "{away:?} are not");
            Ok(())
        })
        .await
    }

    /// The host of this name.
    ///
    /// # Errors
    /// The lab's.
    pub fn host(&self, name: &str) -> Result<Host, LabError> {
        self.lab.host(name)
    }

    /// Where users are.
    ///
    /// # Errors
    /// The lab's.
    pub fn client(&self) -> Result<Place, LabError> {
        Ok(self.lab.host("client")?.into())
    }

    /// The id of a node.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn node(&self, name: &str) -> Result<NodeId> {
        self.nodes.get(name).copied().with_context(|| format!("no node {name}"))
    }

    /// The name of a node; for messages, so an unknown id is its number.
    #[must_use]
    pub fn name(&self, id: NodeId) -> String {
        let found = self.nodes.iter().find(|(_, node)| **node == id);
        found.map_or_else(|| format!("node {id}"), |(name, _)| name.clone())
    }

    /// The agent of a node.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn agent(&mut self, name: &str) -> Result<&mut Agent> {
        self.agents.get_mut(name).with_context(|| format!("no agent {name}"))
    }

    /// What a tunnel with the strategy `best` over these exits is, in this order.
    ///
    /// # Errors
    /// When a name is unknown.
    pub fn best(&self, name: &str, entries: &[&str], mids: &[&str], exits: &[&str]) -> Result<TunnelInput> {
        let group = |names: &[&str], strategy| {
            let nodes = names
                .iter()
                .map(|name| Ok(GroupNode { node_id: self.node(name)?, port: None, connect_ip: None }));
            let nodes = nodes.collect::<Result<Vec<_>>>()?;
            Ok::<_, anyhow::Error>(Group { strategy, protocol: Protocol::Tls, nodes, ..Group::default() })
        };
        let entries = entries.iter().map(|name| Ok(EntryNode { node_id: self.node(name)? }));
        let hops = if mids.is_empty() { Vec::new() } else { vec![group(mids, Strategy::Round)?] };
        Ok(TunnelInput {
            name: name.to_owned(),
            kind: TunnelType::Tunnel,
            enabled: true,
            entry: EntryGroup { nodes: entries.collect::<Result<_>>()? },
            hops,
            exit: Some(group(exits, Strategy::Best)?),
            ..TunnelInput::default()
        })
    }

    /// Makes a tunnel with one forward to the target, and waits until the nodes run both. Returns where users
    /// connect: one address per entry.
    ///
    /// # Errors
    /// What the panel says; when a node does not get there.
    pub async fn open(&self, tunnel: &TunnelInput) -> Result<(Tunnel, Forward, Vec<SocketAddr>)> {
        let entries: Vec<NodeId> = tunnel.entry.nodes.iter().map(|node| node.node_id).collect();
        let tunnel = self.api.create_tunnel(tunnel).await?;
        let forward = self.api.create_forward(&self.forward(&tunnel)).await?;
        self.deployed(tunnel.id).await?;
        let forward = self.forward_deployed(forward.id).await?;
        let addresses = entries.iter().map(|id| {
            let name = self.name(*id);
            Ok(self.lab.host(&name)?.addr(forward.listen_port))
        });
        let addresses = addresses.collect::<Result<_>>()?;
        Ok((tunnel, forward, addresses))
    }

    /// What a forward through a tunnel to the target is.
    #[must_use]
    pub fn forward(&self, tunnel: &Tunnel) -> ForwardInput {
        ForwardInput {
            version: None,
            tunnel_id: tunnel.id,
            name: format!("{}-web", tunnel.name),
            listen_port: 0,
            listen_ip: None,
            targets: vec![self.target.service().to_string()],
            strategy: Strategy::Fifo,
            enabled: true,
            id: None,
            addresses: None,
            deployment: None,
        }
    }

    /// Waits until every node runs what this tunnel needs of it.
    ///
    /// # Errors
    /// When one does not.
    pub async fn deployed(&self, id: TunnelId) -> Result<Tunnel> {
        eventually("the tunnel is applied everywhere", SETTLE, async || {
            let tunnel = self.api.tunnel(id).await?;
            all_applied(&tunnel.deployment)?;
            Ok(tunnel)
        })
        .await
    }

    /// Waits until every entry runs this forward.
    ///
    /// # Errors
    /// When one does not.
    pub async fn forward_deployed(&self, id: ForwardId) -> Result<Forward> {
        eventually("the forward is applied everywhere", SETTLE, async || {
            let forward = self.api.forward(id).await?;
            all_applied(&forward.deployment)?;
            Ok(forward)
        })
        .await
    }

    /// Waits until the only owner of a tunnel has this exit in front.
    ///
    /// # Errors
    /// When it has not within `limit`.
    pub async fn switched(&self, id: TunnelId, exit: &str, limit: Duration) -> Result<()> {
        let wanted = self.node(exit)?;
        eventually(&format!("{exit} is in front"), limit, async || {
            let decision = self.api.decision(id).await?;
            if decision.applied_order.first() == Some(&wanted) {
                return Ok(());
            }
            bail!("{}", decision.reason.describe(&|id| self.name(id)))
        })
        .await
    }

    /// The ends of all logs, for whoever looks at a failure.
    #[must_use]
    pub fn logs(&self, lines: usize) -> String {
        let mut text = format!("---- panel ----\n{}", self.panel.log().tail(lines));
        for (name, agent) in &self.agents {
            text += &format!("---- {name} ----\n{}", agent.log().tail(lines));
        }
        text
    }

    /// Takes everything down.
    pub async fn close(self) {
        let Self { agents, panel, target, lab, .. } = self;
        drop((agents, panel, target));
        lab.close().await;
    }
}

fn all_applied(deployment: &[NodeDeployment]) -> Result<()> {
    ensure!(!deployment.is_empty(), "no node has anything to do");
    let waiting: Vec<&NodeDeployment> =
        deployment.iter().filter(|d| d.status != DeploymentStatus::Applied).collect();
    ensure!(waiting.is_empty(), "{waiting:?}");
    Ok(())
}
