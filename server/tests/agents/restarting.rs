//! The panel goes and comes back.

use crate::panel::{Crew, Example, Panel, World};

const TARGET: &str = "target.example:443";

/// Runs until the entry has switched to the second exit.
async fn switched(world: &World, example: &Example, crew: &Crew) {
    crew.exits[0].latency(TARGET, 400.0);
    crew.exits[2].latency(TARGET, 90.0);
    let panel = Panel::start(world).await;
    crew.connect(&panel).await;
    panel.until("it switched", || async { panel.state.metrics.switches.get() == 1 }).await;
    panel.applied(example.tunnel).await;
    panel.stop().await;
    crew.all().for_each(|fake| drop(fake.take_commands()));
}

#[tokio::test]
async fn a_restart_alone_switches_and_sends_nothing() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let crew = Crew::new(&world);
    switched(&world, &example, &crew).await;
    let order = crew.entry.order(&example.chain());
    let entries = world.log(example.tunnel).await.len();
    // Long after, when neither cooldown nor evidence of before counts.
    world.hands.advance_ms(600_000);

    let panel = Panel::start(&world).await;
    crew.connect(&panel).await;
    let owner = panel.reason(example.tunnel, example.entry, "current_is_best").await;
    assert_eq!(owner.applied_exit_node_id, Some(example.exits[1]));
    assert_eq!(owner.last_switch.unwrap().to_exit_node_id, example.exits[1]);
    panel.applied(example.tunnel).await;
    panel.rounds(5).await;
    for fake in crew.all() {
        assert_eq!(fake.take_commands(), Vec::<String>::new());
    }
    assert_eq!(panel.state.metrics.switches.get(), 0);
    assert_eq!(crew.entry.order(&example.chain()), order);
    panel.stop().await;
    assert_eq!(world.log(example.tunnel).await.len(), entries, "and it is no news for the log");
}

#[tokio::test]
async fn the_cooldown_goes_on_over_a_restart() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let crew = Crew::new(&world);
    switched(&world, &example, &crew).await;
    world.hands.advance_ms(10_000);
    crew.exits[1].latency(TARGET, f64::INFINITY);
    let panel = Panel::start(&world).await;
    crew.connect(&panel).await;
    panel.reason(example.tunnel, example.entry, "cooldown").await;
    let owner = panel.owner(example.tunnel, example.entry).await;
    assert_eq!(owner.next_switch_possible_at, Some(crate::panel::START_MS + 30_000));
    world.hands.advance_ms(20_001);
    panel.until("it switched", || async { panel.state.metrics.switches.get() == 1 }).await;
    panel.stop().await;
}

#[tokio::test]
async fn an_order_accepted_by_a_dying_connection_is_adopted() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let crew = Crew::new(&world);
    let panel = Panel::start(&world).await;
    crew.connect(&panel).await;
    panel.reason(example.tunnel, example.entry, "current_is_best").await;
    panel.applied(example.tunnel).await;
    crew.entry.take_commands();
    crew.entry.state().dies_in_update = true;
    crew.exits[0].latency(TARGET, f64::INFINITY);
    panel.until("it died", || async { crew.entry.is_cut() }).await;
    panel.until("the panel saw it", || async { !panel.state.agents.is_online(example.entry) }).await;
    let order = crew.entry.order(&example.chain());
    assert_eq!(order[0], world.relay(example.tunnel, example.exits[1]).await);
    assert_eq!(
        panel.owner(example.tunnel, example.entry).await.applied_exit_node_id,
        Some(example.exits[0]),
        "nobody said yes"
    );

    crew.entry.connect(&panel).await;
    panel.until("it is adopted", || async { panel.state.metrics.switches.get() == 1 }).await;
    panel.applied(example.tunnel).await;
    panel.rounds(3).await;
    assert_eq!(crew.entry.take_commands(), [format!("+{}", example.chain())], "sent once, never back");
    assert_eq!(crew.entry.order(&example.chain()), order);
    let owner = panel.owner(example.tunnel, example.entry).await;
    assert_eq!(owner.applied_exit_node_id, Some(example.exits[1]));
    panel.stop().await;
}

#[tokio::test]
async fn an_order_on_its_way_when_the_panel_stopped_is_adopted() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let crew = Crew::new(&world);
    let panel = Panel::start(&world).await;
    crew.connect(&panel).await;
    panel.reason(example.tunnel, example.entry, "current_is_best").await;
    panel.applied(example.tunnel).await;
    crew.entry.take_commands();
    crew.entry.state().dies_in_update = true;
    crew.exits[0].latency(TARGET, f64::INFINITY);
    panel.until("it died", || async { crew.entry.is_cut() }).await;
    panel.stop().await;
    let stored = world.db.decisions().await.unwrap();
    assert!(stored[0].proposed.is_some() && stored[0].order[0] == example.exits[0], "{stored:?}");

    let panel = Panel::start(&world).await;
    crew.connect(&panel).await;
    panel
        .until("it is adopted", || async {
            let owner = panel.owner(example.tunnel, example.entry).await;
            owner.applied_exit_node_id == Some(example.exits[1])
        })
        .await;
    panel.rounds(3).await;
    assert_eq!(crew.entry.take_commands(), [format!("+{}", example.chain())], "sent once, never back");
    panel
        .until("it is stored", || async {
            let stored = world.db.decisions().await.unwrap();
            stored[0].proposed.is_none() && stored[0].order[0] == example.exits[1]
        })
        .await;
    panel.stop().await;
}

#[tokio::test]
async fn a_lost_agent_state_is_rendered_with_the_applied_order() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let crew = Crew::new(&world);
    switched(&world, &example, &crew).await;
    let order = crew.entry.order(&example.chain());
    {
        let mut state = crew.entry.state();
        state.runs.clear();
        state.chains.clear();
    }
    let panel = Panel::start(&world).await;
    crew.connect(&panel).await;
    panel.applied(example.tunnel).await;
    assert_eq!(crew.entry.order(&example.chain()), order);
    assert_eq!(panel.state.metrics.switches.get(), 0);
    panel.stop().await;
}
