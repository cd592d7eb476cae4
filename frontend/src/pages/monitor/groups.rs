//! Groups whose choice is made ahead of connections: who is in use and why, and a person's choice.

use crate::api::live::use_live;
use crate::api::session::may_write;
use crate::api::{Feed, client};
use crate::format;
use crate::i18n::{Lang, Text, errors, groups as words, lang, lang_now, monitor, strategy, t};
use crate::pages::loaded::loaded;
use crate::pages::names::Names;
use crate::pages::question::closes;
use crate::reactive::{Effect, Memo, RwSignal, Show, Signal, each, part, phrase};
use crate::ui::chip::{OnlineMark, exit_class};
use crate::ui::dialog::Confirm;
use crate::ui::{Button, Look, dot, toast};
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::api::{ChoiceInput, GroupInUse, GroupMember, OwnerGroup};
use shared::ids::{NodeId, TunnelId};
use shared::link::InUse;
use shared::policy::health::State;
use shared::policy::spec::Interrupt;
use shared::policy::{Policy, Why};
use shared::testid;
use std::sync::Arc;
use std::time::Duration;

/// Agents report as often.
const AGAIN: Duration = Duration::from_secs(5);

/// What the cards share.
#[derive(Clone, Copy)]
struct Board {
    id: TunnelId,
    groups: Feed<Vec<OwnerGroup>>,
    names: Names,
    asked: RwSignal<Option<Asked>>,
}

/// A change that waits for a yes.
#[derive(Clone, Copy, PartialEq)]
struct Asked {
    owner: NodeId,
    /// `None`: the choice is taken back.
    node: Option<NodeId>,
}

type Group = Memo<Option<Arc<OwnerGroup>>>;

/// One card per node that chooses.
#[component]
pub fn Groups(id: TunnelId, names: Names) -> AnyView {
    let live = use_live();
    let groups = Feed::new(move || client::groups(id));
    let board = Board { id, groups, names, asked: RwSignal::new(None) };
    Effect::with_before(move |before: Option<()>| {
        live.decisions.track();
        let _ = live.tunnels.get();
        if before.is_some() {
            groups.refresh();
        }
    });
    if let Ok(timer) = set_interval_with_handle(move || groups.refresh(), AGAIN) {
        on_cleanup(move || timer.clear());
    }
    let owners = Memo::new(move |_| {
        let all = groups.get();
        all.iter().flat_map(|all| all.iter()).map(|group| group.owner_node_id).collect::<Vec<_>>()
    });
    let cards = move || {
        view! {
            <div class="owners">
                {each(move || owners.get(), |id| (id.0, 0), move |owner| view! { <Card board owner /> }.into_any())}
            </div>
        }
        .into_any()
    };
    view! {
        {loaded(groups, cards)}
        <Question board />
    }
    .into_any()
}

#[component]
fn Card(board: Board, owner: NodeId) -> AnyView {
    let group: Group = Memo::new(move |_| {
        let all = board.groups.get()?;
        all.iter().find(|group| group.owner_node_id == owner).cloned().map(Arc::new)
    });
    let name = move || group.with(|group| group.as_ref().map(|group| group.owner_name.clone()));
    let online = Memo::new(move |_| group.with(|group| group.as_ref().is_some_and(|group| group.online)));
    let what = move || group.with(|group| group.as_ref().map(|group| heading(group, lang())));
    let members = Memo::new(move |_| {
        let group = group.get();
        group.iter().flat_map(|group| &group.members).map(|member| member.node_id).collect::<Vec<_>>()
    });
    view! {
        <article class="card owner" data-testid=testid::with(testid::GROUP_CARD, owner)>
            <header class="owner-head">
                <div>
                    <span class="muted">{t(monitor::OWNER)}</span>
                    <h2>{phrase(name)}</h2>
                    {part(move || view! { <OnlineMark online=online.get() /> })}
                </div>
                <div class="owner-applied">{phrase(what)}</div>
            </header>
            {part(move || group.get().map(|group| lines(&group, board)))}
            <ChoiceLine board owner group />
            <div class="table-scroll">
                <table>
                    <thead>
                        <tr>
                            <th scope="col">{t(words::MEMBER)}</th>
                            <th scope="col">{t(words::STATE)}</th>
                            <th scope="col" class="number">{t(words::LATENCY)}</th>
                            <td></td>
                        </tr>
                    </thead>
                    <tbody>
                        {each(move || members.get(), |node| (node.0, 0), move |node| view! {
                            <Row board owner node group />
                        }.into_any())}
                    </tbody>
                </table>
            </div>
        </article>
    }
    .into_any()
}

