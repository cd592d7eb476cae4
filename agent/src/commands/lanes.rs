//! Order of commands: same object one after another, different objects at the same time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Assigns turns. A turn begins when every earlier turn that shares one of its keys has ended; turns are given in
/// arrival order, so there is no cycle to wait in.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    room: Arc<Semaphore>,
    tails: Arc<Mutex<Tails>>,
}

#[derive(Debug, Default)]
struct Tails {
    next_id: u64,
    /// Key → the turns given for it that have not ended, in order. All of them, not only the last: a turn that is given
    /// up while it waits must not let the next one overtake those before it.
    by_key: BTreeMap<String, Vec<(u64, CancellationToken)>>,
}

/// A place in the order. Dropping it ends the turn, also when its task was cancelled.
#[derive(Debug)]
pub(crate) struct Turn {
    id: u64,
    keys: Vec<String>,
    before: Vec<CancellationToken>,
    /// Cancelled = ended.
    ended: CancellationToken,
    tails: Arc<Mutex<Tails>>,
    _room: OwnedSemaphorePermit,
}

impl Lanes {
    /// At most `room` turns exist at the same time.
    pub(crate) fn new(room: usize) -> Self {
        Self { room: Arc::new(Semaphore::new(room)), tails: Arc::default() }
    }

    /// The next turn for all `keys`, or `None` when there is no room.
    pub(crate) fn turn(&self, keys: Vec<String>) -> Option<Turn> {
        let room = self.room.clone().try_acquire_owned().ok()?;
        let mut tails = self.tails.lock().unwrap_or_else(PoisonError::into_inner);
        let id = tails.next_id;
        tails.next_id += 1;
        let ended = CancellationToken::new();
        let mut before = Vec::new();
        for key in &keys {
            let turns = tails.by_key.entry(key.clone()).or_default();
            // A key named twice in one command must not make the turn wait for itself.
            before.extend(turns.iter().filter(|(earlier, _)| *earlier != id).map(|(_, token)| token.clone()));
            turns.push((id, ended.clone()));
        }
        Some(Turn { id, keys, before, ended, tails: self.tails.clone(), _room: room })
    }
}

impl Turn {
    /// Returns when it is this turn's time.
    pub(crate) async fn begin(&self) {
        for earlier in &self.before {
            earlier.cancelled().await;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut tails = self.tails.lock().unwrap_or_else(PoisonError::into_inner);
        for key in &self.keys {
            if let Some(turns) = tails.by_key.get_mut(key) {
                turns.retain(|(id, _)| *id != self.id);
                if turns.is_empty() {
                    tails.by_key.remove(key);
                }
            }
        }
        drop(tails);
        self.ended.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    fn keys(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn may_begin(turn: &Turn) -> bool {
        turn.begin().now_or_never().is_some()
    }

    #[test]
    fn the_same_object_waits_and_others_do_not() {
        let lanes = Lanes::new(10);
        let first = lanes.turn(keys(&["a"])).unwrap();
        let both = lanes.turn(keys(&["a", "b", "b"])).unwrap();
        let second_b = lanes.turn(keys(&["b"])).unwrap();
        let other = lanes.turn(keys(&["c"])).unwrap();
        assert_eq!([&first, &both, &second_b, &other].map(may_begin), [true, false, false, true]);
        drop(first);
        assert_eq!([&both, &second_b].map(may_begin), [true, false]);
        drop(both);
        assert!(may_begin(&second_b));
        drop((second_b, other));
        assert!(lanes.tails.lock().unwrap().by_key.is_empty());
    }

    #[test]
    fn a_turn_that_is_given_up_in_the_middle_does_not_let_the_next_one_overtake() {
        let lanes = Lanes::new(10);
        let first = lanes.turn(keys(&["a"])).unwrap();
        let abandoned = lanes.turn(keys(&["a"])).unwrap();
        let third = lanes.turn(keys(&["a"])).unwrap();
        drop(abandoned);
        // The abandoned turn never began, but the first one is still at work.
        assert!(!may_begin(&third), "overtook the first turn");
        drop(first);
        assert!(may_begin(&third));
    }

    #[test]
    fn there_is_a_limit() {
        let lanes = Lanes::new(1);
        let turn = lanes.turn(keys(&["a"])).unwrap();
        assert!(lanes.turn(keys(&["b"])).is_none());
        drop(turn);
        assert!(lanes.turn(keys(&["b"])).is_some());
    }
}
