//! The start page: how things are, and what needs somebody.

use super::attention;
use super::names::{Names, use_names};
use crate::api::live::use_live;
use crate::format;
use crate::i18n::{Text, common, lang, t, tunnels};
use crate::pages::loaded::Loaded;
use crate::reactive::{Memo, Signal, part, phrase};
use crate::router::A;
use crate::ui::chip::exit_class;
use crate::ui::field::said;
use crate::ui::{Heading, Icon, LinkButton, Look, dot, icon};
use leptos::prelude::*;
use shared::api::{BestExitOwner, DecisionState, DeploymentStatus, Tunnel, WallMs};
use shared::ids::TunnelId;
use shared::testid;
use std::sync::Arc;

/// Lines shown of each list.
const LINES: usize = 12;

/// The start page.
#[component]
pub fn Overview() -> AnyView {
    let live = use_live();
    let names = use_names();
    live.tunnels.want();
    live.forwards.want();
    let ready = Signal::derive(move || live.nodes.get().is_some() && live.tunnels.get().is_some());
    let error = Signal::derive(move || live.nodes.error().or_else(|| live.tunnels.error()));
    view! {
        <Heading text=said(common::OVERVIEW_TITLE) />
        <Loaded ready error on_retry=Callback::new(move |()| live.refresh_all())>
            <Counts />
            <Start />
            <div class="overview">
                <section class="card">
                    <h2>{t(common::OVERVIEW_ATTENTION)}</h2>
                    <Attention names />
                </section>
                <section class="card">
                    <h2>{t(common::OVERVIEW_SWITCHES)}</h2>
                    <Switches names />
                </section>
            </div>
        </Loaded>
    }
    .into_any()
}

