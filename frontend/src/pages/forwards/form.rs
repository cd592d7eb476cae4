use super::list::Tunnels;
use crate::api::client;
use crate::api::live::use_live;
use crate::i18n::{common, editor, errors, forwards as words, lang, lang_now, strategy as say, t};
use crate::pages::editor::capability;
use crate::pages::editor::strategy::{StrategyText, offered};
use crate::pages::names::{Names, use_names};
use crate::pages::question::closes;
use crate::pages::sending::{FormFoot, KeepMine, Request, Sending};
use crate::reactive::{RwSignal, Signal, StoredValue, part};
use crate::ui::field::said;
use crate::ui::{Checked, Choice, Dialog, FieldErrors, SelectField, TextArea, TextField, toast};
use leptos::prelude::*;
use shared::api::{Forward, ForwardInput, Tunnel};
use shared::field::FieldError;
use shared::ids::{NodeId, TunnelId};
use shared::strategy::{Place, Strategy};
use shared::testid;
use shared::topology::{KnownNode, validate_forward};
use std::sync::Arc;

/// The form is open: for a new forward or for one that is there.
#[derive(Clone, PartialEq)]
pub enum Editing {
    /// A new forward.
    New,
    /// This one.
    Existing(Arc<Forward>),
}

/// The form for a forward.
#[component]
pub fn ForwardDialog(asked: RwSignal<Option<Editing>>, tunnels: Tunnels) -> AnyView {
    let open = closes(asked);
    let title = Signal::derive(move || {
        let new = asked.with(|edit| matches!(edit, Some(Editing::New)));
        t(if new { words::NEW } else { words::EDIT_TITLE })().to_owned()
    });
    view! {
        <Dialog open title>
            {part(move || asked.get().map(|editing| view! { <ForwardForm editing tunnels open /> }))}
        </Dialog>
    }
    .into_any()
}

#[derive(Clone, Copy)]
struct Typed {
    version: RwSignal<Option<i64>>,
    tunnel: RwSignal<Option<TunnelId>>,
    name: RwSignal<String>,
    listen_port: RwSignal<String>,
    listen_ip: RwSignal<String>,
    targets: RwSignal<String>,
    strategy: RwSignal<Strategy>,
    enabled: bool,
}

impl Typed {
    fn new(forward: Option<&Forward>, tunnels: Tunnels) -> Self {
        // Where there is one tunnel, there is nothing to choose.
        let only = tunnels.with_untracked(|all| all.keys().next().copied().filter(|_| all.len() == 1));
        Self {
            version: RwSignal::new(forward.map(|f| f.version)),
            tunnel: RwSignal::new(forward.map(|f| f.tunnel_id).or(only)),
            name: RwSignal::new(forward.map(|f| f.name.clone()).unwrap_or_default()),
            listen_port: RwSignal::new(forward.map_or(0, |f| f.listen_port).to_string()),
            listen_ip: RwSignal::new(forward.and_then(|f| f.listen_ip.clone()).unwrap_or_default()),
            targets: RwSignal::new(forward.map(|f| f.targets.join("\n")).unwrap_or_default()),
            strategy: RwSignal::new(forward.map_or(Strategy::Fifo, |f| f.strategy.clone())),
            enabled: forward.is_none_or(|f| f.enabled),
        }
    }

    fn input(self) -> (ForwardInput, Vec<FieldError>) {
        let mut wrong = Vec::new();
        let port = self.listen_port.get();
        let listen_port = match port.trim() {
            "" => 0,
            text => text.parse().unwrap_or_else(|_| {
                let message = "the port must be a number from 1 to 65535";
                wrong.push(FieldError::new("listenPort", "port_invalid", message));
                0
            }),
        };
        let listen_ip = self.listen_ip.get().trim().to_owned();
        let input = ForwardInput {
            version: self.version.get(),
            tunnel_id: self.tunnel.get().unwrap_or(TunnelId(0)),
            name: self.name.get().trim().to_owned(),
            listen_port,
            listen_ip: (!listen_ip.is_empty()).then_some(listen_ip),
            targets: target_list(&self.targets.get()),
            strategy: self.strategy.get(),
            enabled: self.enabled,
            id: None,
            addresses: None,
            deployment: None,
        };
        (input, wrong)
    }
}

