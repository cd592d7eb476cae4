//! Measuring and choosing.

use crate::panel::{Crew, Example, Panel, World};
use shared::api::{DecisionState, Event, PinRecord};
use shared::best_exit::{Leg, LegFailure, Reason};
use shared::link::{ChainNodeReport, ChainReport};

const TARGET: &str = "target.example:443";

async fn running<'a>(world: &'a World, example: &Example, crew: &Crew) -> Panel<'a> {
    let panel = Panel::start(world).await;
    crew.connect(&panel).await;
    panel.applied(example.tunnel).await;
    panel.reason(example.tunnel, example.entry, "current_is_best").await;
    crew.all().for_each(|fake| drop(fake.take_commands()));
    panel
}

#[tokio::test]
async fn a_better_exit_takes_over_new_connections() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let crew = Crew::new(&world);
    let panel = running(&world, &example, &crew).await;
    let [a, b, c] = example.exits;
    let before = panel.owner(example.tunnel, example.entry).await;
    assert_eq!(before.applied_exit_node_id, Some(a));
    assert_eq!(before.next_switch_possible_at, None);
    let mut events = panel.state.bus.subscribe();

    // The first exit becomes slow to its targets; the third is better than the second.
    crew.exits[0].latency(TARGET, 300.0);
    crew.exits[1].latency(TARGET, 50.0);
    loop {
        match events.recv().await.unwrap() {
            Event::Switch { tunnel_id, owner_node_id, from, to, at } => {
                assert_eq!((tunnel_id, owner_node_id), (example.tunnel, example.entry));
                assert_eq!((from, to), (Some(a), c));
                assert_eq!(at, crate::panel::START_MS);
                break;
            }
            _ => continue,
        }
    }
    let order = [
        world.relay(example.tunnel, c).await,
        world.relay(example.tunnel, b).await,
        world.relay(example.tunnel, a).await,
    ];
    assert_eq!(crew.entry.order(&example.chain()), order, "the new best first, then by rank");
    assert_eq!(crew.entry.take_commands(), [format!("+{}", example.chain())], "no service is touched");
    for exit in &crew.exits {
        assert_eq!(exit.take_commands(), Vec::<String>::new());
    }

    let owner = panel.reason(example.tunnel, example.entry, "current_is_best").await;
    assert_eq!(owner.applied_exit_node_id, Some(c));
    assert_eq!(owner.applied_order, [c, b, a]);
    assert_eq!(owner.candidates[0].exit_node_id, c);
    assert_eq!(owner.next_switch_possible_at, Some(crate::panel::START_MS + 30_000));
    assert_eq!(owner.last_switch.unwrap().result, "applied");
    let summary = panel.state.best_exit.summary(example.tunnel).unwrap();
    assert_eq!((summary.status, summary.summary.as_str()), (DecisionState::Applied, "exit-c"));

    // Stored, logged, planned, counted.
    panel
        .until("it is stored", || async {
            let stored = world.db.decisions().await.unwrap();
            stored.len() == 1 && stored[0].order == [c, b, a] && stored[0].proposed.is_none()
        })
        .await;
    let log = world.log(example.tunnel).await;
    let switch = log.iter().find(|entry| entry.reason.code() == "switched").unwrap();
    assert_eq!((switch.from_exit_node_id, switch.to_exit_node_id), (Some(a), Some(c)));
    assert_eq!(switch.candidates.len(), 3);
    assert!(log.iter().any(|entry| entry.reason.code() == "confirming"));
    assert_eq!(panel.state.metrics.switches.get(), 1);
    panel
        .until("the plan holds the new order", || async {
            let plans = panel.state.agents.plans().unwrap();
            plans.intent.applied.get(&(example.tunnel, example.entry)) == Some(&vec![c, b, a])
        })
        .await;
    panel.rounds(3).await;
    assert_eq!(crew.entry.take_commands(), Vec::<String>::new(), "the plan is what runs already");

    // Back only after the cooldown.
    crew.exits[0].latency(TARGET, 1.0);
    crew.exits[2].latency(TARGET, 400.0);
    let owner = panel.reason(example.tunnel, example.entry, "cooldown").await;
    assert_eq!(owner.pending.unwrap().exit_node_id, a);
    panel.rounds(3).await;
    assert_eq!(crew.entry.take_commands(), Vec::<String>::new());
    panel.after_cooldown();
    panel.until("it is back", || async { panel.state.metrics.switches.get() == 2 }).await;
    assert_eq!(panel.owner(example.tunnel, example.entry).await.applied_exit_node_id, Some(a));
    panel.stop().await;
}

