//! Plays the plot and tells it.

use super::plot;
use super::record::{Connections, LongLived, Phase, Record, Switch};
use super::scene::Scene;
use super::tell::Teller;
use crate::clock;
use crate::netlab::Impairment;
use crate::rig::client::{Client, Connection, Outcome, Tally};
use crate::rig::long_lived::{Ending, Life, LongLived as Kept};
use anyhow::{Context as _, Result, bail, ensure};
use shared::api::OwnerDecision;
use shared::best_exit::Reason;
use std::time::{Duration, Instant};

/// Between two connections of the users.
const PACE: Duration = Duration::from_millis(200);
/// How long things stay as they are after they have become what was expected, so that a visitor sees them.
const HOLD: Duration = Duration::from_secs(16);
/// How long everything stays cut once that is noticed.
const CUT: Duration = Duration::from_secs(14);
/// For something expected to happen. Much more than allowed: being late is told as such, with the numbers.
const LIMIT: Duration = Duration::from_secs(60);
/// Between two looks at the decision.
const LOOK: Duration = Duration::from_millis(200);

/// One performance.
#[derive(Debug)]
pub struct Story<'a> {
    scene: &'a Scene,
    teller: &'a Teller,
    start: Instant,
    start_wall_ms: i64,
    record: Record,
    kept: Vec<Kept>,
    last_told: String,
}

impl<'a> Story<'a> {
    /// A story that has not begun.
    #[must_use]
    pub fn new(scene: &'a Scene, teller: &'a Teller) -> Self {
        Self {
            scene,
            teller,
            start: clock::now(),
            start_wall_ms: clock::wall_ms(),
            record: Record { round_interval_ms: plot::ROUND_INTERVAL_MS, ..Record::default() },
            kept: Vec::new(),
            last_told: String::new(),
        }
    }

    /// Plays it from the beginning to the end, or until something does not happen at all: that is the second value.
    /// What is wrong with the record is for [`plot::complaints`] to say.
    ///
    /// # Errors
    /// When it cannot begin, or the panel does not tell how it was.
    pub async fn play(mut self) -> Result<(Record, Option<anyhow::Error>)> {
        self.scene.heal()?;
        let stage = self.scene.stage();
        self.teller.line("waiting for the first decision");
        self.wait("exit-a is the best", |decision, story| {
            let first = decision.applied_order.first().copied();
            Ok(first == Some(story.scene.stage().node("exit-a")?) && decision.reason == Reason::CurrentIsBest)
        })
        .await?;

        (self.start, self.start_wall_ms) = (clock::now(), clock::wall_ms());
        let client = Client::start(
            stage.client()?,
            self.scene.addresses().to_vec(),
            stage.exits.clone(),
            PACE,
            self.start,
        );
        let broken_off = self.acts(&client).await.err();
        self.end_phase();

        self.teller.line("the end: waiting for the last connections");
        // A link that is still bad would only keep them waiting.
        self.scene.heal()?;
        let mut lives = Vec::new();
        for kept in std::mem::take(&mut self.kept) {
            lives.push(kept.close().await?);
        }
        let connections = client.stop().await;
        self.record.duration_ms = self.now_ms();
        self.record.switches = self.switches().await?;
        self.count(&connections, &lives);
        self.summary(&connections);
        Ok((self.record, broken_off))
    }

