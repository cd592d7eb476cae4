//! Groups: what the panel is told of them, and choosing for a person.

use crate::panel::{Panel, Session, patient};
use crate::rig::Agent;
use serde_json::{Value, json};
use shared::gost::ChainConfig;
use shared::link::{ChooseMember, Command, Frame, GroupState, Hello, InUse, Report, group_of_hop};

fn chain(strategy: &str) -> ChainConfig {
    let node = |name: &str| json!({"name": name, "addr": "127.0.0.1:9", "connector": {"type": "relay"}, "dialer": {"type": "tcp"}});
    let hop = json!({"name": "hop_1", "selector": {"strategy": strategy}, "nodes": [node("node_1"), node("node_2")]});
    serde_json::from_value(json!({"name": "chains_1", "hops": [hop]})).unwrap()
}

fn choose(member: Option<&str>) -> Command {
    let group = group_of_hop("chains_1", "hop_1");
    Command::ChooseMember(ChooseMember { group, member: member.map(str::to_owned) })
}

fn state(answer: &Frame) -> GroupState {
    assert_eq!(answer.success, Some(true), "{answer:?}");
    serde_json::from_value(answer.data.clone()).unwrap()
}

/// A session whose reports are not lost while an answer is awaited.
struct Watched {
    session: Session,
    groups: Vec<GroupState>,
}

impl Watched {
    async fn accept(panel: &Panel) -> Self {
        Self { session: panel.accept().await, groups: Vec::new() }
    }

    async fn frame(&mut self) -> Frame {
        let frame = self.session.frame().await;
        if frame.kind == "report" {
            self.groups = serde_json::from_value::<Report>(frame.data.clone()).unwrap().groups;
        }
        frame
    }

    async fn ask(&mut self, command: &Command) -> Frame {
        self.session.send(command).await;
        self.answer().await
    }

    async fn answer(&mut self) -> Frame {
        loop {
            let frame = self.frame().await;
            if frame.success.is_some() {
                return frame;
            }
        }
    }

    /// Waits for a report of the group like this.
    async fn told(&mut self, holds: impl Fn(&GroupState) -> bool) -> GroupState {
        let wanted = async {
            loop {
                if let Some(group) = self.groups.first().filter(|group| holds(group)) {
                    return group.clone();
                }
                self.frame().await;
            }
        };
        patient("a report", wanted).await
    }
}

#[tokio::test]
async fn a_choice_is_made_told_kept_and_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let panel = Panel::start(true).await;
    let agent = Agent::start(&panel, folder.path());
    let mut session = Watched::accept(&panel).await;
    let hello: Hello = serde_json::from_value(session.frame().await.data).unwrap();
    assert!(hello.capabilities.iter().any(|capability| capability == "groups"));
    session.ask(&Command::UpdateChains(chain("selector(default=node_2)"))).await;
    let group = session.told(|_| true).await;
    assert_eq!((group.name.as_str(), group.choice), ("chain/chains_1/hop_1", None));
    let used = &group.now["tcp4"];
    assert_eq!((used.member.as_str(), used.why, &used.change), ("node_2", InUse::Default, &None));

    let chosen = state(&session.ask(&choose(Some("node_1"))).await);
    assert_eq!(chosen.choice.as_deref(), Some("node_1"));
    for network in ["tcp4", "udp6"] {
        assert_eq!((chosen.now[network].member.as_str(), chosen.now[network].why), ("node_1", InUse::Chosen));
    }
    assert_eq!(chosen.now["tcp4"].change.as_ref().unwrap().from, "node_2");
    session.told(|group| group.choice.as_deref() == Some("node_1")).await;

    // What makes no sense changes nothing.
    for (command, words) in [
        (choose(Some("node_3")), "node_3 is not a member"),
        (
            Command::ChooseMember(ChooseMember { group: "chain/x/y".into(), member: None }),
            "there is no group chain/x/y",
        ),
    ] {
        let answer = session.ask(&command).await;
        assert_eq!(answer.success, Some(false));
        assert!(answer.message.as_deref().unwrap().contains(words), "{answer:?}");
    }
    let frame = Frame::message("ChooseMember", json!({"member": "node_1"}));
    session.session.send_frame(&Frame { request_id: Some("x".into()), ..frame }).await;
    let answer = session.answer().await;
    assert!(answer.message.unwrap().contains("missing field `group`"));

    // It outlives the connection and the process.
    agent.stop().await;
    let agent = Agent::start(&panel, folder.path());
    let mut session = Watched::accept(&panel).await;
    session.told(|group| group.choice.as_deref() == Some("node_1")).await;
    let cleared = state(&session.ask(&choose(None)).await);
    assert_eq!((cleared.choice, cleared.now["tcp4"].member.as_str()), (None, "node_2"));

    // Who chooses by itself takes no choice.
    session.ask(&Command::UpdateChains(chain("fixed(1)"))).await;
    let answer = session.ask(&choose(Some("node_1"))).await;
    assert!(answer.message.as_deref().unwrap().contains("is no selector"), "{answer:?}");
    assert_eq!(answer.data, Value::Null);
    let group = session.told(|group| group.now["tcp4"].why == InUse::Fixed).await;
    assert_eq!(group.now["tcp4"].member, "node_2");
    agent.stop().await;
}
