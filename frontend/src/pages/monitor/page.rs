use super::chart::charts;
use super::groups::Groups;
use super::log::DecisionLog;
use super::owner::OwnerCard;
use super::pin::{PinDialog, PinSubject};
use crate::api::live::use_live;
use crate::api::session::may_write;
use crate::api::{Feed, client};
use crate::i18n::{common, lang, monitor as words, t, what_if};
use crate::pages::loaded::loaded;
use crate::pages::names::{Names, use_names};
use crate::reactive::{Effect, Memo, RwSignal, Show, Signal, each};
use crate::ui::ticker::every_second;
use crate::ui::{Alert, Button, Chip, Empty, Heading, Icon, LinkButton, Tone};
use leptos::prelude::*;
use shared::api::{DecisionState, Tunnel, TunnelDecisions, WallMs};
use shared::ids::TunnelId;
use shared::policy::Policy;
use shared::strategy::Strategy;
use shared::testid;
use std::sync::Arc;

/// What the parts of the monitor share.
#[derive(Clone, Copy)]
pub struct Monitored {
    /// The tunnel.
    pub id: TunnelId,
    /// Its decisions.
    pub decisions: Feed<TunnelDecisions>,
    /// What nodes are called.
    pub names: Names,
    /// The time of day.
    pub now: ReadSignal<WallMs>,
    /// What is to be pinned.
    pub pin: RwSignal<Option<PinSubject>>,
}

/// The monitor of a tunnel.
#[component]
pub fn Monitor(id: TunnelId) -> AnyView {
    let live = use_live();
    live.tunnels.want();
    let tunnel = Memo::new(move |_| {
        let all = live.tunnels.get()?;
        all.iter().find(|tunnel| tunnel.id == id).cloned()
    });
    // A tunnel that is not in the list: the panel says what is to be said.
    let is_best = Memo::new(move |_| {
        let listed = live.tunnels.get().is_some();
        listed && tunnel.with(|tunnel| tunnel.as_ref().is_none_or(|tunnel| is_best_tunnel(tunnel)))
    });
    let neither = move || {
        let neither = |tunnel: &Arc<Tunnel>| !is_best_tunnel(tunnel) && !has_groups(tunnel);
        tunnel.with(|tunnel| tunnel.as_ref().is_some_and(neither))
    };
    let has_groups =
        Memo::new(move |_| tunnel.with(|tunnel| tunnel.as_ref().is_some_and(|tunnel| has_groups(tunnel))));
    let decisions = Feed::new(move || client::decisions(id));
    let shared =
        Monitored { id, decisions, names: use_names(), now: every_second(), pin: RwSignal::new(None) };
    Effect::with_before(move |before: Option<()>| {
        live.decisions.track();
        if before.is_some() && is_best.get_untracked() {
            decisions.refresh();
        }
    });
    let name = Memo::new(move |_| tunnel.with(|tunnel| tunnel.as_ref().map(|tunnel| tunnel.name.clone())));
    let title = Signal::derive(move || {
        let name = name.get().unwrap_or_else(|| format!("#{id}"));
        words::TITLE.with(lang(), &[("name", &name)])
    });
    view! {
        <Heading text=title>
            <LinkButton text=common::NAV_TUNNELS href="/tunnels" />
            <Show when=move || is_best.get()>
                <LinkButton text=what_if::OPEN href=format!("/tunnels/{id}/what-if") testid=testid::WHAT_IF_OPEN />
            </Show>
            <Show when=may_write>
                <LinkButton text=common::EDIT href=format!("/tunnels/{id}/edit") testid=testid::with(testid::TUNNEL_EDIT, id) />
                <Show when=move || is_best.get()>
                    <Button text=words::PIN icon_of=Icon::Pin testid=testid::PIN_OPEN
                        on_press=Callback::new(move |()| shared.pin.set(Some(PinSubject::default()))) />
                </Show>
            </Show>
        </Heading>
        <Show when=move || has_groups.get()><Groups id names=shared.names /></Show>
        <Show when=move || is_best.get()>{loaded(decisions, move || view! { <Decisions shared /> }.into_any())}</Show>
        <Show when=neither><Alert><p>{t(words::NOT_BEST)}</p></Alert></Show>
        <PinDialog shared />
    }
    .into_any()
}

#[component]
fn Decisions(shared: Monitored) -> AnyView {
    let decisions = shared.decisions;
    let owners = Memo::new(move |_| {
        let owners = decisions.get().map(|decisions| decisions.owners.clone()).unwrap_or_default();
        owners.iter().map(|owner| owner.owner_node_id).collect::<Vec<_>>()
    });
    let status = Memo::new(move |_| decisions.get().map(|decisions| decisions.status));
    let chip = Signal::derive(move || match status.get() {
        Some(DecisionState::Applied) => words::STATUS_APPLIED.say(lang()).to_owned(),
        Some(DecisionState::Paused) => words::STATUS_PAUSED.say(lang()).to_owned(),
        Some(DecisionState::Waiting) | None => words::STATUS_WAITING.say(lang()).to_owned(),
    });
    let tone = Signal::derive(move || match status.get() {
        Some(DecisionState::Applied) => Tone::Good,
        Some(DecisionState::Paused) => Tone::Neutral,
        Some(DecisionState::Waiting) | None => Tone::Waiting,
    });
    view! {
        <p class="monitor-status"><Chip text=chip tone testid=testid::MONITOR_STATUS /></p>
        <Show when=move || owners.with(Vec::is_empty)>
            <Empty text=words::NO_OWNERS />
        </Show>
        <div class="owners">
            {each(move || owners.get(), |id| (id.0, 0), move |owner| view! {
                <OwnerCard shared owner />
            }.into_any())}
        </div>
        {charts(shared.id)}
        <DecisionLog shared />
    }
    .into_any()
}

fn is_best_tunnel(tunnel: &Tunnel) -> bool {
    tunnel.exit.as_ref().is_some_and(|exit| exit.strategy == Strategy::Best)
}

/// Whether a group of the tunnel chooses ahead of connections.
pub fn has_groups(tunnel: &Tunnel) -> bool {
    let policies = tunnel.hops.iter().chain(&tunnel.exit).filter_map(|group| group.strategy.policy());
    policies.into_iter().any(Policy::is_decided_ahead)
}