#[component]
fn Counts() -> AnyView {
    let live = use_live();
    let nodes = Memo::new(move |_| {
        let nodes = live.nodes.get().unwrap_or_default();
        (nodes.iter().filter(|node| node.online).count(), nodes.len())
    });
    let forwards = Memo::new(move |_| {
        let forwards = live.forwards.get().unwrap_or_default();
        (forwards.iter().filter(|forward| forward.enabled).count(), forwards.len())
    });
    let states = Memo::new(move |_| tunnel_states(&live.tunnels.get().unwrap_or_default()));
    let count = |total: usize| common::OVERVIEW_OF.with(lang(), &[("count", &total.to_string())]);
    let states_line = move || {
        let states = states.get();
        let said = [
            (states.waiting, tunnels::CHIP_WAITING.say(lang()).to_owned()),
            (states.paused, tunnels::CHIP_PAUSED.say(lang()).to_owned()),
            (states.failed, tunnels::STATE_FAILED.say(lang()).to_owned()),
            (states.disabled, tunnels::TUNNEL_DISABLED.say(lang()).to_owned()),
        ];
        let parts: Vec<String> =
            said.into_iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{word} {n}")).collect();
        parts.join(" · ")
    };
    view! {
        <div class="counts">
            <A href="/nodes" class="card count">
                <span class="muted">{t(common::OVERVIEW_NODES)}</span>
                <span class="count-number number">{phrase(move || nodes.get().0)}</span>
                <span class="muted">{phrase(move || count(nodes.get().1))}</span>
            </A>
            <A href="/tunnels" class="card count">
                <span class="muted">{t(common::OVERVIEW_TUNNELS)}</span>
                <span class="count-number number">{phrase(move || states.get().total)}</span>
                <span class="muted">{phrase(states_line)}</span>
            </A>
            <A href="/forwards" class="card count">
                <span class="muted">{t(common::OVERVIEW_FORWARDS)}</span>
                <span class="count-number number">{phrase(move || forwards.get().0)}</span>
                <span class="muted">{phrase(move || count(forwards.get().1))}</span>
            </A>
        </div>
    }
    .into_any()
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct TunnelStates {
    total: usize,
    waiting: usize,
    paused: usize,
    failed: usize,
    disabled: usize,
}

fn tunnel_states(tunnels: &[Arc<Tunnel>]) -> TunnelStates {
    let mut states = TunnelStates { total: tunnels.len(), ..TunnelStates::default() };
    for tunnel in tunnels {
        if !tunnel.enabled {
            states.disabled += 1;
            continue;
        }
        if tunnel.deployment.iter().any(|node| node.status == DeploymentStatus::Failed) {
            states.failed += 1;
        }
        match tunnel.best_exit.as_ref().map(|best| best.status) {
            Some(DecisionState::Waiting) => states.waiting += 1,
            Some(DecisionState::Paused) => states.paused += 1,
            Some(DecisionState::Applied) | None => {}
        }
    }
    states
}

/// Until there is a tunnel with a forward: what to do, the next step first among the buttons.
#[component]
fn Start() -> AnyView {
    let live = use_live();
    let step = Memo::new(move |_| {
        let (no_tunnel, no_forward) = (
            live.tunnels.get().is_some_and(|tunnels| tunnels.is_empty()),
            live.forwards.get().is_some_and(|forwards| forwards.is_empty()),
        );
        if live.nodes.get().is_some_and(|nodes| nodes.is_empty()) {
            0
        } else if no_tunnel {
            1
        } else if no_forward {
            2
        } else {
            3
        }
    });
    const STEPS: [(Text, Text, &str); 3] = [
        (common::OVERVIEW_START_NODES, common::NAV_NODES, "/nodes"),
        (common::OVERVIEW_START_TUNNEL, tunnels::NEW, "/tunnels/new"),
        (common::OVERVIEW_START_FORWARD, common::NAV_FORWARDS, "/forwards"),
    ];
    part(move || {
        let step = step.get();
        (step < STEPS.len()).then(|| {
            let lines = STEPS.map(|(text, ..)| view! { <li>{t(text)}</li> });
            let links = [0, 1, 2].map(|at| {
                let (_, text, href) = STEPS[at];
                let look = if at == step { Look::Primary } else { Look::Plain };
                view! { <LinkButton text href look /> }
            });
            view! {
                <section class="card">
                    <h2>{t(common::OVERVIEW_START)}</h2>
                    <ol class="start">{lines.into_iter().collect_view()}</ol>
                    <div class="page-actions">{links.into_iter().collect_view()}</div>
                </section>
            }
            .into_any()
        })
    })
}

#[component]
fn Attention(names: Names) -> AnyView {
    let live = use_live();
    let lines = Memo::new(move |_| attention::lines(live, names, lang()));
    let list = move || {
        let lines = lines.get();
        if lines.is_empty() {
            return view! { <p class="all-well">{icon(Icon::Check)} " " {t(common::OVERVIEW_ALL_WELL)}</p> }
                .into_any();
        }
        let more = lines.len().saturating_sub(LINES);
        let more = (more > 0).then(|| {
            let text = common::AND_MORE.with(lang(), &[("count", &more.to_string())]);
            view! { <p class="muted">{text}</p> }
        });
        let lines = lines
            .into_iter()
            .take(LINES)
            .map(|line| {
                let class = if line.is_bad { "bad" } else { "mild" };
                view! { <li class=class>{icon(Icon::Warning)} <A href=line.href>{line.text}</A></li> }
            })
            .collect_view();
        view! { <ul class="attention" data-testid=testid::ATTENTION>{lines}</ul> {more} }.into_any()
    };
    part(list)
}

/// When which exit of which tunnel became the one in force.
type Since = (WallMs, TunnelId, String, BestExitOwner);

fn last_switches(tunnels: &[Arc<Tunnel>]) -> Vec<Since> {
    // Kept in order and short from the start: newest first, then by tunnel.
    let mut last: Vec<Since> = Vec::new();
    for tunnel in tunnels {
        for owner in tunnel.best_exit.iter().flat_map(|best| &best.owners) {
            let Some(at) = owner.since.filter(|_| owner.exit_node_id.is_some()) else { continue };
            let place = last.partition_point(|other| (other.0, tunnel.id) >= (at, other.1));
            if place < LINES {
                last.insert(place, (at, tunnel.id, tunnel.name.clone(), owner.clone()));
                last.truncate(LINES);
            }
        }
    }
    last
}

#[component]
fn Switches(names: Names) -> AnyView {
    let live = use_live();
    let rows = Memo::new(move |_| last_switches(&live.tunnels.get().unwrap_or_default()));
    let list = move || {
        let rows = rows.get();
        if rows.is_empty() {
            return view! { <p class="muted">{t(common::OVERVIEW_NO_SWITCHES)}</p> }.into_any();
        }
        let rows = rows.into_iter().filter_map(|(at, id, name, owner)| {
            let exit = owner.exit_node_id?;
            let since = common::SINCE.with(lang(), &[("time", &format::date_time(at, lang()))]);
            Some(view! {
                <li class=exit_class(exit)>
                    <A href=format!("/tunnels/{id}/monitor")>{name}</A>
                    <span class="muted">{names.of(owner.owner_node_id)}</span>
                    <span class="with-dot">{dot(exit)} {names.of(exit)}</span>
                    <span class="muted">{since}</span>
                </li>
            })
        });
        view! { <ul class="switches">{rows.collect_view()}</ul> }.into_any()
    };
    part(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_switches_come_newest_first_and_not_too_many() {
        let tunnel = |id: i64, since: i64| -> Arc<Tunnel> {
            let tunnel = format!(
                r#"{{"id":{id},"version":1,"name":"t{id}","type":"tunnel","enabled":true,"ipPreference":"auto",
                    "entry":{{"nodes":[]}},"hops":[],"bestExit":{{"status":"applied","summary":"","owners":[
                    {{"ownerNodeId":1,"exitNodeId":2,"reason":"switched","since":{since}}},
                    {{"ownerNodeId":2,"exitNodeId":null,"reason":"no_decision","since":null}}]}}}}"#
            );
            Arc::new(serde_json::from_str(&tunnel).unwrap())
        };
        let all: Vec<_> = (1..=20).map(|id| tunnel(id, [30, 10, 20][id as usize % 3])).collect();
        let last = last_switches(&all);
        let order: Vec<(i64, i64)> = last.iter().map(|(at, id, ..)| (*at, id.0)).collect();
        assert_eq!(order.len(), LINES);
        assert_eq!(order[..3], [(30, 3), (30, 6), (30, 9)]);
        assert_eq!(order[6..8], [(20, 2), (20, 5)]);
    }
}
