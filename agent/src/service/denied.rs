//! Clients whose datagrams are not let in: each is refused once in a while, however many it sends.

use std::collections::HashMap;
use std::hash::Hash;

/// For how long a client that goes on sending is not counted once more: it repeats itself faster than limits change.
const PAUSE_MS: u64 = 1_000;
/// Clients that are remembered.
const MOST: usize = 4096;

/// Who was refused lately.
#[derive(Debug)]
pub(super) struct Denied<K>(HashMap<K, u64>);

impl<K> Default for Denied<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Hash + Eq + Clone> Denied<K> {
    /// Whether this is a refusal to count, at `now_ms`.
    pub(super) fn is_new(&mut self, key: &K, now_ms: u64) -> bool {
        let is_recent = |at: &u64| now_ms.saturating_sub(*at) < PAUSE_MS;
        if self.0.get(key).is_some_and(is_recent) {
            return false;
        }
        if self.0.len() >= MOST {
            self.0.retain(|_, at| is_recent(at));
        }
        // More than that at once are counted as often as they come, which is what the memory is worth.
        if self.0.len() < MOST {
            self.0.insert(key.clone(), now_ms);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_counts_once_in_a_while_and_memory_is_bounded() {
        let mut denied = Denied::default();
        assert!(denied.is_new(&1, 500) && !denied.is_new(&1, 1_499) && denied.is_new(&2, 1_499));
        assert!(denied.is_new(&1, 1_500) && !denied.is_new(&1, 1_501));
        for client in 0..3 * MOST as u64 {
            denied.is_new(&client, 2_000);
        }
        assert_eq!(denied.0.len(), MOST);
        assert!(denied.is_new(&7, 3_000));
        denied.is_new(&u64::MAX, 3_000);
        assert!(denied.0.len() <= 3);
    }
}