/// Which group it is, and how it chooses.
fn heading(group: &OwnerGroup, lang: Lang) -> String {
    let hop = group.group.strip_prefix("hops[").and_then(|rest| rest.strip_suffix(']')?.parse::<u32>().ok());
    let place = match hop {
        Some(hop) => words::HOP.with(lang, &[("n", &(hop + 1).to_string())]),
        None => words::EXITS.say(lang).to_owned(),
    };
    format!("{place} · {} · {}", strategy::label(&group.strategy, lang), group.strategy)
}

/// Networks that use the same node for the same reason: `TCP`, `UDP IPv6`, `TCP · UDP`.
fn together(now: &[GroupInUse]) -> Vec<(String, &GroupInUse)> {
    let mut lines: Vec<(String, &GroupInUse)> = Vec::new();
    for (kind, four, six) in [("TCP", "tcp4", "tcp6"), ("UDP", "udp4", "udp6")] {
        let of = |network: &str| now.iter().find(|used| used.network == network);
        let same = |a: &GroupInUse, b: &GroupInUse| (a.node_id, a.why) == (b.node_id, b.why);
        let found = match (of(four), of(six)) {
            (Some(a), Some(b)) if !same(a, b) => {
                vec![(format!("{kind} IPv4"), a), (format!("{kind} IPv6"), b)]
            }
            (a, b) => a.or(b).map(|used| (kind.to_owned(), used)).into_iter().collect(),
        };
        for (label, used) in found {
            match lines.iter_mut().find(|(_, other)| same(other, used)) {
                Some((labels, _)) => *labels = format!("{labels} · {label}"),
                None => lines.push((label, used)),
            }
        }
    }
    lines
}

/// Who is in use, and why.
fn lines(group: &OwnerGroup, board: Board) -> AnyView {
    let lang = lang();
    let owner = group.owner_node_id;
    if group.now.is_empty() {
        return view! { <p class="reason waiting">{words::NOT_REPORTED.say(lang)}</p> }.into_any();
    }
    let line = |(network, used): (String, &GroupInUse)| {
        let (why, class) = why(used.why);
        let (name, why) = (board.names.of(used.node_id), why.say(lang));
        let mut text = words::IN_USE.with(lang, &[("network", &network), ("name", &name), ("why", why)]);
        if let (Some(from), Some(because), Some(ago)) =
            (used.changed_from, used.changed_why, used.changed_ago_ms)
        {
            let ago = format::duration(i64::try_from(ago).unwrap_or(i64::MAX), lang);
            let (from, because) = (board.names.of(from), because_of(because).say(lang));
            let changed = words::CHANGED.with(lang, &[("ago", &ago), ("from", &from), ("why", because)]);
            text = format!("{text} · {changed}");
        }
        view! {
            <p class=format!("reason {class}") data-testid=testid::of(testid::GROUP_IN_USE, owner, &used.network)
                data-node=used.node_id.to_string()>{text}</p>
        }
    };
    together(&group.now).into_iter().map(line).collect_view().into_any()
}

fn why(why: InUse) -> (Text, &'static str) {
    match why {
        InUse::Chosen => (words::WHY_CHOSEN, "good"),
        InUse::Default => (words::WHY_DEFAULT, "neutral"),
        InUse::Fixed => (words::WHY_FIXED, "good"),
        InUse::Fallback => (words::WHY_FALLBACK, "waiting"),
        InUse::Fastest => (words::WHY_FASTEST, "good"),
        InUse::Untested => (words::WHY_UNTESTED, "waiting"),
        InUse::LastResort => (words::WHY_LAST_RESORT, "bad"),
    }
}

