//! Buffers for payload that are given back as soon as they are empty: an idle connection has none.

use crate::spare::{AT_ONCE_BYTES, BLOCKS, Spare};
use tokio::io::ReadBuf;

/// One buffer.
pub(super) const BUFFER_BYTES: usize = AT_ONCE_BYTES;

thread_local! {
    static POOL: Spare<Box<[u8]>> = const { Spare::new(BLOCKS) };
}

/// Bytes that were read and not yet written.
pub(super) struct Buffer {
    /// Empty only after the drop.
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Buffer {
    /// An empty one.
    pub(super) fn take() -> Self {
        let bytes = POOL.with(Spare::take).unwrap_or_else(|| vec![0; BUFFER_BYTES].into_boxed_slice());
        Self { bytes, start: 0, end: 0 }
    }

    /// One that holds a copy of this, which must not be longer than a buffer.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut buffer = Self::take();
        buffer.fill(|free| free.put_slice(bytes));
        buffer
    }

    /// What is to be written.
    pub(super) fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(super) fn is_full(&self) -> bool {
        self.end == self.bytes.len()
    }

    /// Bytes at the front were written. Once all were, the whole buffer is free again.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.start += bytes;
        debug_assert!(self.start <= self.end);
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Lets `read` put bytes behind the others, and says how many came.
    pub(super) fn fill<T>(&mut self, read: impl FnOnce(&mut ReadBuf<'_>) -> T) -> (T, usize) {
        let mut free = ReadBuf::new(&mut self.bytes[self.end..]);
        let outcome = read(&mut free);
        let came = free.filled().len();
        self.end += came;
        (outcome, came)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        Spare::give_back(&POOL, std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(buffer: &mut Buffer, bytes: &[u8]) -> usize {
        buffer.fill(|free| free.put_slice(&bytes[..bytes.len().min(free.remaining())])).1
    }

    #[test]
    fn what_is_put_in_comes_out_in_order() {
        let mut buffer = Buffer::take();
        assert_eq!(put(&mut buffer, b"abc"), 3);
        buffer.advance(1);
        assert_eq!(put(&mut buffer, b"de"), 2);
        assert_eq!(buffer.filled(), b"bcde");
        buffer.advance(4);
        assert_eq!(put(&mut buffer, &[7; BUFFER_BYTES + 1]), BUFFER_BYTES, "all of it is free again");
        assert!(buffer.is_full());
    }

    #[test]
    fn a_buffer_is_used_again_without_what_was_in_it() {
        let mut first = Buffer::take();
        put(&mut first, b"secret");
        let place = first.bytes.as_ptr();
        drop(first);
        let second = Buffer::take();
        assert_eq!(second.bytes.as_ptr(), place);
        assert!(second.is_empty());
        let all: Vec<_> = (0..BLOCKS + 5).map(|_| Buffer::take()).collect();
        drop(all);
        assert_eq!(POOL.with(|pool| pool.kept().len()), BLOCKS);
    }
}