#[tokio::test]
async fn one_dead_port_among_several_speaks_for_nobody() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let second = world.tunnel("second", &[example.entry], &example.exits).await;
    let crew = Crew::new(&world);
    let panel = running(&world, &example, &crew).await;
    panel.reason(second, example.entry, "current_is_best").await;
    // Whichever of the two is measured: it refuses, and the other one is asked instead.
    let ports =
        [world.relay(example.tunnel, example.exits[0]).await, world.relay(second, example.exits[0]).await];
    assert_ne!(ports[0], ports[1]);
    for dead in &ports {
        crew.entry.latency(dead, f64::INFINITY);
        panel.rounds(8).await;
        crew.entry.latency(dead, 10.0);
        assert_eq!(panel.state.metrics.switches.get(), 0, "{dead}");
    }
    // When all refuse, the exit is left.
    ports.iter().for_each(|port| crew.entry.latency(port, f64::INFINITY));
    panel.until("both tunnels leave it", || async { panel.state.metrics.switches.get() == 2 }).await;
    panel.stop().await;
}

#[tokio::test]
async fn a_refused_order_changes_nothing_and_is_tried_again_after_the_wait() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let crew = Crew::new(&world);
    let panel = running(&world, &example, &crew).await;
    let order = crew.entry.order(&example.chain());
    crew.entry.state().refuses.insert(example.chain(), "hop 1: bad".into());
    crew.exits[0].latency(TARGET, f64::INFINITY);
    let owner = panel.reason(example.tunnel, example.entry, "apply_retry_wait").await;
    assert_eq!(owner.applied_exit_node_id, Some(example.exits[0]));
    let failed = owner.last_switch.unwrap();
    assert_eq!((failed.to_exit_node_id, failed.result.as_str()), (example.exits[1], "hop 1: bad"));
    panel
        .until("it is logged", || async {
            let log = world.log(example.tunnel).await;
            let failed = log.iter().find(|entry| entry.reason.code() == "apply_failed");
            failed.is_some_and(|entry| {
                entry.reason == Reason::ApplyFailed { exit: example.exits[1], error: "hop 1: bad".into() }
            })
        })
        .await;
    assert_eq!(crew.entry.take_commands().len(), 1);
    panel.rounds(4).await;
    assert_eq!(crew.entry.take_commands(), Vec::<String>::new(), "not before the wait is over");
    assert_eq!(crew.entry.order(&example.chain()), order);
    panel
        .until("nothing is proposed any more", || async {
            world.db.decisions().await.unwrap().iter().all(|decision| decision.proposed.is_none())
        })
        .await;

    crew.entry.state().refuses.clear();
    panel.after_cooldown();
    panel.until("it is accepted", || async { panel.state.metrics.switches.get() == 1 }).await;
    assert_eq!(crew.entry.take_commands(), [format!("+{}", example.chain())]);
    panel.stop().await;
}

#[tokio::test]
async fn an_unanswered_order_leaves_the_chain_alone_and_is_sent_again() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let crew = Crew::new(&world);
    let panel = running(&world, &example, &crew).await;
    crew.entry.state().ignores.insert("UpdateChains".into());
    crew.exits[0].latency(TARGET, f64::INFINITY);
    // Waits for the real deadline of a command.
    panel.reason(example.tunnel, example.entry, "apply_retry_wait").await;
    panel.rounds(5).await;
    let chain = format!("+{}", example.chain());
    assert_eq!(crew.entry.take_commands(), std::slice::from_ref(&chain), "neither order is sent meanwhile");
    crew.entry.state().ignores.clear();
    panel.after_cooldown();
    panel.until("it is accepted", || async { panel.state.metrics.switches.get() == 1 }).await;
    assert_eq!(crew.entry.take_commands(), [chain]);
    let first = world.relay(example.tunnel, example.exits[1]).await;
    assert_eq!(crew.entry.order(&example.chain())[0], first);
    panel.stop().await;
}

#[tokio::test]
async fn an_unanswered_order_that_is_not_wanted_any_more_is_taken_back() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let crew = Crew::new(&world);
    let panel = running(&world, &example, &crew).await;
    let order = crew.entry.order(&example.chain());
    crew.entry.state().ignores.insert("UpdateChains".into());
    crew.exits[0].latency(TARGET, f64::INFINITY);
    panel.reason(example.tunnel, example.entry, "apply_retry_wait").await;
    crew.entry.state().ignores.clear();
    crew.exits[0].latency(TARGET, 1.0);
    panel.reason(example.tunnel, example.entry, "current_is_best").await;
    panel.applied(example.tunnel).await;
    assert_eq!(crew.entry.take_commands().len(), 2);
    assert_eq!(crew.entry.order(&example.chain()), order);
    assert_eq!(panel.state.metrics.switches.get(), 0);
    panel.stop().await;
}

