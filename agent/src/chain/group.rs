//! A group of alternatives, one of which is used per attempt: the nodes of a hop, or the targets of a forwarder.

use super::marks::{FailRule, Health};
use super::select::{Candidate, Draw, Policy, client_hash, pick};
use super::state::{NodeState, OpenConnection};
use crate::clock::{Clock, Random};
use crate::metadata::{ConfigError, MetadataReader};
use shared::gost::{Metadata, SelectorConfig};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Failures that a rule may ask for; more would only cost memory.
const MOST_FAILS: u32 = 1000;

/// Alternatives and the policy that chooses among them.
#[derive(Debug)]
pub struct Group {
    policy: Policy,
    members: Vec<Member>,
    /// Counts connections, for [`Policy::Round`].
    turn: AtomicU64,
}

/// What selection needs of one alternative.
#[derive(Debug)]
struct Member {
    rule: FailRule,
    backup: bool,
    weight: u32,
    state: Arc<NodeState>,
}

impl Group {
    /// `path` is the group's, for errors. `members` gives each member's path, metadata and state.
    pub fn build<'a>(
        path: &str,
        selector: Option<&SelectorConfig>,
        members: impl Iterator<Item = (String, &'a Metadata, Arc<NodeState>)>,
        previous: Option<&Group>,
    ) -> Result<Self, ConfigError> {
        let default = SelectorConfig::default();
        let selector = selector.unwrap_or(&default);
        let policy = Policy::parse(&selector.strategy)
            .map_err(|reason| ConfigError::new(format!("{path}.selector.strategy"), reason))?;
        let general = fail_rule(
            FailRule::DEFAULT,
            Some(selector.max_fails),
            Some(selector.fail_timeout.0),
            &format!("{path}.selector"),
        )?;
        let members = members
            .map(|(path, metadata, state)| {
                let path = format!("{path}.metadata");
                let known = ["weight", "backup", "maxFails", "failTimeout"];
                let reader = MetadataReader::new(&path, metadata, &known)?;
                Ok(Member {
                    rule: fail_rule(
                        general,
                        reader.number("maxFails")?,
                        reader.duration("failTimeout")?,
                        &path,
                    )?,
                    backup: reader.flag("backup")?,
                    weight: reader.number("weight")?.unwrap_or(1),
                    state,
                })
            })
            .collect::<Result<_, ConfigError>>()?;
        let turn = previous.map_or(0, |group| group.turn.load(Ordering::Relaxed));
        Ok(Self { policy, members, turn: AtomicU64::new(turn) })
    }

    /// How many alternatives there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is no alternative at all.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// What is remembered of a member.
    pub fn state(&self, index: usize) -> &Arc<NodeState> {
        &self.members[index].state
    }

    /// Whether a member is left out now.
    pub fn is_marked(&self, index: usize, now_ms: u64) -> bool {
        let member = &self.members[index];
        member.state.health(now_ms, member.rule) == Health::Marked
    }

    /// Draws for one connection; all its picks use the same draw.
    pub fn draw(&self, client: IpAddr, random: &Random) -> Draw {
        Draw {
            turn: self.turn.fetch_add(1, Ordering::Relaxed),
            random: if self.policy == Policy::Rand { random.next() } else { 0 },
            client: if self.policy == Policy::Hash { client_hash(client) } else { 0 },
        }
    }

    /// Chooses the next member to try, and takes its trial if it is on one. `None` when all are tried.
    pub fn pick(&self, tried: impl Fn(usize) -> bool, draw: &Draw, clock: &Clock) -> Option<Attempt> {
        loop {
            let now_ms = clock.now_ms();
            let candidates: Vec<_> = self
                .members
                .iter()
                .enumerate()
                .map(|(i, member)| Candidate {
                    health: member.state.health(now_ms, member.rule),
                    backup: member.backup,
                    weight: member.weight,
                    tried: tried(i),
                })
                .collect();
            let index = pick(self.policy, &candidates, draw)?;
            let member = &self.members[index];
            let trial = candidates[index].health == Health::Trial;
            // Another connection may have been quicker; then the member counts as marked, and the choice is made anew.
            if !trial || member.state.begin_trial(now_ms, member.rule) {
                let (state, clock) = (member.state.clone(), clock.clone());
                return Some(Attempt { index, state, rule: member.rule, trial, clock });
            }
        }
    }
}

fn fail_rule(
    general: FailRule,
    max_fails: Option<u32>,
    fail_timeout: Option<std::time::Duration>,
    path: &str,
) -> Result<FailRule, ConfigError> {
    let max_fails = max_fails.filter(|n| *n > 0).unwrap_or(general.max_fails);
    if max_fails > MOST_FAILS {
        return Err(ConfigError::new(format!("{path}.maxFails"), format!("must not exceed {MOST_FAILS}")));
    }
    let fail_timeout_ms = match fail_timeout.filter(|timeout| !timeout.is_zero()) {
        Some(timeout) => u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX).max(1),
        None => general.fail_timeout_ms,
    };
    Ok(FailRule { max_fails, fail_timeout_ms })
}