/// One target per line; commas do as well, because people paste lists.
fn target_list(text: &str) -> Vec<String> {
    text.split(['\n', ',']).map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// The nodes whose agents dial the targets as the strategy says: the entries of the tunnel.
fn holders(typed: Typed, tunnels: Tunnels) -> Vec<NodeId> {
    let Some(tunnel) = typed.tunnel.get() else { return Vec::new() };
    let entries = |tunnel: &Arc<Tunnel>| tunnel.entry.nodes.iter().map(|node| node.node_id).collect();
    tunnels.with(|all| all.get(&tunnel).map(entries)).unwrap_or_default()
}

fn check(typed: Typed, tunnels: Tunnels, names: Names) -> Checked {
    let (input, mut wrong) = typed.input();
    let entries: Option<Vec<KnownNode>> =
        tunnels.with(|all| all.get(&input.tunnel_id).cloned()).map(|tunnel| {
            let nodes = tunnel.entry.nodes.iter().filter_map(|node| names.node(node.node_id));
            nodes
                .map(|node| KnownNode {
                    name: node.name.clone(),
                    port_range: node.port_range.clone(),
                    capabilities: node.capabilities.clone(),
                    seen: node.last_seen.is_some(),
                    ..KnownNode::default()
                })
                .collect()
        });
    let mut found = validate_forward(&input, entries.as_deref()).errors;
    if typed.tunnel.get().is_none() {
        found.retain(|error| error.field != "tunnelId");
        found.push(FieldError::new("tunnelId", "tunnel_missing", "choose a tunnel"));
    }
    wrong.extend(found);
    Checked { json: serde_json::to_value(&input).unwrap_or_default(), errors: wrong }
}

#[component]
fn ForwardForm(editing: Editing, tunnels: Tunnels, open: RwSignal<bool>) -> AnyView {
    let live = use_live();
    let names = use_names();
    let existing = match &editing {
        Editing::New => None,
        Editing::Existing(forward) => Some(forward.as_ref()),
    };
    let id = existing.map(|forward| forward.id);
    let typed = Typed::new(existing, tunnels);
    let sending = Sending::new(FieldErrors::new(move || check(typed, tunnels, names)));
    let submit = sending.on_submit(move || {
        let (input, _) = typed.input();
        Box::pin(async move {
            let forward = match id {
                Some(id) => client::update_forward(id, &input).await?,
                None => client::create_forward(&input).await?,
            };
            toast::good(words::SAVED.with(lang_now(), &[("name", &forward.name)]));
            live.forwards.refresh();
            let _ = open.try_set(false);
            Ok(())
        })
    });
    let stored = move || -> Request<Option<i64>> {
        Box::pin(async move {
            let forwards = client::forwards().await?;
            Ok(forwards.iter().find(|forward| Some(forward.id) == id).map(|forward| forward.version))
        })
    };
    let action = if id.is_some() { common::SAVE } else { common::CREATE };
    view! {
        <form class="form" on:submit=submit novalidate>
            <Fields typed tunnels wrong=sending.wrong />
            <KeepMine sending version=typed.version fetch=Box::new(stored) />
            <FormFoot sending open action testid=testid::FORWARD_SAVE />
        </form>
    }
    .into_any()
}

#[component]
fn Fields(typed: Typed, tunnels: Tunnels, wrong: FieldErrors) -> AnyView {
    let names = use_names();
    let id = |field: &str| testid::with(testid::FORWARD_FIELD, field);
    let tunnel_choices = Signal::derive(move || {
        let first = Choice { possible: false, ..Choice::new("", words::CHOOSE_TUNNEL.say(lang())) };
        let each = tunnels.with(|all| {
            all.values()
                .map(|tunnel| Choice::new(tunnel.id.to_string(), tunnel.name.clone()))
                .collect::<Vec<_>>()
        });
        std::iter::once(first).chain(each).collect::<Vec<_>>()
    });
    let tunnel = Signal::derive(move || typed.tunnel.get().map(|id| id.to_string()).unwrap_or_default());
    let all = StoredValue::new(typed.strategy.with_untracked(|value| offered(Place::Targets, value)));
    let strategies = Signal::derive(move || {
        let holders = holders(typed, tunnels);
        let choice = |strategy: &Strategy| {
            let label = say::label(strategy, lang());
            let missing = capability::strategy_missing(names, &holders, strategy);
            if missing.is_empty() {
                return Choice::new(strategy.kind(), label);
            }
            let why = editor::AGENT_CANNOT.with(lang(), &[("nodes", &missing.join(", "))]);
            Choice { possible: false, ..Choice::new(strategy.kind(), format!("{label} — {why}")) }
        };
        all.with_value(|all| all.iter().map(choice).collect::<Vec<_>>())
    });
    let strategy = Signal::derive(move || typed.strategy.with(|strategy| strategy.kind().to_owned()));
    let choose = move |kind: String| {
        let chosen = all.with_value(|all| all.iter().find(|strategy| strategy.kind() == kind).cloned());
        if let Some(chosen) = chosen {
            typed.strategy.set(chosen);
        }
    };
    // Errors of single targets are said at the list.
    let targets_error = Signal::derive(move || {
        let all = wrong.all();
        let said: Vec<String> = all
            .iter()
            .filter(|error| error.field == "targets" || error.field.starts_with("targets["))
            .map(|error| errors::field(error, lang()))
            .collect();
        (!said.is_empty()).then(|| said.join("; "))
    });
    view! {
        <TextField label=words::NAME value=typed.name field="name" error=wrong.of("name") autofocus=true testid=id("name") />
        <SelectField label=words::TUNNEL value=tunnel choices=tunnel_choices field="tunnelId" error=wrong.of("tunnelId")
            on_choose=Callback::new(move |value: String| typed.tunnel.set(value.parse().ok())) testid=id("tunnelId") />
        <div class="field-row">
            <TextField label=words::LISTEN_PORT value=typed.listen_port field="listenPort" mode="numeric"
                error=wrong.of("listenPort") hint=said(words::LISTEN_PORT_HINT) testid=id("listenPort") />
            <TextField label=words::LISTEN_IP value=typed.listen_ip field="listenIp" error=wrong.of("listenIp")
                hint=said(words::LISTEN_IP_HINT) testid=id("listenIp") />
        </div>
        <TextArea label=words::TARGETS value=typed.targets field="targets" error=targets_error
            hint=said(words::TARGETS_HINT) testid=id("targets") />
        <SelectField label=words::STRATEGY value=strategy choices=strategies field="strategy" error=wrong.of("strategy")
            on_choose=Callback::new(choose) testid=id("strategy") />
        <StrategyText value=typed.strategy testid=id("strategyText") />
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::target_list;

    #[test]
    fn targets_come_one_per_line_or_pasted_as_a_list() {
        assert_eq!(target_list(" a:1 \n\n[::1]:2, b:3"), ["a:1", "[::1]:2", "b:3"]);
        assert!(target_list(" \n ").is_empty());
    }
}
