//! Connecting, and who may answer what.

use crate::fake::{Fake, refused, url};
use crate::panel::{Crew, Example, Panel, World, secret};
use serde_json::json;
use server::agents::CallError;
use shared::address::HostPort;
use shared::api::Event;
use shared::link::{Command, Frame, TcpPing};
use std::time::Duration;

fn ping() -> Command {
    let to = HostPort::new("198.51.100.1", 443);
    Command::TcpPing(TcpPing { ip: to.host, port: to.port, count: 1, timeout: 100 })
}

#[tokio::test]
async fn strangers_are_refused_before_the_upgrade() {
    let world = World::new().await;
    world.node("entry").await;
    let panel = Panel::start(&world).await;
    assert_eq!(refused(url(panel.address, "1", "wrong")).await, 403);
    assert_eq!(refused(url(panel.address, "1", "")).await, 403);
    assert_eq!(refused(url(panel.address, "0", &secret("entry"))).await, 400);
    assert_eq!(refused(format!("ws://{}/system-info", panel.address)).await, 400);
    assert_eq!(panel.state.metrics.agents_refused.get(), 2);
    assert_eq!(panel.state.metrics.agents_online.get(), 0);
    panel.stop().await;
}

#[tokio::test]
async fn what_an_agent_says_of_itself_is_stored_and_told() {
    let world = World::new().await;
    let id = world.node("entry").await;
    let panel = Panel::start(&world).await;
    let mut events = panel.state.bus.subscribe();
    let fake = Fake::new(&world, "entry");
    fake.connect(&panel).await;
    while events.recv().await.unwrap() != (Event::Node { node_id: id, online: true }) {}
    let node = world.db.read().await.unwrap().node(id).await.unwrap().unwrap();
    let can = ["probe-batch", "connect-through", shared::link::GROUPS].map(str::to_owned);
    assert_eq!((node.version.as_str(), node.capabilities), ("9.9", can.to_vec()));
    assert_eq!(node.last_seen, Some(crate::panel::START_MS));

    fake.cut();
    while events.recv().await.unwrap() != (Event::Node { node_id: id, online: false }) {}
    assert!(!panel.state.agents.is_online(id));
    assert_eq!(panel.state.metrics.agents_online.get(), 0);
    panel.stop().await;
}

#[tokio::test]
async fn a_new_connection_replaces_the_old_one_whose_commands_fail_at_once() {
    let world = World::new().await;
    let id = world.node("entry").await;
    let panel = Panel::start(&world).await;
    let fake = Fake::new(&world, "entry");
    fake.state().ignores.insert("TcpPing".into());
    fake.connect(&panel).await;
    let agents = panel.state.agents.clone();
    let call = tokio::spawn(async move { agents.call(id, &ping(), Duration::from_secs(3600)).await });
    panel.until("the command arrived", || async { !fake.state().probed.is_empty() }).await;

    let again = Fake::new(&world, "entry");
    again.connect(&panel).await;
    assert_eq!(call.await.unwrap(), Err(CallError::Offline));
    panel.until("the old connection is closed", || async { fake.is_cut() }).await;
    assert!(panel.state.agents.is_online(id), "the old one's end is not the node's");
    // Not cut, which would look like a bad line.
    assert_eq!(fake.state().closed_with, Some(1001));
    let answer = panel.state.agents.call(id, &ping(), Duration::from_secs(5)).await.unwrap();
    assert_eq!(answer["success"], true);
    assert_eq!(panel.state.metrics.agents_online.get(), 1);
    panel.stop().await;
    again.ended().await;
    assert_eq!(again.state().closed_with, Some(1001));
}

#[tokio::test]
async fn only_the_node_that_was_asked_can_answer() {
    let world = World::new().await;
    let (victim_id, _) = (world.node("victim").await, world.node("liar").await);
    let panel = Panel::start(&world).await;
    let (victim, liar) = (Fake::new(&world, "victim"), Fake::new(&world, "liar"));
    victim.state().ignores.insert("TcpPing".into());
    victim.connect(&panel).await;
    liar.connect(&panel).await;
    let agents = panel.state.agents.clone();
    let call = tokio::spawn(async move { agents.call(victim_id, &ping(), Duration::from_secs(60)).await });
    panel.until("the command arrived", || async { !victim.state().probed.is_empty() }).await;
    let id = victim.state().request_ids.last().cloned();

    let lie = json!({"success":true,"averageTime":0.1,"packetLoss":0,"who":"liar"});
    liar.say(Frame::answer("TcpPing", id.clone(), Ok(lie)));
    // A command of the liar's own that is answered later on the same connection: the lie was read before it.
    let liar_id = world.db.node_by_key(&shared::envelope::link_key(&secret("liar"))).await.unwrap().unwrap();
    panel.state.agents.call(liar_id, &ping(), Duration::from_secs(5)).await.unwrap();
    assert!(!call.is_finished());

    victim.say(Frame::answer("TcpPing", id, Ok(json!({"who":"victim"}))));
    assert_eq!(call.await.unwrap().unwrap()["who"], "victim");
    panel.stop().await;
}

#[tokio::test]
async fn refusals_and_missing_answers_are_told_apart() {
    let world = World::new().await;
    let id = world.node("entry").await;
    let panel = Panel::start(&world).await;
    let agents = &panel.state.agents;
    assert_eq!(agents.call(id, &ping(), Duration::from_secs(5)).await, Err(CallError::Offline));
    let fake = Fake::new(&world, "entry");
    fake.connect(&panel).await;
    let refused = agents.call(id, &Command::Unknown("Nonsense".into()), Duration::from_secs(5)).await;
    assert!(matches!(refused, Err(CallError::Refused(reason)) if reason.contains("Nonsense")));
    fake.state().ignores.insert("TcpPing".into());
    let silent = agents.call(id, &ping(), Duration::from_millis(20)).await;
    assert_eq!(silent, Err(CallError::Timeout(20)));
    agents.disconnect(id);
    panel.until("the connection ended", || async { fake.is_cut() }).await;
    panel.stop().await;
}

#[tokio::test]
async fn a_frame_sealed_with_another_secret_is_left_out() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let panel = Panel::start(&world).await;
    let crew = Crew::new(&world);
    crew.entry.connect(&panel).await;
    let (mut raw, _) =
        tokio_tungstenite::connect_async(url(panel.address, "1", &secret("exit-a"))).await.unwrap();
    use futures_util::SinkExt as _;
    use tokio_tungstenite::tungstenite::Message;
    let hello = json!({"type":"hello","data":{"agent":"x","version":"6.6.6","capabilities":[],"digests":{}}});
    raw.send(Message::Text(hello.to_string().into())).await.unwrap();
    let forged = shared::envelope::Sealer::new("wrong").seal(&hello.to_string(), [0; 12], 0);
    raw.send(Message::Text(forged.into())).await.unwrap();
    // Nothing it understood came, so it is a peer's, with the version of its address.
    panel
        .until("it is taken for a peer's", || async {
            let node = world.db.read().await.unwrap().node(example.exits[0]).await.unwrap().unwrap();
            node.version == "1.0 (test)"
        })
        .await;
    panel.stop().await;
}