    async fn acts(&mut self, client: &Client) -> Result<()> {
        self.begin_phase("a_best", "exit A is the best: 30 ms, B 50 ms, C 110 ms");
        self.keep_one().await?;
        self.served_by(client, "exit-a").await?;
        tokio::time::sleep(HOLD).await;

        self.scene.impair("exit-a", &Impairment::delay(plot::SLOW))?;
        self.begin_phase("a_slow", "exit A gets slow: its links now take 100 ms one way");
        self.switched_to("exit-b").await?;
        self.keep_one().await?;
        tokio::time::sleep(HOLD).await;

        let [_, (_, delay), _] = plot::DELAYS;
        self.scene.impair("exit-b", &Impairment::delay(delay).loss(plot::LOSS))?;
        self.begin_phase(
            "b_lossy",
            "exit B gets lossy: still the lowest latency, but a quarter of its packets is lost",
        );
        self.switched_to("exit-c").await?;
        self.keep_one().await?;
        tokio::time::sleep(HOLD).await;

        self.scene.cut()?;
        self.begin_phase("all_cut", "all links to all exits are cut");
        self.wait("all exits have failed", |decision, _| Ok(decision.reason == Reason::AllExitsFailed))
            .await?;
        self.teller.line("nothing is sent: the order stays, new connections are refused, none goes direct");
        tokio::time::sleep(CUT).await;

        self.scene.heal()?;
        self.begin_phase("recovery", "all links are as in the beginning");
        self.switched_to("exit-a").await?;
        self.keep_one().await?;
        tokio::time::sleep(HOLD).await;
        Ok(())
    }

