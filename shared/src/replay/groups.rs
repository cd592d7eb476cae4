//! The policies of [`crate::policy`] as rules.

use super::random::Random;
use super::run::{Pick, Rule, World};
use crate::policy::{Context, Effect, Event, Forest, GroupSpec, Leaf, Network, Outcome, ParseError, parse};
use std::collections::BTreeMap;

/// One group over the exits.
#[derive(Clone, Debug)]
pub struct GroupRule {
    text: String,
    policy: crate::policy::Policy,
    forest: Option<Forest>,
    random: u64,
}

impl GroupRule {
    /// A policy in its text.
    pub fn new(text: &str) -> Result<Self, ParseError> {
        Ok(Self { text: text.to_owned(), policy: parse(text)?.policy, forest: None, random: 0 })
    }

    /// Whether a group executes it, and not an agent's chain or the panel.
    pub fn is_group(&self) -> bool {
        use crate::policy::Policy;
        matches!(
            self.policy,
            Policy::Selector { .. }
                | Policy::UrlTest { .. }
                | Policy::Fixed(_)
                | Policy::Min { .. }
                | Policy::FixedFallback { .. }
        )
    }

    fn make(&self, world: &World<'_>) -> Option<Forest> {
        let names: Vec<String> = (0..world.trace.exits.len()).map(|exit| format!("exit-{exit}")).collect();
        let leaves = names.iter().map(Leaf::new).collect();
        let group = GroupSpec { name: "group".to_owned(), members: names, policy: self.policy.clone() };
        Forest::new(leaves, vec![group], &BTreeMap::new()).ok()
    }
}

impl Rule for GroupRule {
    fn name(&self) -> &str {
        &self.text
    }

    fn second(&mut self, world: &World<'_>, random: &mut Random) -> Pick {
        let mut events = Vec::new();
        if self.forest.is_none() {
            self.forest = self.make(world);
            events.push(Event::Started);
        }
        let Some(forest) = &mut self.forest else { return Pick::plain(0) };
        events.push(Event::Used { group: 0 });
        if forest.due().is_some_and(|due| due <= world.now) {
            events.push(Event::Tick);
        }
        let pick = |forest: &Forest, random: u64| {
            forest.pick(0, Context { network: Network::Tcp4, random }).unwrap_or(0)
        };
        // A user's connection; one that fails moves on within the same second, like the agent.
        let current = pick(forest, self.random);
        if !world.dial(current) {
            events.push(Event::DialFailed { leaf: current, network: Network::Tcp4 });
        }
        for event in events {
            let mut tests: Vec<Effect> = forest.observe(&event, world.now);
            while let Some(effect) = tests.pop() {
                let Effect::Test { group, leaf } = effect else { continue };
                let outcome = world.request(leaf, 10_000.0, random).map_or(Outcome::Failed, Outcome::Ok);
                let outcomes = [Some(outcome), None, None, None];
                tests.extend(forest.observe(&Event::Tested { group, leaf, outcomes }, world.now));
            }
        }
        if forest.pick(0, Context { network: Network::Tcp4, random: self.random }) != Some(current) {
            self.random = random.draw();
        }
        Pick::plain(pick(forest, self.random))
    }
}
