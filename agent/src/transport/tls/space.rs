//! Room for records on their way, given back as soon as none is there: an idle connection has none.

use crate::spare::{AT_ONCE_BYTES, BLOCKS, Spare};

/// Room for as much payload in records, with the rest of a record before it. Also more than the 65,536 bytes of the
/// longest handshake message that is taken, which must be there as a whole.
const SPACE_BYTES: usize = AT_ONCE_BYTES + 20 * 1024;

thread_local! {
    static POOL: Spare<Box<[u8]>> = const { Spare::new(BLOCKS) };
}

/// Bytes between two indices of a block of memory.
pub(super) struct Space {
    /// Empty only after the drop.
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Space {
    pub(super) fn take() -> Self {
        let bytes = POOL.with(Spare::take).unwrap_or_else(|| vec![0; SPACE_BYTES].into_boxed_slice());
        Self { bytes, start: 0, end: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(super) fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(super) fn filled_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    /// What is behind the filled part.
    pub(super) fn free(&mut self) -> &mut [u8] {
        &mut self.bytes[self.end..]
    }

    /// As [`Space::free`], after everything was moved to the front.
    pub(super) fn most_free(&mut self) -> &mut [u8] {
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        self.free()
    }

    /// Makes the free part at least so long. Only longer chains of certificates than anybody has need this.
    pub(super) fn reserve(&mut self, bytes: usize) {
        if self.most_free().len() < bytes {
            let mut longer = vec![0; self.end + bytes];
            longer[..self.end].copy_from_slice(&self.bytes[..self.end]);
            self.bytes = longer.into_boxed_slice();
        }
    }

    /// Bytes were put into the free part.
    pub(super) fn put(&mut self, bytes: usize) {
        self.end += bytes;
        debug_assert!(self.end <= self.bytes.len());
    }

    /// Bytes at the front are done with.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.start += bytes;
        debug_assert!(self.start <= self.end);
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
        }
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes.len() == SPACE_BYTES {
            Spare::give_back(&POOL, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(space: &mut Space, bytes: &[u8]) {
        space.free()[..bytes.len()].copy_from_slice(bytes);
        space.put(bytes.len());
    }

    #[test]
    fn what_is_put_in_stays_in_order_wherever_it_is_moved() {
        let mut space = Space::take();
        put(&mut space, b"abc");
        space.advance(1);
        assert_eq!(space.free().len(), SPACE_BYTES - 3);
        assert_eq!(space.most_free().len(), SPACE_BYTES - 2);
        put(&mut space, b"d");
        space.reserve(2 * SPACE_BYTES);
        assert!(space.free().len() >= 2 * SPACE_BYTES);
        assert_eq!(space.filled(), b"bcd");
        space.advance(3);
        assert!(space.is_empty() && space.filled_mut().is_empty());
    }

    #[test]
    fn longer_ones_are_not_kept() {
        let mut space = Space::take();
        space.reserve(SPACE_BYTES + 1);
        drop(space);
        assert!(POOL.with(|pool| pool.kept().iter().all(|bytes| bytes.len() == SPACE_BYTES)));
        let all: Vec<_> = (0..BLOCKS + 5).map(|_| Space::take()).collect();
        drop(all);
        assert_eq!(POOL.with(|pool| pool.kept().len()), BLOCKS);
    }
}