/// One use of a member that has not ended yet. Dropped without verdict it changes nothing but gives a trial back.
#[derive(Debug)]
pub struct Attempt {
    index: usize,
    state: Arc<NodeState>,
    rule: FailRule,
    trial: bool,
    clock: Clock,
}

impl Attempt {
    /// Which member of its group.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Counts a failure without holding it against the member yet.
    pub fn count_failure(&self) {
        self.state.count_failure();
    }

    /// Holds the failure against the member; whether it is left out from now on and was not before.
    pub fn mark(mut self) -> bool {
        self.trial = false;
        self.state.mark(self.clock.now_ms(), self.rule)
    }

    /// The connection is through; whether the member had been left out before.
    pub fn succeed(mut self) -> bool {
        self.trial = false;
        self.state.clear()
    }

    /// Counts a connection through the member, open until the result is dropped.
    pub fn open(&self) -> OpenConnection {
        OpenConnection::begin(self.state.clone())
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if self.trial {
            self.state.abandon_trial();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn group(selector: serde_json::Value, members: &[serde_json::Value]) -> Result<Group, ConfigError> {
        let selector: SelectorConfig = serde_json::from_value(selector).unwrap();
        let metadata: Vec<Metadata> =
            members.iter().map(|m| serde_json::from_value(m.clone()).unwrap()).collect();
        let members = metadata.iter().enumerate().map(|(i, m)| (format!("nodes[{i}]"), m, Arc::default()));
        Group::build("hop", Some(&selector), members, None)
    }

    fn next(group: &Group, clock: &Clock) -> Attempt {
        let draw = group.draw(CLIENT, &Random::seeded(1));
        group.pick(|_| false, &draw, clock).unwrap()
    }

    #[tokio::test]
    async fn an_expired_mark_admits_one_connection_until_it_is_decided() {
        let clock = Clock::system();
        let none = serde_json::json!({});
        let group = group(serde_json::json!({"strategy": "fifo"}), &[none.clone(), none]).unwrap();
        assert!(next(&group, &clock).mark(), "newly left out");
        assert_eq!(next(&group, &clock).index(), 1);
        clock.advance(Duration::from_secs(10));
        let trial = next(&group, &clock);
        assert_eq!(trial.index(), 0);
        assert_eq!(next(&group, &clock).index(), 1, "the others wait for the verdict");
        drop(trial);
        let trial = next(&group, &clock);
        assert_eq!(trial.index(), 0, "an abandoned trial is taken by the next");
        assert!(!trial.mark(), "was left out before");
        assert_eq!(next(&group, &clock).index(), 1);
        clock.advance(Duration::from_secs(10));
        assert!(next(&group, &clock).succeed());
        assert_eq!(next(&group, &clock).index(), 0);
        assert_eq!(next(&group, &clock).index(), 0);
    }

    #[tokio::test]
    async fn rules_fall_back_from_member_to_selector_to_default() {
        let clock = Clock::system();
        let selector = serde_json::json!({"strategy": "fifo", "maxFails": 2, "failTimeout": "600s"});
        let own = serde_json::json!({"maxFails": "1", "failTimeout": "250ms"});
        let group =
            group(selector, &[serde_json::json!({"maxFails": 0}), own, serde_json::json!({})]).unwrap();
        assert!(!next(&group, &clock).mark(), "two failures are allowed");
        assert!(next(&group, &clock).mark());
        assert!(next(&group, &clock).mark(), "one is, for the second");
        assert_eq!(next(&group, &clock).index(), 2);
        clock.advance(Duration::from_millis(250));
        assert_eq!(next(&group, &clock).index(), 1);
        clock.advance(Duration::from_millis(599_750));
        assert_eq!(next(&group, &clock).index(), 0);
    }

    #[test]
    fn configuration_errors_name_the_place() {
        let none = serde_json::json!({});
        let error =
            |selector, member| group(selector, &[serde_json::json!({}), member]).unwrap_err().to_string();
        assert!(
            error(serde_json::json!({"strategy": "fastest"}), none.clone())
                .starts_with("hop.selector.strategy: `fastest`")
        );
        assert_eq!(
            error(none.clone(), serde_json::json!({"priority": 1})),
            "nodes[1].metadata.priority: is not supported"
        );
        assert_eq!(
            error(serde_json::json!({"maxFails": 1001}), none),
            "hop.selector.maxFails: must not exceed 1000"
        );
    }

    #[tokio::test]
    async fn counters_follow_connections() {
        let clock = Clock::system();
        let group = group(serde_json::json!({}), &[serde_json::json!({})]).unwrap();
        let attempt = next(&group, &clock);
        attempt.count_failure();
        let open = attempt.open();
        let counters = |connections, open, failures| Counters { connections, open, failures };
        use super::super::state::Counters;
        assert_eq!(group.state(0).counters(), counters(1, 1, 1));
        drop(open);
        assert_eq!(group.state(0).counters(), counters(1, 0, 1));
    }
}
