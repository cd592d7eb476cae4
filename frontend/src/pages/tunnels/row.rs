use super::list::Asked;
use super::state;
use crate::api::client;
use crate::api::session::may_write;
use crate::i18n::{common, errors, lang, lang_now, strategy, t, tunnels as words};
use crate::pages::diagnose::Subject;
use crate::pages::names::Names;
use crate::reactive::{Show, Signal, StoredValue, part, phrase};
use crate::ui::{Button, Chip, LinkButton, Look, Tone, dot, toast};
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::components::A;
use shared::api::{Group, NodeDeployment, Tunnel, TunnelType};
use shared::ids::NodeId;
use shared::strategy::Strategy;
use shared::testid;
use std::sync::Arc;

/// One tunnel of the list.
#[component]
pub fn TunnelRow(tunnel: Arc<Tunnel>, names: Names, asked: Asked) -> AnyView {
    let id = tunnel.id;
    let kind = match tunnel.kind {
        TunnelType::Port => words::TYPE_PORT,
        TunnelType::Tunnel => words::TYPE_TUNNEL,
    };
    let is_best = tunnel.exit.as_ref().is_some_and(|exit| exit.strategy == Strategy::Best);
    let href = if is_best { format!("/tunnels/{id}/monitor") } else { format!("/tunnels/{id}/edit") };
    let off = !tunnel.enabled;
    let path = path_of(&tunnel, names);
    let (changed, chosen) = (tunnel.clone(), tunnel.clone());
    let deployment = tunnel.deployment.clone();
    let enabled = tunnel.enabled;
    let name = tunnel.name.clone();
    view! {
        <li class="row" class:off=off data-testid=testid::with(testid::TUNNEL_ROW, id)>
            <div class="row-name">
                <A href=href attr:class="row-title">{name}</A>
                <span class="muted">{t(kind)}</span>
            </div>
            <div class="row-path">{path}</div>
            <div class="row-state">
                <BestChip tunnel=chosen />
                <Deployment id=testid::with(testid::TUNNEL_STATE, id) enabled deployment names />
            </div>
            <div class="row-actions">
                <Show when=move || is_best>
                    <LinkButton text=words::MONITOR href=format!("/tunnels/{id}/monitor") look=Look::Quiet
                        testid=testid::with(testid::TUNNEL_MONITOR, id) />
                </Show>
                <Changes tunnel=changed asked />
            </div>
        </li>
    }
    .into_any()
}

#[component]
fn Changes(tunnel: Arc<Tunnel>, asked: Asked) -> AnyView {
    let id = tunnel.id;
    let name = StoredValue::new(tunnel.name.clone());
    let tunnel = StoredValue::new(tunnel);
    let redeploy = move |()| {
        spawn_local(async move {
            match client::redeploy_tunnel(id).await {
                Ok(()) => {
                    let name = name.try_get_value().unwrap_or_default();
                    toast::good(words::REDEPLOYED.with(lang_now(), &[("name", &name)]));
                }
                Err(error) => toast::bad(errors::api(&error, lang_now())),
            }
        });
    };
    let diagnose = move |()| asked.diagnose.set(Some(Subject::Tunnel(id, name.get_value())));
    view! {
        <Show when=may_write>
            <LinkButton text=common::EDIT href=format!("/tunnels/{id}/edit") look=Look::Quiet
                testid=testid::with(testid::TUNNEL_EDIT, id) />
            <Button text=common::DIAGNOSE on_press=Callback::new(diagnose) look=Look::Quiet
                testid=testid::with(testid::TUNNEL_DIAGNOSE, id) />
            <Button text=words::REDEPLOY on_press=Callback::new(redeploy) look=Look::Quiet
                testid=testid::with(testid::TUNNEL_REDEPLOY, id) />
            <Button text=common::DELETE look=Look::Quiet testid=testid::with(testid::TUNNEL_DELETE, id)
                on_press=Callback::new(move |()| asked.delete.set(Some(tunnel.get_value()))) />
        </Show>
    }
    .into_any()
}

