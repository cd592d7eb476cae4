use super::list::{Asked, Found};
use super::state;
use crate::api::client;
use crate::api::session::may_write;
use crate::i18n::{Lang, Text, common, errors, lang, lang_now, strategy, tunnels as words};
use crate::pages::diagnose::Subject;
use crate::pages::monitor::has_groups;
use crate::pages::names::Names;
use crate::reactive::{RwSignal, Show, StoredValue, part};
use crate::router::A;
use crate::ui::{Look, Tone, dot, toast};
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::api::{BestExit, Group, NodeDeployment, Tunnel, TunnelType};
use shared::ids::NodeId;
use shared::strategy::Strategy;
use shared::testid;
use std::sync::Arc;

/// One tunnel of the list. There may be a thousand of them, so a row follows language, names and rights as a whole and
/// not piece by piece.
#[component]
pub fn TunnelRow(tunnel: Arc<Tunnel>, names: Names, asked: Asked, found: Found) -> AnyView {
    part(move || row(&tunnel, names, asked, found))
}

fn row(tunnel: &Arc<Tunnel>, names: Names, asked: Asked, found: Found) -> AnyView {
    let lang = lang();
    let id = tunnel.id;
    let kind = match tunnel.kind {
        TunnelType::Port => words::TYPE_PORT,
        TunnelType::Tunnel => words::TYPE_TUNNEL,
    };
    let is_best = tunnel.exit.as_ref().is_some_and(|exit| exit.strategy == Strategy::Best);
    let monitor = format!("/tunnels/{id}/monitor");
    let watched = is_best || has_groups(tunnel);
    let href = if watched { monitor.clone() } else { format!("/tunnels/{id}/edit") };
    let monitor =
        watched.then(|| link(words::MONITOR, lang, monitor, testid::with(testid::TUNNEL_MONITOR, id)));
    let best =
        tunnel.best_exit.as_ref().map(|best| best_chip(best, lang, testid::with(testid::TUNNEL_CHIP, id)));
    let deployment =
        deployment(testid::with(testid::TUNNEL_STATE, id), tunnel.enabled, &tunnel.deployment, names);
    let (name, path) = (tunnel.name.clone(), path_of(tunnel, names, lang));
    let actions = may_write().then(|| changes(tunnel, lang, asked));
    let class = if tunnel.enabled { "row" } else { "row off" };
    view! {
        <li class=class hidden=move || !found.with(|ids| ids.contains(&id)) data-testid=testid::with(testid::TUNNEL_ROW, id)>
            <div class="row-name">
                <A href class="row-title">{name}</A>
                <span class="muted">{kind.say(lang)}</span>
            </div>
            <div class="row-path">{path}</div>
            <div class="row-state">{best} {deployment}</div>
            <div class="row-actions">{monitor} {actions}</div>
        </li>
    }
    .into_any()
}

fn link(text: Text, lang: Lang, href: String, testid: String) -> AnyView {
    view! { <A href class=Look::Quiet.class() testid>{text.say(lang)}</A> }.into_any()
}

fn button(text: Text, lang: Lang, testid: String, press: impl Fn() + 'static) -> AnyView {
    let press: Box<dyn Fn()> = Box::new(press);
    view! {
        <button type="button" class=Look::Quiet.class() data-testid=testid on:click=move |_| press()>
            {text.say(lang)}
        </button>
    }
    .into_any()
}

fn changes(tunnel: &Arc<Tunnel>, lang: Lang, asked: Asked) -> AnyView {
    let id = tunnel.id;
    let (diagnosed, redeployed, deleted) = (tunnel.clone(), tunnel.clone(), tunnel.clone());
    let name = |name| testid::with(name, id);
    view! {
        {link(common::EDIT, lang, format!("/tunnels/{id}/edit"), name(testid::TUNNEL_EDIT))}
        {button(common::DIAGNOSE, lang, name(testid::TUNNEL_DIAGNOSE), move || {
            asked.diagnose.set(Some(Subject::Tunnel(id, diagnosed.name.clone())));
        })}
        {button(words::REDEPLOY, lang, name(testid::TUNNEL_REDEPLOY), move || redeploy(redeployed.clone()))}
        {button(common::DELETE, lang, name(testid::TUNNEL_DELETE), move || asked.delete.set(Some(deleted.clone())))}
    }
    .into_any()
}

