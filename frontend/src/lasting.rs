//! Values that outlive the screens that read them.
//!
//! A signal of Leptos keeps a note of 48 bytes of every reader, also of one that went with its screen, until the signal
//! changes. Of a value that lives as long as the page, as the language and the lists do, there would be more and more of
//! them; so these know their readers, and let go of those that are gone.

use crate::reactive::Value;
use leptos::prelude::{ReadUntracked as _, Track as _, Write as _};
use leptos::reactive::graph::{AnySubscriber, Observer, Source as _, ToAnySource as _};
use std::any::Any;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

type Boxed = Box<dyn Any + Send + Sync>;
type Raw = leptos::prelude::ArcRwSignal<Boxed>;

/// So many readers are noted before any is looked for that is gone.
const FEW: usize = 64;

/// Those that read a value, and more: some of them are gone, and some are noted twice.
#[derive(Default)]
struct Readers {
    noted: Vec<AnySubscriber>,
    /// When so many are noted, those that are gone are let go.
    most: usize,
}

/// Brings equal ones together (comb sort). What the standard library has for it is longer than everything else here, and
/// part of every first visit.
fn sort(readers: &mut [AnySubscriber]) {
    let mut gap = readers.len();
    loop {
        gap = (gap * 10 / 13).max(1);
        let mut sorted = gap == 1;
        for left in 0..readers.len().saturating_sub(gap) {
            if readers[left].0 > readers[left + gap].0 {
                readers.swap(left, left + gap);
                sorted = false;
            }
        }
        if sorted {
            return;
        }
    }
}

/// Tells the signal of whoever is reading, and notes it here.
fn note(raw: &Raw, readers: &Mutex<Readers>) {
    raw.track();
    let Some(reader) = Observer::get() else { return };
    let mut readers = readers.lock().unwrap_or_else(PoisonError::into_inner);
    if readers.noted.last() == Some(&reader) {
        return;
    }
    readers.noted.push(reader);
    if readers.noted.len() < readers.most.max(FEW) {
        return;
    }
    sort(&mut readers.noted);
    readers.noted.dedup();
    let source = raw.to_any_source();
    readers.noted.retain(|reader| {
        let lives = reader.1.strong_count() > 0;
        if !lives {
            source.remove_subscriber(reader);
        }
        lives
    });
    // Twice as many as there are: so each reader is looked at once or twice, however many come and go.
    readers.most = readers.noted.len() * 2;
}

/// A value that can be changed, living as long as somebody holds it.
pub struct Lasting<T> {
    raw: Raw,
    readers: Arc<Mutex<Readers>>,
    holds: PhantomData<fn() -> T>,
}

impl<T> Clone for Lasting<T> {
    fn clone(&self) -> Self {
        Self { raw: self.raw.clone(), readers: self.readers.clone(), holds: PhantomData }
    }
}

fn open<T: 'static>(value: &Boxed) -> &T {
    value.downcast_ref().expect("a value is of the type it was made with")
}

impl<T: Value> Lasting<T> {
    /// With a first value.
    pub fn new(value: T) -> Self {
        Self { raw: Raw::new(Box::new(value)), readers: Arc::default(), holds: PhantomData }
    }

    /// Whoever asks is run again when the value changes.
    pub fn track(&self) {
        note(&self.raw, &self.readers);
    }

    /// A copy of the value; whoever asks is run again when it changes.
    pub fn get(&self) -> T
    where
        T: Clone,
    {
        self.with(T::clone)
    }

    /// Looks at the value; whoever asks is run again when it changes.
    pub fn with<U>(&self, look: impl FnOnce(&T) -> U) -> U {
        self.track();
        self.with_untracked(look)
    }

    /// A copy of the value, for event handlers.
    pub fn get_untracked(&self) -> T
    where
        T: Clone,
    {
        self.with_untracked(T::clone)
    }

    /// Looks at the value, for event handlers.
    pub fn with_untracked<U>(&self, look: impl FnOnce(&T) -> U) -> U {
        look(open(&self.raw.read_untracked()))
    }

    /// Puts another value in.
    pub fn set(&self, value: T) {
        self.update(|now| *now = value);
    }

    /// Changes the value in place.
    pub fn update(&self, change: impl FnOnce(&mut T)) {
        change(self.raw.write().downcast_mut().expect("a value is of the type it was made with"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reactive::Memo;
    use leptos::prelude::Owner;

    #[test]
    fn readers_that_are_gone_are_let_go_and_those_that_live_are_told() {
        let value = Lasting::new(1);
        let read = |owner: &Owner, times: i32| {
            let value = value.clone();
            let memo = owner.with(|| Memo::new(move |()| value.get() * times));
            // Nothing is read before somebody asks.
            memo.get_untracked();
            memo
        };
        let page = Owner::new();
        let lasting = [1, 2, 3].map(|times| read(&page, times));
        let mut most = 0;
        for _ in 0..10_000 {
            let screen = Owner::new();
            read(&screen, 1);
            drop(screen);
            most = most.max(value.readers.lock().unwrap().noted.len());
        }
        assert!(most <= FEW, "{most} readers are noted");
        value.set(7);
        assert_eq!(lasting.map(|memo| memo.get_untracked()), [7, 14, 21]);
    }

    #[test]
    fn many_readers_that_live_are_all_told() {
        let value = Lasting::new(1);
        let page = Owner::new();
        let memos: Vec<Memo<i32>> = (0..1000)
            .map(|_| {
                let value = value.clone();
                page.with(|| Memo::new(move |()| value.get()))
            })
            .collect();
        for now in [1, 2, 3] {
            value.set(now);
            assert!(memos.iter().all(|memo| memo.get_untracked() == now));
        }
        assert!(value.readers.lock().unwrap().noted.len() <= 2 * memos.len());
    }
}