    fn now_ms(&self) -> i64 {
        i64::try_from(self.start.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    fn begin_phase(&mut self, name: &str, what: &str) {
        self.end_phase();
        let now = self.now_ms();
        self.record.phases.push(Phase { name: name.to_owned(), start_ms: now, end_ms: now });
        self.teller.line(&format!("── {name}: {what}"));
    }

    fn end_phase(&mut self) {
        let now = self.now_ms();
        if let Some(phase) = self.record.phases.last_mut() {
            phase.end_ms = now;
        }
    }

    /// Looks at the direct tunnel's decision until it is as expected, and tells each change of its reason.
    async fn wait(
        &mut self,
        what: &str,
        expected: impl Fn(&OwnerDecision, &Self) -> Result<bool>,
    ) -> Result<()> {
        let start = clock::now();
        loop {
            let decision = self.scene.stage().api.decision(self.scene.direct()).await?;
            self.tell(&decision);
            if expected(&decision, self)? {
                return Ok(());
            }
            ensure!(start.elapsed() < LIMIT, "not within {} s: {what}; {}", LIMIT.as_secs(), self.last_told);
            tokio::time::sleep(LOOK).await;
        }
    }

    fn tell(&mut self, decision: &OwnerDecision) {
        // The rest of a cooldown changes with every look; that there is one is news once.
        let news = match &decision.reason {
            Reason::Cooldown { exit, .. } => format!("cooldown {exit}"),
            Reason::InsufficientAdvantage { exit, .. } => format!("insufficient {exit}"),
            other => format!("{other:?}"),
        };
        if news == self.last_told {
            return;
        }
        let reason = decision.reason.describe(&|id| self.scene.stage().name(id));
        let scores: Vec<String> = decision
            .candidates
            .iter()
            .map(|c| match &c.score {
                Some(s) => format!("{} {:.0} ms {:.0} %", c.exit_name, s.latency_ms, s.loss * 100.0),
                None => format!("{} failed", c.exit_name),
            })
            .collect();
        self.teller.line(&format!("   {}: {reason}   ({})", decision.owner_name, scores.join(", ")));
        self.last_told = news;
    }

    async fn switched_to(&mut self, exit: &str) -> Result<()> {
        let wanted = self.scene.stage().node(exit)?;
        self.wait(&format!("{exit} is in front"), |decision, _| {
            Ok(decision.applied_order.first() == Some(&wanted))
        })
        .await?;
        let cause = self.record.phases.last().map_or(0, |phase| phase.start_ms);
        self.teller.line(&format!(
            "   new connections go through {exit}, {:.1} s after the cause",
            (self.now_ms() - cause) as f64 / 1000.0
        ));
        Ok(())
    }

    /// Opens a connection that stays open until the end of the story.
    async fn keep_one(&mut self) -> Result<()> {
        let stage = self.scene.stage();
        let kept = Kept::open(&stage.client()?, self.scene.addresses()[0], self.start).await;
        let kept = kept.context("opening a connection to keep")?;
        self.teller.line(&format!("   a connection through {} is opened and kept open", kept.exit()));
        self.kept.push(kept);
        Ok(())
    }

    /// Waits until users are served at all; a demo without them shows nothing.
    async fn served_by(&self, client: &Client, exit: &str) -> Result<()> {
        let start = clock::now();
        loop {
            let tally = Tally::of(&client.so_far());
            if tally.per_exit.contains_key(exit) {
                return Ok(());
            }
            if start.elapsed() > LIMIT {
                bail!("no connection of the users went through {exit}: {tally:?}");
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The switches of the direct tunnel as the panel's log tells them.
    async fn switches(&self) -> Result<Vec<Switch>> {
        let stage = self.scene.stage();
        let mut entries = stage.api.decision_log(self.scene.direct()).await?;
        entries.reverse();
        let name = |id| stage.name(id);
        let switches = entries.into_iter().filter_map(|entry| {
            let Reason::Switched { from, to, .. } = entry.reason else { return None };
            let at_ms = entry.at - self.start_wall_ms;
            let phases = self.record.phases.iter().rev();
            let cause = phases.clone().find(|phase| phase.start_ms <= at_ms)?;
            Some(Switch {
                at_ms,
                owner: entry.owner_name,
                from: from.map_or_else(String::new, name),
                to: name(to),
                reason: "switched".to_owned(),
                cause_at_ms: cause.start_ms,
            })
        });
        Ok(switches.collect())
    }

    fn count(&mut self, connections: &[Connection], lives: &[Life]) {
        let cut = self.record.phase("all_cut").map(|phase| (phase.start_ms, phase.end_ms));
        let millis = |ms: i64| Duration::from_millis(u64::try_from(ms).unwrap_or(0));
        // A connection with any moment in the cut may fail; its whole life counts, so that one begun just before
        // the cut is not called a failure of the product.
        let in_cut = |from: Duration, to: Duration| {
            cut.is_some_and(|(start, end)| from <= millis(end) && to >= millis(start))
        };
        let outside = || connections.iter().filter(|c| !in_cut(c.started, c.ended));
        let (all, outside) = (Tally::of(connections), Tally::of(outside()));
        let broke = |life: &&Life| life.ending != Ending::Client && !in_cut(life.ended, life.ended);
        self.record.connections = Connections {
            total: all.total,
            failed: all.failed,
            failed_outside_cut: outside.failed,
            direct: all.direct,
            interrupted_by_switch: outside.broken + lives.iter().filter(broke).count(),
            per_exit: all.per_exit,
        };
        self.record.long_lived = lives
            .iter()
            .map(|life| LongLived {
                opened_at_ms: i64::try_from(life.opened.as_millis()).unwrap_or(i64::MAX),
                exit: life.exit.clone(),
                bytes: life.bytes,
                ended_by: match &life.ending {
                    Ending::Client => "client".to_owned(),
                    Ending::Other(how) => how.clone(),
                },
            })
            .collect();
    }

    fn summary(&self, connections: &[Connection]) {
        let counts = &self.record.connections;
        self.teller.line(&format!(
            "{} connections: {:?}; failed {} ({} outside the cut), direct {}, interrupted {}",
            counts.total,
            counts.per_exit,
            counts.failed,
            counts.failed_outside_cut,
            counts.direct,
            counts.interrupted_by_switch
        ));
        let cut = self.record.phase("all_cut");
        for connection in connections {
            let (Outcome::Failed(error) | Outcome::Broken { error, .. }) = &connection.outcome else {
                continue;
            };
            let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
            let (from, to) = (millis(connection.started), millis(connection.ended));
            if cut.is_none_or(|cut| from > cut.end_ms || to < cut.start_ms) {
                self.teller.line(&format!("   failed outside the cut: {from} ms to {to} ms: {error}"));
            }
        }
        for kept in &self.record.long_lived {
            self.teller.line(&format!(
                "   kept open since {} ms through {}: {} bytes, ended by {}",
                kept.opened_at_ms, kept.exit, kept.bytes, kept.ended_by
            ));
        }
        for switch in &self.record.switches {
            self.teller.line(&format!(
                "   switch {} → {} at {} ms, {} ms after its cause",
                switch.from,
                switch.to,
                switch.at_ms,
                switch.at_ms - switch.cause_at_ms
            ));
        }
    }
}
