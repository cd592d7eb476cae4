use super::*;
use crate::plan::Subject;
use shared::gost::{HandlerConfig, ListenerConfig, Metadata};
use shared::ids::{ForwardId, TunnelId};

fn chain(n: i64, variant: &str) -> Planned<ChainConfig> {
    let mut config = ChainConfig { name: format!("chains_{n}"), hops: vec![], metadata: Metadata::new() };
    config.metadata.insert("variant".into(), variant.into());
    Planned::new(Subject::Tunnel(TunnelId(n)), config)
}

fn service(name: &str, chain: Option<i64>, variant: &str) -> Planned<ServiceConfig> {
    let config = ServiceConfig {
        name: name.into(),
        addr: format!("[::]:{variant}"),
        handler: HandlerConfig {
            kind: "tcp".into(),
            chain: chain.map(|n| format!("chains_{n}")),
            chain_group: None,
            retries: 0,
            auth: None,
            metadata: Metadata::new(),
        },
        listener: ListenerConfig { kind: "tcp".into(), tls: None, metadata: Metadata::new() },
        forwarder: None,
        limiter: None,
        climiter: None,
        rlimiter: None,
        observer: None,
        metadata: Metadata::new(),
    };
    Planned::new(Subject::Forward(ForwardId(1)), config)
}

fn plan(
    chains: impl IntoIterator<Item = Planned<ChainConfig>>,
    services: impl IntoIterator<Item = Planned<ServiceConfig>>,
) -> NodePlan {
    NodePlan {
        chains: chains.into_iter().map(|chain| (chain.config.name.clone(), chain)).collect(),
        services: services.into_iter().map(|service| (service.config.name.clone(), service)).collect(),
        problems: BTreeMap::new(),
    }
}

/// A board with its plan, so that a test reads as a story.
struct Story {
    board: Board,
    plan: NodePlan,
    in_doubt: BTreeMap<String, String>,
    peer: bool,
    now: u64,
}

impl Story {
    fn new(plan: NodePlan) -> Self {
        Self { board: Board::default(), plan, in_doubt: BTreeMap::new(), peer: false, now: 1000 }
    }

    fn due(&self) -> Due {
        let desired = Desired { plan: &self.plan, overrides: &BTreeMap::new(), in_doubt: &self.in_doubt };
        self.board.due(&desired, self.now, 100)
    }

    fn steps(&self) -> Vec<String> {
        let text = |step: &Step| match step {
            Step::Chain(chain) => format!("+{}", chain.config.name),
            Step::Service(service) => format!("+{}", service.config.name),
            Step::DeleteService(name) | Step::DeleteChain(name) => format!("-{name}"),
        };
        self.due().steps.iter().map(text).collect()
    }

    /// Sends what is due and answers everything.
    fn send(&mut self, outcome: impl Fn(&Key) -> Outcome) {
        for step in self.due().steps {
            let key = step.key();
            self.board.begin(key.clone());
            let outcome = outcome(&key);
            self.board.end(&key, step.digest(), outcome, self.peer, self.now);
        }
    }

    fn accept(&mut self) {
        self.send(|_| Outcome::Accepted);
    }

    fn status(&self, key: &Key) -> (DeploymentStatus, String) {
        let digest = match key {
            Key::Chain(name) => self.plan.chains.get(name).map(|chain| chain.digest.as_str()),
            Key::Service(name) => self.plan.services.get(name).map(|service| service.digest.as_str()),
        };
        let (status, reason) = self.board.status(key, digest, true);
        (status, reason.unwrap_or_default())
    }
}

fn known(plan: &NodePlan) -> Vec<(Key, Known)> {
    let chains = plan.chains.iter().map(|(n, c)| (Key::Chain(n.clone()), Known::Digest(c.digest.clone())));
    let services =
        plan.services.iter().map(|(n, s)| (Key::Service(n.clone()), Known::Digest(s.digest.clone())));
    chains.chain(services).collect()
}