fn because_of(why: Why) -> Text {
    match why {
        Why::Died => words::BECAUSE_DIED,
        Why::Better => words::BECAUSE_BETTER,
        Why::Returned => words::BECAUSE_RETURNED,
        Why::Chosen => words::BECAUSE_CHOSEN,
    }
}

/// A person's choice, how far it is, and taking it back.
#[component]
fn ChoiceLine(board: Board, owner: NodeId, group: Group) -> AnyView {
    let text =
        Memo::new(move |_| group.with(|group| group.as_ref().and_then(|group| choice(group, board, lang()))));
    let clears = move || {
        let chosen = |group: &Arc<OwnerGroup>| {
            group.choice.is_some() || group.wanted.as_ref().is_some_and(|wanted| wanted.node_id.is_some())
        };
        may_write() && group.with(|group| group.as_ref().is_some_and(chosen))
    };
    view! {
        <Show when=move || text.with(Option::is_some)>
            <div class="pin-line">
                <span data-testid=testid::with(testid::GROUP_CHOICE, owner)>{phrase(move || text.get())}</span>
                <Show when=clears>
                    <Button text=words::CLEAR look=Look::Quiet testid=testid::with(testid::GROUP_CLEAR, owner)
                        on_press=Callback::new(move |()| board.asked.set(Some(Asked { owner, node: None }))) />
                </Show>
            </div>
        </Show>
    }
    .into_any()
}

fn choice(group: &OwnerGroup, board: Board, lang: Lang) -> Option<String> {
    let Some(wanted) = &group.wanted else {
        let name = board.names.of(group.choice?);
        return Some(words::CHOSEN_AT_AGENT.with(lang, &[("name", &name)]));
    };
    let what = match wanted.node_id {
        Some(node) => {
            let (name, time) = (board.names.of(node), format::date_time(wanted.created_at, lang));
            let values = [("author", wanted.author.as_str()), ("time", &time), ("name", &name)];
            words::CHOSEN_BY.with(lang, &values)
        }
        None => words::TAKING_BACK.say(lang).to_owned(),
    };
    let how = match &group.error {
        _ if group.applied => return Some(what),
        _ if !group.online => words::OFFLINE.say(lang).to_owned(),
        Some(error) => words::REFUSED.with(lang, &[("error", error)]),
        None => words::PENDING.say(lang).to_owned(),
    };
    Some(format!("{what} · {how}"))
}

#[component]
fn Row(board: Board, owner: NodeId, node: NodeId, group: Group) -> AnyView {
    let of = move |say: fn(&GroupMember) -> String| {
        move || {
            let group = group.get()?;
            group.members.iter().find(|member| member.node_id == node).map(say)
        }
    };
    let used = move || {
        let group = group.get()?;
        let lines = together(&group.now);
        let networks: Vec<String> =
            lines.into_iter().filter(|(_, used)| used.node_id == node).map(|(label, _)| label).collect();
        (!networks.is_empty()).then(|| words::USED_FOR.with(lang(), &[("networks", &networks.join(" · "))]))
    };
    let choosable = move || {
        let chooses =
            |group: Arc<OwnerGroup>| matches!(group.strategy.policy(), Some(Policy::Selector { .. }));
        may_write() && group.get().is_some_and(chooses)
    };
    let label = Signal::derive(move || words::USE_NAMED.with(lang(), &[("name", &board.names.of(node))]));
    view! {
        <tr class=exit_class(node) data-testid=testid::of(testid::GROUP_MEMBER, owner, node)>
            <th scope="row" class="exit-cell">
                {dot(node)} {phrase(move || board.names.of(node))} " "
                <span class="state-word good">{phrase(used)}</span>
            </th>
            <td>{phrase(of(state))}</td>
            <td class="number">{phrase(of(measured))}</td>
            <td>
                <Show when=choosable>
                    <Button text=words::USE label testid=testid::of(testid::GROUP_USE, owner, node)
                        on_press=Callback::new(move |()| board.asked.set(Some(Asked { owner, node: Some(node) }))) />
                </Show>
            </td>
        </tr>
    }
    .into_any()
}

