//! Things that are given back when they are done with, and kept for the next who needs one.

use std::cell::RefCell;
use std::thread::LocalKey;

/// Payload that is read, encrypted or written at once: eight of the largest TLS records.
pub(crate) const AT_ONCE_BYTES: usize = 128 * 1024;
/// Blocks of memory that a thread keeps. More than a few are in use only while receivers are slower than senders.
pub(crate) const BLOCKS: usize = 16;

/// Spare things of one kind; each thread has its own.
pub(crate) struct Spare<T: 'static> {
    most: usize,
    /// The last one used comes first, since it is still in the processor's cache.
    kept: RefCell<Vec<T>>,
}

impl<T> Spare<T> {
    /// None yet, and never more than `most`.
    pub(crate) const fn new(most: usize) -> Self {
        Self { most, kept: RefCell::new(Vec::new()) }
    }

    /// One that was given back.
    pub(crate) fn take(&self) -> Option<T> {
        self.kept.borrow_mut().pop()
    }

    /// Keeps it, unless there are enough.
    pub(crate) fn give_back(pool: &'static LocalKey<Self>, thing: T) {
        // When the thread ends, its pool may be gone already.
        let _ = pool.try_with(|pool| {
            let mut kept = pool.kept.borrow_mut();
            if kept.len() < pool.most {
                kept.push(thing);
            }
        });
    }

    /// What is kept.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> std::cell::Ref<'_, [T]> {
        std::cell::Ref::map(self.kept.borrow(), Vec::as_slice)
    }
}