#[test]
fn chains_come_before_the_services_that_need_them() {
    let plan = plan([chain(1, "a")], [service("7_1_0_tcp", Some(1), "1"), service("8_1_0_tcp", None, "2")]);
    let mut story = Story::new(plan);
    assert_eq!(story.steps(), ["+chains_1", "+8_1_0_tcp"]);
    story.accept();
    assert_eq!(story.steps(), ["+7_1_0_tcp"]);
    story.accept();
    assert_eq!(story.due(), Due::default());
}

#[test]
fn what_runs_already_is_not_sent() {
    let plan = plan([chain(1, "a"), chain(2, "a")], [service("7_1_0_tcp", Some(1), "1")]);
    let mut story = Story::new(plan.clone());
    story.board.start_known(known(&plan));
    assert_eq!(story.due(), Due::default());

    story.plan.chains.insert("chains_2".into(), chain(2, "b"));
    assert_eq!(story.steps(), ["+chains_2"], "only the difference");
    story.accept();
    assert_eq!(story.due(), Due::default());
}

#[test]
fn removals_come_last_services_before_chains_and_only_our_own() {
    let old = plan(
        [chain(1, "a"), chain(2, "a")],
        [service("tunnel_2", Some(2), "1"), service("web", None, "2"), service("7_1_0_tcp", Some(1), "3")],
    );
    let mut story = Story::new(plan([chain(1, "b")], [service("7_1_0_tcp", Some(1), "3")]));
    story.board.start_known(known(&old));
    let strange = Key::Chain("somebody".into());
    story.board.heard(known(&old).into_iter().chain([(strange, Known::Unknown)]));
    assert_eq!(story.steps(), ["+chains_1"]);
    story.accept();
    assert_eq!(story.steps(), ["-tunnel_2"]);
    story.accept();
    assert_eq!(story.steps(), ["-chains_2"]);
    story.accept();
    assert_eq!(story.due(), Due::default(), "`web` and `somebody` are not ours");
}

#[test]
fn a_refused_object_is_told_and_tried_again_ever_less_often() {
    let mut story = Story::new(plan([chain(1, "a"), chain(2, "a")], []));
    let first = Key::Chain("chains_1".into());
    let refuse = |key: &Key| match key {
        Key::Chain(name) if name == "chains_1" => Outcome::Refused("no".into()),
        _ => Outcome::Accepted,
    };
    let mut waits = Vec::new();
    for _ in 0..7 {
        story.send(refuse);
        assert_eq!(story.status(&first), (DeploymentStatus::Failed, "no".to_owned()));
        assert_eq!(story.steps(), Vec::<String>::new());
        let at = story.due().next_retry_ms.unwrap();
        waits.push((at - story.now) / 1000);
        story.now = at;
        assert_eq!(story.steps(), ["+chains_1"]);
    }
    assert_eq!(waits, [5, 10, 20, 40, 60, 60, 60]);
    assert_eq!(story.status(&Key::Chain("chains_2".into())).0, DeploymentStatus::Applied);

    // A changed object is another attempt, and a changed plan forgives.
    story.send(refuse);
    story.plan.chains.insert("chains_1".into(), chain(1, "b"));
    assert_eq!(story.steps(), ["+chains_1"]);
    story.send(refuse);
    assert_eq!(story.due().next_retry_ms, Some(story.now + 5000));
    story.board.forgive();
    assert_eq!(story.steps(), ["+chains_1"]);
}

#[test]
fn an_unanswered_object_is_pending_and_sent_again() {
    let mut story = Story::new(plan([chain(1, "a")], []));
    let key = Key::Chain("chains_1".into());
    story.send(|_| Outcome::Unanswered("no answer".into()));
    assert_eq!(story.status(&key), (DeploymentStatus::Pending, "no answer".to_owned()));
    assert_eq!(story.board.known_digest(&key), None);
    story.now += 5000;
    assert_eq!(story.steps(), ["+chains_1"]);
    story.accept();
    assert_eq!(story.status(&key).0, DeploymentStatus::Applied);
}

