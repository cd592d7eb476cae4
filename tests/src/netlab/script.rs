//! Changes of links at given times.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::watch;

use super::error::LabError;
use super::impairment::{Impairment, ImpairmentError};
use super::link::Passage;
use super::trace::Trace;

/// One change of one link.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub(crate) from: String,
    pub(crate) to: String,
    /// The direction back too.
    pub(crate) both: bool,
    pub(crate) action: Action,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    Set(Impairment),
    /// Delay and independent loss; the rest stays.
    Path {
        delay: Duration,
        loss: f64,
    },
    Passage(Passage),
}

impl Change {
    fn new(from: impl AsRef<str>, to: impl AsRef<str>, both: bool, action: Action) -> Self {
        Self { from: from.as_ref().to_owned(), to: to.as_ref().to_owned(), both, action }
    }

    /// Sets what packets from `from` to `to` suffer.
    #[must_use]
    pub fn set(from: impl AsRef<str>, to: impl AsRef<str>, impairment: Impairment) -> Self {
        Self::new(from, to, false, Action::Set(impairment))
    }

    /// Sets what packets in both directions suffer, each.
    #[must_use]
    pub fn set_both(a: impl AsRef<str>, b: impl AsRef<str>, impairment: Impairment) -> Self {
        Self::new(a, b, true, Action::Set(impairment))
    }

    /// Sets one-way delay and independent loss from `from` to `to`, and leaves the rest as it is.
    #[must_use]
    pub fn path(from: impl AsRef<str>, to: impl AsRef<str>, delay: Duration, loss: f64) -> Self {
        Self::new(from, to, false, Action::Path { delay, loss })
    }

    /// Cuts both directions; what is on the way is lost too.
    #[must_use]
    pub fn cut(a: impl AsRef<str>, b: impl AsRef<str>) -> Self {
        Self::new(a, b, true, Action::Passage(Passage::Cut))
    }

    /// Opens both directions again, whatever closed them; impairments are what they were.
    #[must_use]
    pub fn repair(a: impl AsRef<str>, b: impl AsRef<str>) -> Self {
        Self::new(a, b, true, Action::Passage(Passage::Open))
    }

    /// Swallows everything from `from` to `to`; the other direction stays as it is.
    #[must_use]
    pub fn black_hole(from: impl AsRef<str>, to: impl AsRef<str>) -> Self {
        Self::new(from, to, false, Action::Passage(Passage::BlackHole))
    }

    /// Whether every value is one a link can have.
    pub(crate) fn check(&self) -> Result<(), ImpairmentError> {
        match &self.action {
            Action::Set(impairment) => impairment.check(),
            Action::Path { delay, loss } => Impairment::delay(*delay).loss(*loss).check(),
            Action::Passage(_) => Ok(()),
        }
    }
}

/// Changes, each at a time since the script's start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    steps: Vec<(Duration, Change)>,
}

impl Script {
    /// A script in which nothing changes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a change. Changes of the same time are made in the order they were added.
    #[must_use]
    pub fn at(mut self, time: Duration, change: Change) -> Self {
        self.steps.push((time, change));
        self
    }

    /// Adds a recorded trace for the direction from `from` to `to`.
    #[must_use]
    pub fn trace(mut self, from: impl AsRef<str>, to: impl AsRef<str>, trace: &Trace) -> Self {
        let (from, to) = (from.as_ref(), to.as_ref());
        let steps = trace.points().iter();
        self.steps.extend(steps.map(|point| (point.time, Change::path(from, to, point.delay, point.loss))));
        self
    }

    /// The same trace in both directions, as one-way values.
    #[must_use]
    pub fn trace_both(self, a: impl AsRef<str>, b: impl AsRef<str>, trace: &Trace) -> Self {
        self.trace(&a, &b, trace).trace(&b, &a, trace)
    }

    /// The steps in the order they are made.
    pub(crate) fn into_steps(mut self) -> Vec<(Duration, Change)> {
        self.steps.sort_by_key(|(time, _)| *time);
        self.steps
    }
}

/// A change that was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// When the script asked for it, since its start.
    pub asked: Duration,
    /// When it was made, since the script's start.
    pub at: Duration,
    /// What was changed.
    pub change: Change,
}

/// A script that is being played. Dropping it does not stop the script.
#[derive(Debug)]
pub struct Playback {
    pub(crate) total: usize,
    pub(crate) applied: watch::Receiver<Vec<Applied>>,
}

impl Playback {
    /// The changes made so far, in order.
    #[must_use]
    pub fn applied(&self) -> Vec<Applied> {
        self.applied.borrow().clone()
    }

    /// Waits for the last change and returns all. Takes as long as the script says; the caller sets a limit.
    ///
    /// # Errors
    /// [`LabError::Stopped`] when the lab or the script is stopped before.
    pub async fn finished(&mut self) -> Result<Vec<Applied>, LabError> {
        let total = self.total;
        let applied = self.applied.wait_for(|applied| applied.len() >= total).await;
        applied.map(|applied| applied.clone()).map_err(|_| LabError::Stopped)
    }
}

/// The network's side of a playback.
#[derive(Debug)]
pub(crate) struct Playing {
    /// Since the lab's start.
    pub(crate) start: Duration,
    pub(crate) steps: VecDeque<(Duration, Change)>,
    pub(crate) applied: watch::Sender<Vec<Applied>>,
}

impl Playing {
    /// When the next change is due, since the lab's start.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.steps.front().map(|(time, _)| self.start + *time)
    }

    /// Takes the next change if its time has come.
    pub(crate) fn pop_due(&mut self, now: Duration) -> Option<(Duration, Change)> {
        if self.next_due()? > now { None } else { self.steps.pop_front() }
    }

    pub(crate) fn note(&self, asked: Duration, now: Duration, change: Change) {
        self.applied.send_modify(|applied| applied.push(Applied { asked, at: now - self.start, change }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_sorted_and_stable() {
        let ms = Duration::from_millis;
        let script = Script::new()
            .at(ms(20), Change::cut("a", "b"))
            .at(ms(10), Change::black_hole("a", "b"))
            .at(ms(20), Change::repair("a", "b"));
        let order: Vec<Change> = script.into_steps().into_iter().map(|(_, change)| change).collect();
        assert_eq!(order, [Change::black_hole("a", "b"), Change::cut("a", "b"), Change::repair("a", "b")]);
    }

    #[test]
    fn changes_are_checked() {
        assert!(Change::path("a", "b", Duration::ZERO, 1.5).check().is_err());
        assert!(Change::set("a", "b", Impairment::lossy(-1.0)).check().is_err());
        assert!(Change::cut("a", "b").check().is_ok());
    }
}
