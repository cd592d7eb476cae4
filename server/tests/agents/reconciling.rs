//! Making nodes run what they should.

use crate::fake::Fake;
use crate::panel::{Crew, Example, Panel, World};
use shared::api::DeploymentStatus;
use shared::link::digest;

/// Both services of the example's forward.
fn services(sign: char, example: &Example) -> [String; 2] {
    ["tcp", "udp"].map(|kind| format!("{sign}{}_1_0_{kind}", example.forward))
}

fn after(
    first: impl IntoIterator<Item = String>,
    then: impl IntoIterator<Item = String>,
) -> Vec<Vec<String>> {
    vec![first.into_iter().collect(), then.into_iter().collect()]
}

/// What the entry was sent: chains and services, in the order of these kinds, sorted within each.
fn sent(crew: &Crew) -> Vec<Vec<String>> {
    let mut kinds: Vec<Vec<String>> = Vec::new();
    for command in crew.entry.take_commands() {
        let is_chain = |text: &str| text[1..].starts_with("chains_");
        match kinds.last_mut() {
            Some(kind) if is_chain(&kind[0]) == is_chain(&command) => kind.push(command),
            _ => kinds.push(vec![command]),
        }
    }
    kinds.iter_mut().for_each(|kind| kind.sort());
    kinds
}

#[tokio::test]
async fn everybody_gets_his_part_and_the_chain_before_its_service() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let panel = Panel::start(&world).await;
    let crew = Crew::new(&world);
    crew.connect(&panel).await;
    panel.applied(example.tunnel).await;
    panel
        .until("the forward is applied", || async {
            let forward = panel.state.agents.forward_deployment(example.forward);
            forward.iter().all(|node| node.status == DeploymentStatus::Applied)
        })
        .await;
    assert_eq!(sent(&crew), after([format!("+{}", example.chain())], services('+', &example)));
    for exit in &crew.exits {
        assert_eq!(exit.take_commands(), [format!("+tunnel_{}", example.tunnel)]);
    }

    // What pages show is what is running, without the password.
    let runtime = panel.state.agents.runtime(example.tunnel).await;
    assert_eq!(runtime.len(), 4);
    assert!(runtime.iter().all(|node| node.status == DeploymentStatus::Applied));
    let text = serde_json::to_string(&runtime).unwrap();
    assert!(!text.contains("\"p\"") && text.contains("***"), "{text}");
    assert_eq!(runtime[0].config.services.len(), 2, "for connections and for datagrams");
    panel.stop().await;
}

#[tokio::test]
async fn a_reconnect_sends_the_difference_and_touches_nobody_else() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let panel = Panel::start(&world).await;
    let crew = Crew::new(&world);
    crew.connect(&panel).await;
    panel.applied(example.tunnel).await;
    panel.rounds(2).await;
    crew.all().for_each(|fake| drop(fake.take_commands()));

    // Nothing changed: nothing is sent.
    crew.exits[1].cut();
    panel.until("it is gone", || async { !panel.state.agents.is_online(example.exits[1]) }).await;
    crew.exits[1].connect(&panel).await;
    panel.applied(example.tunnel).await;
    panel.rounds(2).await;
    for fake in crew.all() {
        assert_eq!(fake.take_commands(), Vec::<String>::new());
    }

    // It lost one object and kept one that is ours but not wanted.
    crew.exits[1].cut();
    panel.until("it is gone", || async { !panel.state.agents.is_online(example.exits[1]) }).await;
    {
        let mut state = crew.exits[1].state();
        state.runs.clear();
        state.runs.insert("service:tunnel_999".into(), "old".into());
        state.runs.insert("service:web".into(), "not ours".into());
    }
    crew.exits[1].connect(&panel).await;
    let relay = format!("tunnel_{}", example.tunnel);
    panel.until("the difference is sent", || async { crew.exits[1].state().commands.len() == 2 }).await;
    panel.rounds(2).await;
    assert_eq!(crew.exits[1].take_commands(), [format!("+{relay}"), "-tunnel_999".into()]);
    assert!(crew.exits[1].state().runs.contains_key("service:web"));
    for fake in [&crew.entry, &crew.exits[0], &crew.exits[2]] {
        assert_eq!(fake.take_commands(), Vec::<String>::new());
    }
    panel.stop().await;
}

#[tokio::test]
async fn an_edit_sends_only_what_changed_and_an_offline_node_gets_its_part_later() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let panel = Panel::start(&world).await;
    let crew = Crew::new(&world);
    crew.connect(&panel).await;
    panel.applied(example.tunnel).await;
    panel.rounds(2).await;
    crew.all().for_each(|fake| drop(fake.take_commands()));
    crew.exits[2].cut();
    panel.until("it is gone", || async { !panel.state.agents.is_online(example.exits[2]) }).await;

    // The last exit leaves the tunnel while its node is away.
    world.edit_tunnel(example.tunnel, |tunnel| drop(tunnel.exit.as_mut().unwrap().nodes.pop())).await;
    panel.wake();
    panel.applied(example.tunnel).await;
    assert_eq!(crew.entry.take_commands(), [format!("+{}", example.chain())], "no service is touched");
    assert_eq!(crew.exits[0].take_commands(), Vec::<String>::new());
    crew.exits[2].connect(&panel).await;
    panel.until("the relay is removed", || async { !crew.exits[2].state().commands.is_empty() }).await;
    assert_eq!(crew.exits[2].take_commands(), [format!("-tunnel_{}", example.tunnel)]);

    // Off: everything goes, services before their chain.
    world.edit_tunnel(example.tunnel, |tunnel| tunnel.enabled = false).await;
    panel.wake();
    panel.until("the chain is gone", || async { crew.entry.state().commands.len() == 3 }).await;
    assert_eq!(sent(&crew), after(services('-', &example), [format!("-{}", example.chain())]));
    panel.stop().await;
}