#[tokio::test]
async fn a_failed_ping_of_a_peer_is_a_failed_leg() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let crew = Crew::new(&world);
    crew.exits[0].state().peer = true;
    crew.exits[0].latency(TARGET, f64::INFINITY);
    let panel = Panel::start(&world).await;
    crew.connect(&panel).await;
    panel.until("it moved away", || async { panel.state.metrics.switches.get() == 1 }).await;
    let owner = panel.owner(example.tunnel, example.entry).await;
    let last = owner.candidates.last().unwrap();
    assert_eq!(last.exit_node_id, example.exits[0]);
    assert_eq!(last.leg_b, Leg::Failed { reason: LegFailure::Unsuccessful });
    assert_eq!(last.score, None);
    panel.stop().await;
}

#[tokio::test]
async fn a_silent_owner_is_skipped_and_its_exits_have_not_failed() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let crew = Crew::new(&world);
    let panel = running(&world, &example, &crew).await;
    crew.entry.state().ignores.insert("ProbeBatch".into());
    crew.exits[0].latency(TARGET, 500.0);
    let owner = panel.reason(example.tunnel, example.entry, "owner_offline").await;
    assert!(owner.online, "connected, but it does not answer");
    assert!(owner.candidates.iter().all(|candidate| candidate.score.is_some()), "as last seen");
    assert_eq!(panel.state.metrics.switches.get(), 0);

    // When it answers again the others are measured as before.
    crew.entry.state().ignores.clear();
    panel.until("it decides again", || async { panel.state.metrics.switches.get() == 1 }).await;
    panel.stop().await;
}

#[tokio::test]
async fn a_silent_exit_delays_nobody_and_is_not_asked_twice_at_once() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let crew = Crew::new(&world);
    let panel = running(&world, &example, &crew).await;
    crew.exits[1].state().ignores.insert("ProbeBatch".into());
    crew.exits[0].latency(TARGET, 500.0);
    panel
        .until("the decision goes on without it", || async { panel.state.metrics.switches.get() == 1 })
        .await;
    let owner = panel.owner(example.tunnel, example.entry).await;
    assert_eq!(owner.applied_exit_node_id, Some(example.exits[2]));
    let silent = owner.candidates.iter().find(|c| c.exit_node_id == example.exits[1]).unwrap();
    assert!(matches!(silent.leg_b, Leg::Unmeasured { .. }));
    panel.stop().await;
}

#[tokio::test]
async fn an_exit_whose_agent_is_gone_is_kept_for_a_while() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let crew = Crew::new(&world);
    let panel = running(&world, &example, &crew).await;
    crew.exits[0].cut();
    let owner = panel.reason(example.tunnel, example.entry, "current_unmeasured").await;
    assert_eq!(owner.reason, Reason::CurrentUnmeasured { remaining_ms: 60_000 });
    panel.rounds(5).await;
    assert_eq!(panel.state.metrics.switches.get(), 0);

    // Back in time: nothing happened.
    crew.exits[0].connect(&panel).await;
    panel.reason(example.tunnel, example.entry, "current_is_best").await;
    // Away for longer: the others take over.
    crew.exits[0].cut();
    panel.reason(example.tunnel, example.entry, "current_unmeasured").await;
    world.hands.advance_ms(60_001);
    panel.until("it moved away", || async { panel.state.metrics.switches.get() == 1 }).await;
    panel.stop().await;
}

#[tokio::test]
async fn each_leg_is_measured_once_a_round_whoever_shares_it() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    for n in 0..9 {
        world.tunnel(&format!("more-{n}"), &[example.entry], &example.exits).await;
    }
    // One round only, as far as this test looks.
    world.settings(|settings| settings.monitor_tunnel_quality_enabled = false).await;
    let crew = Crew::new(&world);
    let panel = Panel::start(&world).await;
    crew.connect(&panel).await;
    panel.applied(example.tunnel).await;
    panel.reason(example.tunnel, example.entry, "paused").await;
    assert!(crew.all().all(|fake| fake.state().probed.is_empty()), "nothing is measured while it is off");
    let summary = panel.state.best_exit.summary(example.tunnel).unwrap();
    assert_eq!(summary.status, DecisionState::Paused);

    world
        .settings(|settings| {
            settings.round_interval_ms = 3_600_000;
            settings.ping_timeout_ms = 1000;
        })
        .await;
    let before = panel.state.metrics.rounds.get();
    panel.wake();
    panel.reason(example.tunnel, example.entry, "current_is_best").await;
    panel.until("the round ended", || async { panel.state.metrics.rounds.get() > before }).await;
    for exit in &crew.exits {
        let probed = exit.state().probed.clone();
        assert_eq!(probed, [(TARGET.to_owned(), 1)].into());
    }
    let probed = crew.entry.state().probed.clone();
    assert_eq!(probed.len(), 3, "ten tunnels share the way to each of three exits: {probed:?}");
    assert!(probed.values().all(|times| *times == 1), "{probed:?}");
    panel.stop().await;
}

