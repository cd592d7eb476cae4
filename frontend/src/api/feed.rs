//! A value from the panel that can be fetched again at any time, without the old one going away meanwhile.

use super::ApiError;
use crate::lasting::Lasting;
use crate::reactive::{self, Value};
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Between two fetches of the same value: a burst of events is one fetch.
const PAUSE: Duration = Duration::from_millis(250);

/// Goes with the screen that made it; that of the page's lists stays, whatever screens read it.
type Place<T> = reactive::StoredValue<Lasting<T>>;

type Fetch<T> = Rc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<T, ApiError>>>>>;

struct Inner<T> {
    fetch: Fetch<T>,
    merge: fn(T, &T) -> T,
    wanted: bool,
    running: bool,
    again: bool,
}

/// A value from the panel, its last error, and how to fetch it again.
pub struct Feed<T: Send + Sync + 'static> {
    value: Place<Option<Arc<T>>>,
    error: Place<Option<ApiError>>,
    inner: StoredValue<Inner<T>, LocalStorage>,
}

impl<T: Send + Sync + 'static> Clone for Feed<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Send + Sync + 'static> Copy for Feed<T> {}

impl<T: PartialEq + Send + Sync + 'static> Feed<T> {
    /// A feed that fetches nothing yet.
    pub fn new<F>(fetch: impl Fn() -> F + 'static) -> Self
    where
        F: Future<Output = Result<T, ApiError>> + 'static,
    {
        Self::merging(fetch, |new, _| new)
    }

    fn merging<F>(fetch: impl Fn() -> F + 'static, merge: fn(T, &T) -> T) -> Self
    where
        F: Future<Output = Result<T, ApiError>> + 'static,
    {
        let fetch: Fetch<T> = Rc::new(move || Box::pin(fetch()));
        Self {
            value: Place::new(Lasting::new(None)),
            error: Place::new(Lasting::new(None)),
            inner: StoredValue::new_local(Inner {
                fetch,
                merge,
                wanted: false,
                running: false,
                again: false,
            }),
        }
    }

    /// The value, once there is one; whoever asks is run again when it changes.
    pub fn get(&self) -> Option<Arc<T>> {
        self.value.try_get_value()?.get()
    }

    /// The value without being told of its changes.
    pub fn now(&self) -> Option<Arc<T>> {
        self.value.try_get_value()?.get_untracked()
    }

    /// Takes a value that was fetched otherwise; tells everybody, even when it is the same.
    pub fn put(&self, value: T) {
        put(self.value, Some(Arc::new(value)));
    }

    /// Why the last fetch failed, if it did.
    pub fn error(&self) -> Option<ApiError> {
        self.error.try_get_value()?.get()
    }

    /// Fetches unless that has been done before.
    pub fn want(&self) {
        let first = self.inner.try_update_value(|inner| !std::mem::replace(&mut inner.wanted, true));
        if first == Some(true) {
            self.refresh();
        }
    }

    /// Fetches again if anybody ever wanted it.
    pub fn refresh_if_wanted(&self) {
        if self.inner.try_with_value(|inner| inner.wanted) == Some(true) {
            self.refresh();
        }
    }

    /// Fetches again. While a fetch is running, the next one waits for its end.
    pub fn refresh(&self) {
        let start = self.inner.try_update_value(|inner| {
            inner.wanted = true;
            if inner.running {
                inner.again = true;
                return false;
            }
            inner.running = true;
            true
        });
        if start == Some(true) {
            let feed = *self;
            spawn_local(async move { feed.run().await });
        }
    }

    async fn run(self) {
        loop {
            let Some(fetch) = self.inner.try_with_value(|inner| inner.fetch.clone()) else { return };
            let result = fetch().await;
            self.take(result);
            // The screen that asked may be gone by now, and this value with it.
            let again = self.inner.try_update_value(|inner| {
                inner.running = inner.again;
                std::mem::take(&mut inner.again)
            });
            if again != Some(true) {
                return;
            }
            pause(PAUSE).await;
        }
    }

    fn take(&self, result: Result<T, ApiError>) {
        match result {
            Ok(value) => {
                let Some(merge) = self.inner.try_with_value(|inner| inner.merge) else { return };
                let old = self.now();
                let value = match &old {
                    Some(old) => merge(value, old),
                    None => value,
                };
                if old.is_none_or(|old| *old != value) {
                    put(self.value, Some(Arc::new(value)));
                }
                let failed =
                    self.error.try_get_value().is_some_and(|error| error.with_untracked(Option::is_some));
                if failed {
                    put(self.error, None);
                }
            }
            Err(error) => {
                put(self.error, Some(error));
            }
        }
    }
}

impl<T: PartialEq + Send + Sync + 'static> Feed<Vec<Arc<T>>> {
    /// A list whose unchanged items stay the same pointers, so that a screen redraws only what changed.
    pub fn list<F>(fetch: impl Fn() -> F + 'static) -> Self
    where
        F: Future<Output = Result<Vec<T>, ApiError>> + 'static,
    {
        let fetch = move || {
            let fetched = fetch();
            async move { Ok(fetched.await?.into_iter().map(Arc::new).collect()) }
        };
        Self::merging(fetch, |new, old| keep_unchanged(new, old))
    }
}

/// Puts a value in unless its place went with the screen.
fn put<T: Value>(place: Place<T>, value: T) {
    if let Some(place) = place.try_get_value() {
        place.set(value);
    }
}

fn keep_unchanged<T: PartialEq>(new: Vec<Arc<T>>, old: &[Arc<T>]) -> Vec<Arc<T>> {
    // Lists keep their order, so nearly always the same place holds the same item.
    let kept = |(place, item): (usize, Arc<T>)| match old.get(place) {
        Some(same) if *same == item => same.clone(),
        _ => old.iter().find(|other| **other == item).cloned().unwrap_or(item),
    };
    new.into_iter().enumerate().map(kept).collect()
}

/// Waits.
pub async fn pause(duration: Duration) {
    let promise = js_sys::Promise::new(&mut |resolve, _| {
        set_timeout(
            move || {
                let _ = resolve.call0(&wasm_bindgen::JsValue::UNDEFINED);
            },
            duration,
        );
    });
    let _ = wasm_bindgen_futures::JsFuture::from(promise).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_items_stay_the_same_pointers() {
        let old = vec![Arc::new(1), Arc::new(2), Arc::new(3)];
        let new = keep_unchanged(vec![Arc::new(1), Arc::new(3), Arc::new(4)], &old);
        assert_eq!(new, [1, 3, 4].map(Arc::new));
        assert!(Arc::ptr_eq(&new[0], &old[0]) && Arc::ptr_eq(&new[1], &old[2]));
    }
}