fn state(member: &GroupMember) -> String {
    let text = match member.state {
        State::Alive => words::ALIVE,
        State::Dead => words::DEAD,
        State::NoData => words::NO_DATA,
        State::NotApplicable => words::NOT_APPLICABLE,
    };
    text.with(lang(), &[("n", &member.failures.to_string())])
}

/// Last test, moving average, and how long ago that was.
fn measured(member: &GroupMember) -> String {
    let (Some(last), Some(age)) = (member.latency_ms, member.age_ms) else { return "–".to_owned() };
    let (last, average) = (format::ms(last), format::ms(member.average_ms.unwrap_or(f64::NAN)));
    let time = format::duration(i64::try_from(age).unwrap_or(i64::MAX), lang());
    words::MEASURED.with(lang(), &[("last", &last), ("average", &average), ("time", &time)])
}

/// Asks before a choice is changed.
#[component]
fn Question(board: Board) -> AnyView {
    let open = closes(board.asked);
    let busy = RwSignal::new(false);
    let confirm = move |()| {
        let Some(Asked { owner, node }) = board.asked.get_untracked() else { return };
        busy.set(true);
        spawn_local(async move {
            let answer = match node {
                Some(node_id) => {
                    client::choose(board.id, &ChoiceInput { node_id, owner_node_id: Some(owner) }).await
                }
                None => client::clear_choice(board.id, owner).await,
            };
            let _ = busy.try_set(false);
            match answer {
                Ok(()) => {
                    toast::good(match node {
                        Some(node) => words::CHOSEN.with(lang_now(), &[("name", &board.names.now(node))]),
                        None => words::CLEARED.say(lang_now()).to_owned(),
                    });
                    board.groups.refresh();
                    let _ = open.try_set(false);
                }
                Err(error) => toast::bad(errors::api(&error, lang_now())),
            }
        });
    };
    let body = move || {
        let Asked { owner, node } = board.asked.get()?;
        let owner_name = board.names.of(owner);
        Some(match node {
            Some(node) => {
                words::CHOOSE_BODY.with(lang(), &[("owner", &owner_name), ("name", &board.names.of(node))])
            }
            None => words::CLEAR_BODY.with(lang(), &[("owner", &owner_name)]),
        })
    };
    let interrupts = move || {
        let (asked, groups) = (board.asked.get(), board.groups.get());
        let group = groups
            .iter()
            .flat_map(|all| all.iter())
            .find(|g| Some(g.owner_node_id) == asked.map(|a| a.owner));
        let policy = group.and_then(|group| group.strategy.policy());
        matches!(policy, Some(Policy::Selector { interrupt: Interrupt::OnSwitch, .. }))
    };
    view! {
        <Confirm open title=words::CHANGE_TITLE action=words::CHANGE on_confirm=Callback::new(confirm)
            busy=Signal::derive(move || busy.get())>
            <p>{phrase(body)}</p>
            <Show when=interrupts><p>{t(words::INTERRUPTS)}</p></Show>
        </Confirm>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_with_the_same_node_for_the_same_reason_are_one_line() {
        let used = |network: &str, node: i64, why: InUse| GroupInUse {
            network: network.into(),
            node_id: NodeId(node),
            why,
            changed_from: None,
            changed_why: None,
            changed_ago_ms: None,
        };
        let labels = |now: &[GroupInUse]| -> Vec<String> {
            together(now).into_iter().map(|(label, used)| format!("{label} {}", used.node_id)).collect()
        };
        let fastest = InUse::Fastest;
        let all = ["tcp4", "tcp6", "udp4", "udp6"];
        assert_eq!(labels(&all.map(|network| used(network, 1, fastest))), ["TCP · UDP 1"]);
        let mut mixed = all.map(|network| used(network, 1, fastest));
        mixed[1].node_id = NodeId(2);
        assert_eq!(labels(&mixed), ["TCP IPv4 · UDP 1", "TCP IPv6 2"]);
        assert_eq!(labels(&[used("udp6", 3, fastest)]), ["UDP 3"]);
        assert_eq!(labels(&[]), Vec::<String>::new());
    }
}
