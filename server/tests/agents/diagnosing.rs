//! Diagnosis.

use crate::panel::{Crew, Example, Panel, World};
use futures_util::StreamExt as _;
use server::diagnose;
use shared::api::DiagnoseLine;

#[tokio::test]
async fn every_pair_and_every_exit_is_tried() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let crew = Crew::new(&world);
    let panel = Panel::start(&world).await;
    for fake in [&crew.entry, &crew.exits[0], &crew.exits[1]] {
        fake.connect(&panel).await;
    }
    panel.state.agents.replanned().await;
    crew.entry.latency(&world.relay(example.tunnel, example.exits[1]).await, f64::INFINITY);
    crew.exits[0].latency("target.example:443", 12.5);
    let lines: Vec<DiagnoseLine> = diagnose::tunnel(&panel.state, example.tunnel).collect().await;

    let DiagnoseLine::Start { items } = &lines[0] else { panic!("{:?}", lines[0]) };
    let text: Vec<String> =
        items.iter().map(|item| format!("{} {} {}", item.kind, item.from, item.to)).collect();
    assert_eq!(
        text,
        [
            "link entry exit-a",
            "link entry exit-b",
            "link entry exit-c",
            "target exit-a target.example:443",
            "target exit-b target.example:443",
            "target exit-c target.example:443",
            "connection entry exit-a → target.example:443",
            "connection entry exit-b → target.example:443",
            "connection entry exit-c → target.example:443",
        ]
    );
    let mut results = vec![None; items.len()];
    for line in &lines[1..lines.len() - 1] {
        let DiagnoseLine::Item { index, success, latency_ms, message, .. } = line else { panic!("{line:?}") };
        assert!(results[*index].replace((*success, *latency_ms, message.clone())).is_none());
    }
    let results: Vec<_> = results.into_iter().map(Option::unwrap).collect();
    let worked: Vec<bool> = results.iter().map(|(success, ..)| *success).collect();
    assert_eq!(worked, [true, false, true, true, true, false, true, false, true]);
    assert_eq!(results[3].1, Some(12.5));
    assert!(results[1].2.contains("all attempts failed"), "{}", results[1].2);
    assert!(results[5].2.contains("exit-c") && results[5].2.contains("offline"), "{}", results[5].2);
    let codes = lines.iter().filter_map(|line| match line {
        DiagnoseLine::Item { index, code: Some(code), .. } => Some((*index, code.as_str())),
        _ => None,
    });
    assert_eq!(codes.collect::<Vec<_>>(), [(5, "node_offline")], "what the page can say in its own words");
    assert_eq!(results[6].1, Some(20.0), "by way of the first exit");
    assert!(results[7].2.contains("no node could be used"), "{}", results[7].2);
    assert_eq!(lines.last(), Some(&DiagnoseLine::Done { succeeded: 6, failed: 3 }));

    let lines: Vec<DiagnoseLine> = diagnose::forward(&panel.state, example.forward).collect().await;
    let DiagnoseLine::Start { items } = &lines[0] else { panic!("{:?}", lines[0]) };
    assert_eq!(items.len(), 9);
    assert_eq!(items[3].to, "service.example:80", "the forward's own target");
    assert_eq!(items[6].to, "exit-a → service.example:80");
    panel.stop().await;
}

#[tokio::test]
async fn an_agent_that_opens_no_test_connections_is_not_asked_to() {
    let world = World::new().await;
    let example = Example::new(&world).await;
    let crew = Crew::new(&world);
    crew.entry.state().peer = true;
    let panel = Panel::start(&world).await;
    crew.connect(&panel).await;
    panel.applied(example.tunnel).await;
    let lines: Vec<DiagnoseLine> = diagnose::tunnel(&panel.state, example.tunnel).collect().await;
    let said: Vec<&str> = lines
        .iter()
        .filter_map(|line| match line {
            DiagnoseLine::Item { index: 6.., success: false, message, code, .. } => {
                assert_eq!(code.as_deref(), Some("agent_foreign"));
                Some(message.as_str())
            }
            _ => None,
        })
        .collect();
    assert_eq!(said, ["entry: its agent opens no test connections, which only ExitPilot's agent does"; 3]);
    panel.stop().await;
}