fn redeploy(tunnel: Arc<Tunnel>) {
    spawn_local(async move {
        match client::redeploy_tunnel(tunnel.id).await {
            Ok(()) => toast::good(words::REDEPLOYED.with(lang_now(), &[("name", &tunnel.name)])),
            Err(error) => toast::bad(errors::api(&error, lang_now())),
        }
    });
}

fn chip(text: String, tone: Tone, testid: String) -> AnyView {
    view! { <span class=format!("chip {}", tone.class()) data-testid=testid>{text}</span> }.into_any()
}

fn best_chip(best: &BestExit, lang: Lang, testid: String) -> AnyView {
    let (text, tone) = state::best_exit_chip(best, lang);
    // A common exit has its colour here too.
    let common = best.owners.first().filter(|_| !best.summary.is_empty());
    let mark = common.and_then(|owner| owner.exit_node_id).map(dot);
    view! { <span class="with-dot">{mark} {chip(text, tone, testid)}</span> }.into_any()
}

/// How far the nodes are: one chip, and behind it each node with the reason where it has one.
pub fn deployment(id: String, enabled: bool, nodes: &[NodeDeployment], names: Names) -> AnyView {
    let lang = lang();
    if !enabled {
        return chip(words::TUNNEL_DISABLED.say(lang).to_owned(), Tone::Neutral, id);
    }
    let (text, tone) = state::deployment_chip(nodes, lang);
    let nodes = StoredValue::new(nodes.to_vec());
    let opened = RwSignal::new(false);
    let list =
        move || nodes.with_value(|nodes| nodes.iter().map(|node| node_line(node, names)).collect_view());
    view! {
        <details class="deployment" on:toggle=move |_| opened.set(true)>
            <summary>{chip(text, tone, id)}</summary>
            <Show when=move || opened.get()>
                <ul>{list()}</ul>
            </Show>
        </details>
    }
    .into_any()
}

fn node_line(node: &NodeDeployment, names: Names) -> AnyView {
    let lang = lang();
    let (word, tone) = state::status(node.status);
    let reason = node.reason.as_deref().map(|reason| {
        let said = state::pending_reason(reason).map_or(reason, |text| text.say(lang)).to_owned();
        view! { <span class="muted">{said}</span> }
    });
    view! {
        <li>
            <span class=format!("state-word {}", tone.class())>{word.say(lang)}</span>
            <span>{names.of(node.node_id)}</span>
            {reason}
        </li>
    }
    .into_any()
}

/// The path in one line: entries → hops → exits.
fn path_of(tunnel: &Tunnel, names: Names, lang: Lang) -> AnyView {
    let entry = tunnel.entry.nodes.iter().map(|node| node.node_id);
    let mut steps = vec![view! { <span class="step">{node_names(entry, names)}</span> }.into_any()];
    for group in &tunnel.hops {
        steps.push(group_of(group, names, lang, false));
    }
    match (&tunnel.exit, tunnel.kind) {
        (Some(exit), TunnelType::Tunnel) => steps.push(group_of(exit, names, lang, true)),
        _ => steps.push(view! { <span class="step muted">{words::TARGET.say(lang)}</span> }.into_any()),
    }
    view! { <span class="path">{steps}</span> }.into_any()
}

fn group_of(group: &Group, names: Names, lang: Lang, is_exit: bool) -> AnyView {
    let nodes = group.nodes.iter().map(|node| node.node_id);
    let several = nodes.len() > 1;
    let shown = if is_exit { exit_names(nodes, names) } else { node_names(nodes, names) };
    let how = several.then(|| view! { <span class="how">{strategy::label(&group.strategy, lang)}</span> });
    view! { <span class="step">{shown} {how}</span> }.into_any()
}

fn node_names(nodes: impl Iterator<Item = NodeId>, names: Names) -> AnyView {
    let all: Vec<String> = nodes.map(|id| names.of(id)).collect();
    view! { <span>{all.join(", ")}</span> }.into_any()
}

fn exit_names(nodes: impl Iterator<Item = NodeId>, names: Names) -> AnyView {
    nodes
        .map(|id| view! { <span class="exit-name">{dot(id)} {names.of(id)}</span> })
        .collect_view()
        .into_any()
}