#[test]
fn without_its_chain_a_service_waits() {
    let mut story = Story::new(plan([chain(1, "a")], [service("7_1_0_tcp", Some(1), "1")]));
    story.send(|_| Outcome::Refused("no".into()));
    assert_eq!(story.steps(), Vec::<String>::new());
    assert_eq!(story.status(&Key::Service("7_1_0_tcp".into())).0, DeploymentStatus::Pending);

    // With an older version of the chain in force it need not wait.
    let mut story = Story::new(story.plan);
    story.board.start_known([(Key::Chain("chains_1".into()), Known::Digest("older".into()))]);
    assert_eq!(story.steps(), ["+chains_1"]);
    story.send(|_| Outcome::Refused("no".into()));
    assert_eq!(story.steps(), ["+7_1_0_tcp"]);
}

#[test]
fn a_removal_frees_what_a_refused_object_needs() {
    let mut story = Story::new(plan([], [service("8_1_0_tcp", None, "80")]));
    let old = plan([], [service("7_1_0_tcp", None, "80")]);
    story.board.start_known(known(&old));
    story.send(|_| Outcome::Refused("address already in use".into()));
    assert_eq!(story.steps(), ["-7_1_0_tcp"]);
    story.accept();
    assert_eq!(story.steps(), ["+8_1_0_tcp"], "at once, not after the wait");
}

#[test]
fn a_peer_gets_everything_once_per_connection_and_loses_what_is_off() {
    let mut story = Story::new(plan([chain(1, "a")], [service("7_1_0_tcp", Some(1), "1")]));
    story.peer = true;
    let suspects = [Key::Service("tunnel_9".into()), Key::Chain("chains_9".into())];
    story.board.start_unknown(suspects.clone());
    let mut sent = Vec::new();
    while !story.steps().is_empty() {
        sent.extend(story.steps());
        story.accept();
    }
    assert_eq!(sent, ["+chains_1", "+7_1_0_tcp", "-tunnel_9", "-chains_9"]);
    story.board.start_unknown([]);
    assert_eq!(story.steps(), ["+chains_1"]);

    // A peer may have closed the old object before it refused the new one.
    story.accept();
    story.accept();
    story.plan.chains.insert("chains_1".into(), chain(1, "b"));
    story.send(|_| Outcome::Refused("bad".into()));
    assert_eq!(story.board.known_digest(&Key::Chain("chains_1".into())), None);
}

#[test]
fn a_broken_connection_leaves_what_was_under_way_unknown() {
    let mut story = Story::new(plan([chain(1, "a"), chain(2, "a")], []));
    story.accept();
    story.plan.chains.insert("chains_1".into(), chain(1, "b"));
    story.board.begin(Key::Chain("chains_1".into()));
    assert_eq!(story.steps(), Vec::<String>::new(), "one command about an object at a time");
    story.board.disconnected();
    assert_eq!(story.board.known_digest(&Key::Chain("chains_1".into())), None);
    assert!(story.board.known_digest(&Key::Chain("chains_2".into())).is_some());
}

#[test]
fn a_chain_in_doubt_is_left_alone_until_something_else_about_it_changes() {
    let mut story = Story::new(plan([chain(1, "a")], [service("7_1_0_tcp", Some(1), "1")]));
    story.accept();
    story.accept();
    let digest = story.plan.chains["chains_1"].digest.clone();
    story.in_doubt.insert("chains_1".into(), digest);
    story.board.unsettle(&Key::Chain("chains_1".into()));
    assert_eq!(story.steps(), Vec::<String>::new());
    story.plan.services.insert("8_1_0_tcp".into(), service("8_1_0_tcp", Some(1), "2"));
    assert_eq!(story.steps(), ["+8_1_0_tcp"], "one of both chains is there");
    story.plan.chains.insert("chains_1".into(), chain(1, "b"));
    assert_eq!(story.steps(), ["+chains_1"]);
}

#[test]
fn no_more_is_started_than_allowed() {
    let story = Story::new(plan((1..=9).map(|n| chain(n, "a")), [service("7_1_0_tcp", None, "1")]));
    let desired = Desired { plan: &story.plan, overrides: &BTreeMap::new(), in_doubt: &BTreeMap::new() };
    for limit in 0..12 {
        assert_eq!(story.board.due(&desired, 0, limit).steps.len(), limit.min(10));
    }
}
