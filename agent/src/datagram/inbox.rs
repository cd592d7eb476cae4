//! What comes in for a session: handed on at once if its way is a socket, kept in frames until they are fetched if not.

use super::frame;
use super::pump::{Deliver as _, Peer};
use crate::relay::traffic::Traffic;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// A buffer that has grown larger than this in a burst is given back once it is empty.
const KEPT_BYTES: usize = 128 * 1024;

/// Bytes before each datagram in a frame.
const LENGTH: usize = 2;

/// How much may wait in an [`Inbox`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InboxLimits {
    /// Datagrams.
    pub datagrams: usize,
    /// Bytes, two more per datagram included.
    pub bytes: usize,
}

/// Where one task puts datagrams for another, without waiting and within limits.
#[derive(Debug)]
pub struct Inbox {
    limits: InboxLimits,
    /// Locked for a copy or a non-blocking send at a time.
    state: Mutex<State>,
    filled: Notify,
    /// Counts what is handed on, as bytes to a target.
    traffic: Option<Arc<Traffic>>,
}

#[derive(Debug, Default)]
struct State {
    frames: Vec<u8>,
    datagrams: usize,
    peer: Option<Arc<Peer>>,
}

impl Inbox {
    /// Empty.
    pub fn new(limits: InboxLimits) -> Self {
        Self { limits, state: Mutex::default(), filled: Notify::new(), traffic: None }
    }

    /// Empty; what is handed on counts as bytes to a target.
    pub fn counting(limits: InboxLimits, traffic: Arc<Traffic>) -> Self {
        Self { traffic: Some(traffic), ..Self::new(limits) }
    }

    fn count(&self, bytes: usize) {
        if let Some(traffic) = &self.traffic {
            traffic.add_up(bytes);
        }
    }

    /// Hands a datagram on; false if it is dropped.
    fn hand_on(&self, peer: &Peer, datagram: &[u8]) -> bool {
        let handed = peer.try_deliver(datagram).is_ok();
        if handed {
            self.count(datagram.len());
        }
        handed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Consistent after each of its changes, none of which can panic half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a datagram in; false if there is no room and it is dropped.
    pub fn put(&self, datagram: &[u8]) -> bool {
        let mut state = self.state();
        if let Some(peer) = &state.peer {
            return self.hand_on(peer, datagram);
        }
        let framed =
            self.has_room(&state, datagram.len() + LENGTH) && frame::push(&mut state.frames, datagram);
        self.added(state, framed)
    }

    /// As [`Inbox::put`], with a head of the caller's own instead of the length. For inboxes without a peer.
    pub fn put_with_head(&self, head: &[u8], datagram: &[u8]) -> bool {
        let mut state = self.state();
        let room = self.has_room(&state, head.len() + datagram.len());
        if room {
            state.frames.extend_from_slice(head);
            state.frames.extend_from_slice(datagram);
        }
        self.added(state, room)
    }

    fn has_room(&self, state: &State, bytes: usize) -> bool {
        state.datagrams < self.limits.datagrams && state.frames.len() + bytes <= self.limits.bytes
    }

    fn added(&self, mut state: MutexGuard<'_, State>, is: bool) -> bool {
        if is {
            state.datagrams += 1;
            drop(state);
            self.filled.notify_one();
        }
        is
    }

    /// Waits for datagrams and takes all of them, in frames. `into` must be empty; its memory is used for those to come.
    /// For one task only. Cancelling loses nothing.
    pub async fn take(&self, into: &mut Vec<u8>) {
        loop {
            {
                let mut state = self.state();
                if !state.frames.is_empty() {
                    into.shrink_to(KEPT_BYTES);
                    std::mem::swap(&mut state.frames, into);
                    self.count(into.len() - LENGTH * state.datagrams);
                    state.datagrams = 0;
                    return;
                }
            }
            self.filled.notified().await;
        }
    }

    /// From now on everything goes to `peer`, what has waited first.
    pub fn attach(&self, peer: Arc<Peer>) {
        let mut state = self.state();
        let frames = std::mem::take(&mut state.frames);
        let mut rest = &frames[..];
        while let Some((datagram, following)) = frame::split(rest) {
            // A full socket drops, as it does with those that come after.
            self.hand_on(&peer, datagram);
            rest = following;
        }
        state.peer = Some(peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inbox(datagrams: usize, bytes: usize) -> Inbox {
        Inbox::new(InboxLimits { datagrams, bytes })
    }

    #[tokio::test]
    async fn what_is_put_in_is_taken_in_order_and_at_once() {
        let inbox = inbox(10, 100);
        assert!(inbox.put(b"ab") && inbox.put(b"") && inbox.put(b"c"));
        let mut taken = Vec::new();
        inbox.take(&mut taken).await;
        assert_eq!(taken, b"\0\x02ab\0\0\0\x01c");
        taken.clear();
        let (mut later, ()) = tokio::join!(
            async {
                inbox.take(&mut taken).await;
                taken.clone()
            },
            async { assert!(inbox.put(b"d")) }
        );
        assert_eq!(later, b"\0\x01d");
        later.clear();
    }

    #[tokio::test]
    async fn both_limits_hold_and_taking_makes_room() {
        let inbox = inbox(2, 10);
        assert!(inbox.put(b"1") && inbox.put(b"2") && !inbox.put(b"3"), "datagrams");
        let mut taken = Vec::new();
        inbox.take(&mut taken).await;
        assert!(!inbox.put(b"123456789"), "bytes");
        assert!(inbox.put(b"12345678"));
        taken.clear();
        inbox.take(&mut taken).await;
        assert_eq!(taken, b"\0\x0812345678");
    }
}