#[tokio::test]
async fn a_refused_object_is_shown_and_the_rest_is_applied() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let panel = Panel::start(&world).await;
    let crew = Crew::new(&world);
    let service = format!("{}_1_0_tcp", example.forward);
    crew.entry.state().refuses.insert(service.clone(), "address already in use".into());
    crew.connect(&panel).await;
    panel.applied(example.tunnel).await;
    let forward = || panel.state.agents.forward_deployment(example.forward).remove(0);
    panel.until("it failed", || async { forward().status == DeploymentStatus::Failed }).await;
    assert_eq!(forward().reason.as_deref(), Some("address already in use"));
    let runtime = panel.state.agents.runtime(example.tunnel).await;
    assert_eq!(runtime[0].status, DeploymentStatus::Failed);

    // It is not hammered, and tried again after its wait.
    crew.entry.take_commands();
    panel.wake();
    panel.rounds(2).await;
    assert_eq!(crew.entry.take_commands(), Vec::<String>::new());
    crew.entry.state().refuses.clear();
    world.hands.advance_ms(5_000);
    panel.wake();
    panel.until("it is applied", || async { forward().status == DeploymentStatus::Applied }).await;
    assert_eq!(crew.entry.take_commands(), [format!("+{service}")]);
    panel.stop().await;
}

#[tokio::test]
async fn a_peers_agent_gets_its_objects_once_per_connection() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let off = world.tunnel("off", &[example.exits[1]], &[example.exits[0], example.exits[2]]).await;
    world.edit_tunnel(off, |tunnel| tunnel.enabled = false).await;
    let panel = Panel::start(&world).await;
    let crew = Crew::new(&world);
    crew.exits[0].state().peer = true;
    crew.connect(&panel).await;
    panel.applied(example.tunnel).await;
    let relay = format!("+tunnel_{}", example.tunnel);
    // It may still run what was disabled when nobody was looking.
    let leftovers =
        [format!("-tunnel_{off}"), format!("-chains_{off}"), format!("-chains_{}", example.tunnel)];
    panel.until("it is tidy", || async { crew.exits[0].state().commands.len() == 1 + leftovers.len() }).await;
    let mut sent = crew.exits[0].take_commands();
    assert_eq!(sent.remove(0), relay);
    sent.sort();
    let mut expected = leftovers.to_vec();
    expected.sort();
    assert_eq!(sent, expected);
    panel.rounds(3).await;
    assert_eq!(crew.exits[0].take_commands(), Vec::<String>::new());
    panel.stop().await;
}

#[tokio::test]
async fn an_agent_that_changed_by_itself_is_set_right() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let panel = Panel::start(&world).await;
    let crew = Crew::new(&world);
    crew.connect(&panel).await;
    panel.applied(example.tunnel).await;
    crew.exits[0].take_commands();
    let hello = shared::link::Hello {
        agent: "fake".into(),
        version: "9.9".into(),
        capabilities: vec!["probe-batch".into()],
        digests: [(format!("service:tunnel_{}", example.tunnel), digest(&"another"))].into(),
        failed: Default::default(),
    };
    crew.exits[0].say(shared::link::Frame::message("hello", serde_json::json!(hello)));
    panel.until("it is set right", || async { !crew.exits[0].state().commands.is_empty() }).await;
    assert_eq!(crew.exits[0].take_commands(), [format!("+tunnel_{}", example.tunnel)]);
    panel.stop().await;
}

#[tokio::test]
async fn nothing_is_removed_before_there_is_a_plan() {
    // An agent that is faster than the panel's first look into its database keeps what it runs.
    let world = World::new().await;
    let example = Example::new(&world).await;
    let panel = Panel::start(&world).await;
    let crew = Crew::new(&world);
    crew.connect(&panel).await;
    panel.applied(example.tunnel).await;
    panel.stop().await;
    crew.all().for_each(|fake| drop(fake.take_commands()));
    for _ in 0..5 {
        let panel = Panel::start(&world).await;
        let fake: &Fake = &crew.entry;
        fake.connect(&panel).await;
        panel
            .until("it is identified", || async {
                panel
                    .state
                    .agents
                    .deployment(example.tunnel)
                    .first()
                    .is_some_and(|node| node.status == DeploymentStatus::Applied)
            })
            .await;
        assert_eq!(fake.take_commands(), Vec::<String>::new());
        panel.stop().await;
    }
}

#[tokio::test]
async fn a_redeploy_sends_everything_of_the_tunnel_again_and_nothing_else() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let panel = Panel::start(&world).await;
    let crew = Crew::new(&world);
    crew.connect(&panel).await;
    panel.applied(example.tunnel).await;
    panel.rounds(2).await;
    crew.all().for_each(|fake| drop(fake.take_commands()));

    panel.state.agents.redeploy(shared::ids::TunnelId(999));
    panel.rounds(2).await;
    assert!(crew.all().all(|fake| fake.state().commands.is_empty()), "there is no such tunnel");

    panel.state.agents.redeploy(example.tunnel);
    let busy = || async { crew.all().all(|fake| !fake.state().commands.is_empty()) };
    panel.until("everybody is sent something", busy).await;
    panel.applied(example.tunnel).await;
    panel.until("the entry has all", || async { crew.entry.state().commands.len() >= 3 }).await;
    assert_eq!(sent(&crew), after([format!("+{}", example.chain())], services('+', &example)));
    for exit in &crew.exits {
        assert_eq!(exit.take_commands(), [format!("+tunnel_{}", example.tunnel)]);
    }
    panel.stop().await;
}