#[tokio::test]
async fn a_pin_is_obeyed_and_its_end_is_respected() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let crew = Crew::new(&world);
    crew.exits[2].latency(TARGET, 200.0);
    let panel = running(&world, &example, &crew).await;
    let pin = PinRecord {
        exit_node_id: example.exits[2],
        owner_node_id: None,
        until: Some(crate::panel::START_MS + 1_000_000),
        reason: "test".into(),
        author: "admin".into(),
        created_at: crate::panel::START_MS,
    };
    let mut tx = world.db.write().await.unwrap();
    tx.put_pin(example.tunnel, &pin).await.unwrap();
    tx.commit().await.unwrap();
    panel.wake();
    let owner = panel.reason(example.tunnel, example.entry, "pinned").await;
    assert_eq!(owner.applied_exit_node_id, Some(example.exits[2]));
    assert_eq!(owner.pin, Some(pin));

    world.hands.advance_ms(1_000_000);
    panel.until("the pin has ended", || async { panel.state.metrics.switches.get() == 2 }).await;
    let owner = panel.owner(example.tunnel, example.entry).await;
    assert_eq!((owner.applied_exit_node_id, owner.pin), (Some(example.exits[0]), None));
    panel.stop().await;
}

#[tokio::test]
async fn real_use_is_shown_per_exit() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let crew = Crew::new(&world);
    let panel = running(&world, &example, &crew).await;
    assert_eq!(panel.owner(example.tunnel, example.entry).await.in_use, []);
    let node = |addr: String, open| ChainNodeReport {
        name: "node_1".into(),
        addr,
        connections: 7,
        open,
        failures: 1,
        marked: false,
        probe: None,
    };
    let nodes =
        vec![node(world.relay(example.tunnel, example.exits[1]).await, 3), node("203.0.113.1:1".into(), 9)];
    crew.entry.report(vec![ChainReport { name: example.chain(), nodes }]);
    panel
        .until("the report arrived", || async {
            !panel.owner(example.tunnel, example.entry).await.in_use.is_empty()
        })
        .await;
    let used = panel.owner(example.tunnel, example.entry).await.in_use;
    assert_eq!(used.len(), 1);
    assert_eq!((used[0].exit_node_id, used[0].open, used[0].connections), (example.exits[1], 3, 7));
    panel.stop().await;
}

#[tokio::test]
async fn edits_keep_the_applied_order_and_forget_who_left() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let crew = Crew::new(&world);
    crew.exits[0].latency(TARGET, 400.0);
    crew.exits[2].latency(TARGET, 90.0);
    let panel = Panel::start(&world).await;
    crew.connect(&panel).await;
    let [a, b, c] = example.exits;
    panel.until("it switched", || async { panel.state.metrics.switches.get() == 1 }).await;
    assert_eq!(panel.owner(example.tunnel, example.entry).await.applied_order, [b, c, a]);

    world
        .edit_tunnel(example.tunnel, |tunnel| {
            let nodes = &mut tunnel.exit.as_mut().unwrap().nodes;
            nodes.retain(|member| member.node_id != c);
        })
        .await;
    panel.wake();
    panel.applied(example.tunnel).await;
    let expected = [world.relay(example.tunnel, b).await, world.relay(example.tunnel, a).await];
    assert_eq!(crew.entry.order(&example.chain()), expected, "the applied exit stays in front");
    panel
        .until("the stored order follows", || async {
            world.db.decisions().await.unwrap().first().is_some_and(|d| d.order == [b, a])
        })
        .await;
    assert_eq!(panel.state.metrics.switches.get(), 1);

    // The applied exit itself leaves: the next one is in front, which no rule decided.
    world
        .edit_tunnel(example.tunnel, |tunnel| {
            let nodes = &mut tunnel.exit.as_mut().unwrap().nodes;
            nodes.retain(|member| member.node_id == a);
        })
        .await;
    panel.wake();
    panel.reason(example.tunnel, example.entry, "single_exit").await;
    assert_eq!(panel.state.best_exit.summary(example.tunnel), None);
    world.edit_tunnel(example.tunnel, |tunnel| tunnel.enabled = false).await;
    panel.wake();
    panel.reason(example.tunnel, example.entry, "incomplete").await;
    assert_eq!(panel.state.metrics.switches.get(), 1);
    panel.stop().await;
}
