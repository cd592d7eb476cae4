//! What persons choose, and the agents that carry it out.

use crate::fake::Fake;
use crate::panel::{Crew, Example, Panel, World};
use server::app::choices;
use shared::api::{ChoiceInput, OwnerGroup, Role, User};
use shared::ids::{NodeId, TunnelId, UserId};
use shared::link::InUse;

fn admin() -> User {
    User { id: UserId(1), username: "ann".into(), role: Role::Admin }
}

/// An example whose exits a person chooses.
async fn selector(world: &World) -> (Example, String) {
    let example = Example::new(world).await;
    world
        .edit_tunnel(example.tunnel, |tunnel| tunnel.exit.as_mut().unwrap().strategy = "selector".into())
        .await;
    let group = format!("chain/chains_{}/hop_{}", example.tunnel, example.tunnel);
    (example, group)
}

async fn choose(panel: &Panel<'_>, tunnel: TunnelId, node: NodeId) -> Vec<OwnerGroup> {
    let input = ChoiceInput { node_id: node, owner_node_id: None };
    choices::put(&panel.state, &admin(), tunnel, input).await.unwrap()
}

async fn group(panel: &Panel<'_>, tunnel: TunnelId) -> OwnerGroup {
    choices::list(&panel.state, tunnel).await.unwrap().pop().unwrap()
}

/// Waits until the agent was told this.
async fn told(panel: &Panel<'_>, fake: &Fake, group: &str, member: Option<&str>) {
    let wanted = Some(member.map(str::to_owned));
    panel.until("it is told", || async { fake.state().choices.get(group).cloned() == wanted }).await;
}

#[tokio::test]
async fn a_choice_reaches_the_agent_at_once_or_when_it_returns() {
    let world = World::new().await;
    let (example, name) = selector(&world).await;
    let panel = Panel::start(&world).await;
    let crew = Crew::new(&world);

    // Before anybody is there.
    let groups = choose(&panel, example.tunnel, example.exits[1]).await;
    assert_eq!(groups.len(), 1);
    assert_eq!(
        (groups[0].owner_node_id, groups[0].group.as_str(), groups[0].online),
        (example.entry, "exit", false)
    );
    assert!(!groups[0].applied);
    crew.connect(&panel).await;
    told(&panel, &crew.entry, &name, Some("node_2")).await;
    panel.until("it is applied", || async { group(&panel, example.tunnel).await.applied }).await;
    let seen = group(&panel, example.tunnel).await;
    assert_eq!(seen.choice, Some(example.exits[1]));
    assert_eq!(seen.wanted.as_ref().unwrap().author, "ann");
    assert_eq!((seen.now[0].node_id, seen.now[0].why), (example.exits[1], InUse::Chosen));
    assert_eq!(seen.members[1].latency_ms, Some(12.0));
    assert_eq!(seen.members.len(), 3);

    // While it is there.
    choose(&panel, example.tunnel, example.exits[2]).await;
    told(&panel, &crew.entry, &name, Some("node_3")).await;

    // The panel forgets nothing over a restart, and the agent is told again when it comes back.
    panel.stop().await;
    crew.entry.state().choices.clear();
    let panel = Panel::start(&world).await;
    crew.entry.connect(&panel).await;
    told(&panel, &crew.entry, &name, Some("node_3")).await;
    panel.stop().await;
}

#[tokio::test]
async fn a_choice_names_the_node_wherever_it_stands() {
    let world = World::new().await;
    let (example, name) = selector(&world).await;
    let panel = Panel::start(&world).await;
    let crew = Crew::new(&world);
    crew.connect(&panel).await;
    choose(&panel, example.tunnel, example.exits[1]).await;
    told(&panel, &crew.entry, &name, Some("node_2")).await;
    // The order changes, and with it what the agent calls its nodes.
    world.edit_tunnel(example.tunnel, |tunnel| tunnel.exit.as_mut().unwrap().nodes.rotate_left(1)).await;
    panel.wake();
    told(&panel, &crew.entry, &name, Some("node_1")).await;
    // Somebody chooses at the agent: the panel's choice stands.
    crew.entry.state().choices.clear();
    crew.entry.report_group(&name, Some("node_3"));
    told(&panel, &crew.entry, &name, Some("node_1")).await;
    panel.stop().await;
}

#[tokio::test]
async fn taking_it_back_reaches_the_agent_too_and_is_then_forgotten() {
    let world = World::new().await;
    let (example, name) = selector(&world).await;
    let panel = Panel::start(&world).await;
    let crew = Crew::new(&world);
    crew.connect(&panel).await;
    choose(&panel, example.tunnel, example.exits[1]).await;
    told(&panel, &crew.entry, &name, Some("node_2")).await;
    crew.entry.cut();
    panel.until("it is gone", || async { !panel.state.agents.is_online(example.entry) }).await;
    choices::delete(&panel.state, &admin(), example.tunnel, None).await.unwrap();
    // It is not there: what is to be told is kept.
    assert_eq!(group(&panel, example.tunnel).await.wanted.unwrap().node_id, None);
    crew.entry.connect(&panel).await;
    told(&panel, &crew.entry, &name, None).await;
    panel.until("it is forgotten", || async { group(&panel, example.tunnel).await.wanted.is_none() }).await;
    let seen = group(&panel, example.tunnel).await;
    assert_eq!((seen.choice, seen.now[0].why), (None, InUse::Default));
    panel.stop().await;
}

#[tokio::test]
async fn a_refusal_is_shown_with_its_reason() {
    let world = World::new().await;
    let (example, name) = selector(&world).await;
    let panel = Panel::start(&world).await;
    let crew = Crew::new(&world);
    crew.entry.state().refuses.insert(name, "the disk is full".into());
    crew.connect(&panel).await;
    choose(&panel, example.tunnel, example.exits[1]).await;
    panel.until("it is refused", || async { group(&panel, example.tunnel).await.error.is_some() }).await;
    let seen = group(&panel, example.tunnel).await;
    assert_eq!((seen.error.as_deref(), seen.applied), (Some("the disk is full"), false));
    panel.stop().await;
}
