//! What survives.

use crate::panel::Panel;
use crate::rig::{Agent, chain, link_options, quick};
use shared::gost::GostConfig;
use shared::link::{Command, Hello};

#[tokio::test]
async fn what_was_acknowledged_is_in_the_file() {
    let state = tempfile::tempdir().unwrap();
    let panel = Panel::start(true).await;
    let agent = Agent::start(&panel, state.path());
    let mut session = panel.accept().await;
    for round in 0..20 {
        let wanted = chain("chains_1", &format!("127.0.0.1:{}", 1000 + round));
        let answer = session.ask(&Command::UpdateChains(wanted.clone())).await;
        assert_eq!(answer.success, Some(true));
        let saved = std::fs::read(state.path().join("config.json")).unwrap();
        let saved: GostConfig = serde_json::from_slice(&saved).unwrap();
        assert_eq!(saved.chains, [wanted]);
    }
    agent.stop().await;
    // The next start says what it runs before any command.
    let agent = Agent::start(&panel, state.path());
    drop(session);
    let mut session = panel.accept().await;
    let hello: Hello = serde_json::from_value(session.frame().await.data).unwrap();
    assert_eq!(hello.digests.len(), 1);
    agent.stop().await;
}

#[tokio::test]
async fn a_corrupt_file_is_kept_aside_and_the_agent_obeys_again() {
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("config.json");
    std::fs::write(&file, r#"{"services":[],"chains":[{"name":"#).unwrap();
    let panel = Panel::start(true).await;
    let agent = Agent::start(&panel, state.path());
    let mut session = panel.accept().await;
    let hello: Hello = serde_json::from_value(session.frame().await.data).unwrap();
    assert!(hello.digests.is_empty());
    let aside = std::fs::read_to_string(state.path().join("config.json.corrupt")).unwrap();
    assert!(aside.ends_with(r#"{"name":"#));
    let answer = session.ask(&Command::AddChains(chain("chains_1", "127.0.0.1:9"))).await;
    assert_eq!(answer.success, Some(true));
    assert!(file.exists());
    agent.stop().await;
}

#[tokio::test]
async fn a_full_disk_is_told_and_recovered_from() {
    let state = tempfile::tempdir().unwrap();
    let panel = Panel::start(true).await;
    let agent = Agent::start(&panel, state.path());
    let mut session = panel.accept().await;
    // A folder in the place of the temporary file: no write can succeed, not even root's.
    let obstacle = state.path().join("config.json.new");
    std::fs::create_dir(&obstacle).unwrap();
    let wanted = chain("chains_1", "127.0.0.1:9");
    let answer = session.ask(&Command::UpdateChains(wanted.clone())).await;
    assert_eq!(answer.success, Some(false));
    assert!(answer.message.as_deref().unwrap().starts_with("applied but not saved: "), "{answer:?}");
    std::fs::remove_dir(&obstacle).unwrap();
    // The same command again changes nothing that runs, and is saved now.
    let answer = session.ask(&Command::UpdateChains(wanted)).await;
    assert_eq!(answer.success, Some(true), "{answer:?}");
    assert!(state.path().join("config.json").exists());
    agent.stop().await;
}

#[tokio::test]
async fn one_state_folder_belongs_to_one_agent() {
    let state = tempfile::tempdir().unwrap();
    let panel = Panel::start(true).await;
    let agent = Agent::start(&panel, state.path());
    let _session = panel.accept().await;
    let link = link_options("ws://127.0.0.1:9", quick());
    let options = agent::daemon::DaemonOptions {
        state_dir: state.path().to_owned(),
        link,
        allow_commands: false,
        api: None,
        clash: None,
    };
    let error = agent::daemon::run(options, Default::default()).await.unwrap_err();
    assert!(error.to_string().contains("another running agent"), "{error}");
    agent.stop().await;
}