#[component]
fn BestChip(tunnel: Arc<Tunnel>) -> AnyView {
    let id = tunnel.id;
    let Some(best) = tunnel.best_exit.clone() else { return ().into_any() };
    let tone = state::best_exit_chip(&best, lang_now()).1;
    // A common exit has its colour here too.
    let common = (!best.summary.is_empty()).then(|| best.owners.first().and_then(|owner| owner.exit_node_id));
    let mark = common.flatten().map(dot);
    view! {
        <span class="with-dot">
            {mark}
            <Chip text=Signal::derive(move || state::best_exit_chip(&best, lang()).0) tone=tone
                testid=testid::with(testid::TUNNEL_CHIP, id) />
        </span>
    }
    .into_any()
}

/// How far the nodes are: one chip, and behind it each node with the reason where it has one.
#[component]
pub fn Deployment(id: String, enabled: bool, deployment: Vec<NodeDeployment>, names: Names) -> AnyView {
    if !enabled {
        return view! { <Chip text=crate::ui::field::said(words::TUNNEL_DISABLED) tone=Tone::Neutral testid=id /> }
            .into_any();
    }
    let nodes = StoredValue::new(deployment);
    let tone = nodes.with_value(|nodes| state::deployment_chip(nodes, lang_now()).1);
    let text = Signal::derive(move || nodes.with_value(|nodes| state::deployment_chip(nodes, lang()).0));
    let list = move || {
        nodes
            .get_value()
            .into_iter()
            .map(|node| {
                let (word, tone) = state::status(node.status);
                view! {
                    <li>
                        <span class=format!("state-word {}", tone.class())>{t(word)}</span>
                        <span>{phrase(move || names.of(node.node_id))}</span>
                        {node.reason.map(|reason| view! { <span class="muted">{reason}</span> })}
                    </li>
                }
            })
            .collect_view()
    };
    view! {
        <details class="deployment">
            <summary><Chip text tone=tone testid=id /></summary>
            <ul>{part(list)}</ul>
        </details>
    }
    .into_any()
}

/// The path in one line: entries → hops → exits.
fn path_of(tunnel: &Tunnel, names: Names) -> AnyView {
    let entry: Vec<NodeId> = tunnel.entry.nodes.iter().map(|node| node.node_id).collect();
    let mut steps = vec![view! { <span class="step">{node_names(entry, names)}</span> }.into_any()];
    for group in &tunnel.hops {
        steps.push(group_of(group, names, false));
    }
    match (&tunnel.exit, tunnel.kind) {
        (Some(exit), TunnelType::Tunnel) => steps.push(group_of(exit, names, true)),
        _ => steps.push(view! { <span class="step muted">{t(words::TARGET)}</span> }.into_any()),
    }
    view! { <span class="path">{steps}</span> }.into_any()
}

fn group_of(group: &Group, names: Names, is_exit: bool) -> AnyView {
    let how = group.strategy.clone();
    let nodes: Vec<NodeId> = group.nodes.iter().map(|node| node.node_id).collect();
    let several = nodes.len() > 1;
    let shown = if is_exit { exit_names(nodes, names) } else { node_names(nodes, names) };
    view! {
        <span class="step">
            {shown}
            {several.then(|| view! { <span class="how">{phrase(move || strategy::label(&how, lang()))}</span> })}
        </span>
    }
    .into_any()
}

fn node_names(nodes: Vec<NodeId>, names: Names) -> AnyView {
    let text = move || nodes.iter().map(|id| names.of(*id)).collect::<Vec<_>>().join(", ");
    view! { <span>{phrase(text)}</span> }.into_any()
}

fn exit_names(nodes: Vec<NodeId>, names: Names) -> AnyView {
    nodes
        .into_iter()
        .map(|id| view! { <span class="exit-name">{dot(id)} {phrase(move || names.of(id))}</span> })
        .collect_view()
        .into_any()
}
