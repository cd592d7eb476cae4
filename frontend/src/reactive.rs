//! Leptos' signals, compiled once.
//!
//! Leptos compiles its machinery anew for every type a signal holds and for every closure that reads one; in this page
//! that was a third of what a first visit loads. The types here have the same names and methods, keep their value in a
//! box and their closures behind a pointer, so that the machinery exists once. Imported by name they stand in front of
//! Leptos' own.

use leptos::prelude as leptos;
use leptos::{
    GetValue as _, IntoAny as _, Read as _, ReadUntracked as _, ReadValue as _, Track as _, Write as _,
    WriteValue as _,
};
use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

type Boxed = Box<dyn Any + Send + Sync>;

/// What may be in a signal.
pub trait Value: Send + Sync + 'static {}
impl<T: Send + Sync + 'static> Value for T {}

/// The value in the box.
fn open<T: 'static>(value: &Boxed) -> &T {
    value.downcast_ref().expect("a signal holds the type it was made with")
}

fn open_mut<T: 'static>(value: &mut Boxed) -> &mut T {
    value.downcast_mut().expect("a signal holds the type it was made with")
}

macro_rules! copy {
    ($name:ident) => {
        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $name<T> {}

        impl<T> PartialEq for $name<T> {
            fn eq(&self, other: &Self) -> bool {
                self.raw == other.raw
            }
        }
    };
}

macro_rules! signal {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        pub struct $name<T> {
            raw: leptos::$name<Boxed>,
            holds: PhantomData<fn() -> T>,
        }

        impl<T: Value> $name<T> {
            /// With a first value.
            pub fn new(value: T) -> Self {
                Self { raw: leptos::$name::new(Box::new(value)), holds: PhantomData }
            }

            /// A copy of the value; whoever asks is run again when it changes.
            pub fn get(&self) -> T
            where
                T: Clone,
            {
                open::<T>(&self.raw.read()).clone()
            }

            /// Looks at the value; whoever asks is run again when it changes.
            pub fn with<U>(&self, look: impl FnOnce(&T) -> U) -> U {
                look(open(&self.raw.read()))
            }

            /// A copy of the value, for event handlers.
            pub fn get_untracked(&self) -> T
            where
                T: Clone,
            {
                open::<T>(&self.raw.read_untracked()).clone()
            }

            /// Looks at the value, for event handlers.
            pub fn with_untracked<U>(&self, look: impl FnOnce(&T) -> U) -> U {
                look(open(&self.raw.read_untracked()))
            }

            /// Whoever asks is run again when the value changes.
            pub fn track(&self) {
                self.raw.track();
            }

            /// Puts another value in.
            pub fn set(&self, value: T) {
                *open_mut(&mut self.raw.write()) = value;
            }

            /// Changes the value in place.
            pub fn update(&self, change: impl FnOnce(&mut T)) {
                change(open_mut(&mut self.raw.write()));
            }

            /// Puts another value in unless the signal is gone with its screen; then the value comes back.
            pub fn try_set(&self, value: T) -> Option<T> {
                match self.raw.try_write() {
                    Some(mut place) => {
                        *open_mut(&mut place) = value;
                        None
                    }
                    None => Some(value),
                }
            }

            /// Changes the value in place unless the signal is gone with its screen.
            pub fn try_update<U>(&self, change: impl FnOnce(&mut T) -> U) -> Option<U> {
                self.raw.try_write().map(|mut place| change(open_mut(&mut place)))
            }

            /// A copy of the value unless the signal is gone with its screen.
            pub fn try_get_untracked(&self) -> Option<T>
            where
                T: Clone,
            {
                self.raw.try_read_untracked().map(|place| open::<T>(&place).clone())
            }

            /// Looks at the value unless the signal is gone with its screen.
            pub fn try_with_untracked<U>(&self, look: impl FnOnce(&T) -> U) -> Option<U> {
                self.raw.try_read_untracked().map(|place| look(open(&place)))
            }
        }
    };
}

signal! {
    /// A value that can be changed, living as long as the screen that made it.
    RwSignal
}
copy!(RwSignal);

/// A value computed from others; whoever reads it is run again only when it really changes.
pub struct Memo<T> {
    raw: leptos::Memo<Boxed>,
    holds: PhantomData<fn() -> T>,
}
copy!(Memo);

fn differ<T: PartialEq + 'static>(before: Option<&Boxed>, now: Option<&Boxed>) -> bool {
    before.map(open::<T>) != now.map(open::<T>)
}

impl<T: Value + PartialEq> Memo<T> {
    /// From the computation.
    pub fn new(compute: impl Fn(()) -> T + Send + Sync + 'static) -> Self {
        let compute: Box<dyn Fn() -> Boxed + Send + Sync> = Box::new(move || Box::new(compute(())));
        let raw = memo_of(compute, differ::<T>);
        Self { raw, holds: PhantomData }
    }

    /// A copy of the value; whoever asks is run again when it changes.
    pub fn get(&self) -> T
    where
        T: Clone,
    {
        open::<T>(&self.raw.read()).clone()
    }

    /// Looks at the value; whoever asks is run again when it changes.
    pub fn with<U>(&self, look: impl FnOnce(&T) -> U) -> U {
        look(open(&self.raw.read()))
    }

    /// A copy of the value, for event handlers.
    pub fn get_untracked(&self) -> T
    where
        T: Clone,
    {
        open::<T>(&self.raw.read_untracked()).clone()
    }

    /// Looks at the value, for event handlers.
    pub fn with_untracked<U>(&self, look: impl FnOnce(&T) -> U) -> U {
        look(open(&self.raw.read_untracked()))
    }
}

fn memo_of(
    compute: Box<dyn Fn() -> Boxed + Send + Sync>,
    differ: fn(Option<&Boxed>, Option<&Boxed>) -> bool,
) -> leptos::Memo<Boxed> {
    leptos::Memo::new_with_compare(move |_| compute(), differ)
}

type Source = Arc<dyn Fn() -> Boxed + Send + Sync>;

/// Something that can be read, wherever it comes from.
pub struct Signal<T> {
    raw: leptos::StoredValue<Source>,
    holds: PhantomData<fn() -> T>,
}
copy!(Signal);

impl<T: Value> Signal<T> {
    /// From a function.
    pub fn derive(read: impl Fn() -> T + Send + Sync + 'static) -> Self {
        Self { raw: leptos::StoredValue::new(Arc::new(move || Box::new(read()))), holds: PhantomData }
    }

    /// A value that never changes.
    pub fn stored(value: T) -> Self
    where
        T: Clone,
    {
        Self::derive(move || value.clone())
    }

    /// The value; whoever asks is run again when it changes.
    pub fn get(&self) -> T {
        let value: Box<dyn Any> = (self.raw.get_value())();
        *value.downcast().expect("a signal holds the type it was made with")
    }

    /// Looks at the value; whoever asks is run again when it changes.
    pub fn with<U>(&self, look: impl FnOnce(&T) -> U) -> U {
        look(&self.get())
    }

    /// The value, for event handlers.
    pub fn get_untracked(&self) -> T {
        leptos::untrack(|| self.get())
    }
}

impl<T: Value + Clone + Default> Default for Signal<T> {
    fn default() -> Self {
        Self::stored(T::default())
    }
}

impl<T: Value + Clone> From<T> for Signal<T> {
    fn from(value: T) -> Self {
        Self::stored(value)
    }
}

impl<T: Value + Clone> From<RwSignal<T>> for Signal<T> {
    fn from(signal: RwSignal<T>) -> Self {
        Self::derive(move || signal.get())
    }
}

impl<T: Value + Clone + PartialEq> From<Memo<T>> for Signal<T> {
    fn from(memo: Memo<T>) -> Self {
        Self::derive(move || memo.get())
    }
}

/// A value that is only kept, living as long as the screen that made it.
pub struct StoredValue<T> {
    raw: leptos::StoredValue<Boxed>,
    holds: PhantomData<fn() -> T>,
}
copy!(StoredValue);

impl<T: Value> StoredValue<T> {
    /// Keeps a value.
    pub fn new(value: T) -> Self {
        Self { raw: leptos::StoredValue::new(Box::new(value)), holds: PhantomData }
    }

    /// A copy of it.
    pub fn get_value(&self) -> T
    where
        T: Clone,
    {
        open::<T>(&self.raw.read_value()).clone()
    }

    /// A copy of it unless it is gone with its screen.
    pub fn try_get_value(&self) -> Option<T>
    where
        T: Clone,
    {
        self.raw.try_read_value().map(|place| open::<T>(&place).clone())
    }

    /// Looks at it.
    pub fn with_value<U>(&self, look: impl FnOnce(&T) -> U) -> U {
        look(open(&self.raw.read_value()))
    }

    /// Keeps another value.
    pub fn set_value(&self, value: T) {
        *open_mut(&mut self.raw.write_value()) = value;
    }
}

/// Something that is done for the world outside whenever what it read has changed.
pub struct Effect;

impl Effect {
    /// From what is to be done.
    pub fn run(act: impl FnMut() + 'static) {
        let act: Box<dyn FnMut()> = Box::new(act);
        leptos::Effect::new(act);
    }

    /// From what is to be done, with what it returned the time before.
    pub fn with_before<T: 'static>(mut act: impl FnMut(Option<T>) -> T + 'static) {
        let mut before = None;
        Self::run(move || before = Some(act(before.take())));
    }
}

/// A part of a view that is drawn again whenever what it read has changed.
pub fn part<V: leptos::IntoView + 'static>(draw: impl Fn() -> V + Send + 'static) -> leptos::AnyView {
    let draw: Box<dyn Fn() -> leptos::AnyView + Send> = Box::new(move || draw().into_any());
    draw.into_any()
}

/// What a text can be made of.
pub trait Words {
    /// The text.
    fn words(self) -> String;
}

impl Words for String {
    fn words(self) -> String {
        self
    }
}

impl Words for &str {
    fn words(self) -> String {
        self.to_owned()
    }
}

impl Words for usize {
    fn words(self) -> String {
        self.to_string()
    }
}

impl<T: Words> Words for Option<T> {
    fn words(self) -> String {
        self.map(Words::words).unwrap_or_default()
    }
}

/// A text in a view that follows what it read.
pub fn phrase<W: Words>(say: impl Fn() -> W + Send + 'static) -> leptos::AnyView {
    let say: Box<dyn Fn() -> String + Send> = Box::new(move || say().words());
    say.into_any()
}

/// Draws one row per item; a row stays as long as its item's key is there.
pub fn each<T: Value + Clone>(
    items: impl Fn() -> Vec<T> + Send + Sync + 'static,
    key: fn(&T) -> Key,
    row: impl Fn(T) -> leptos::AnyView + Send + Sync + 'static,
) -> leptos::AnyView {
    let items: Box<dyn Fn() -> Vec<Item> + Send + Sync> = Box::new(move || {
        items().into_iter().map(|item| Item { key: key(&item), value: Arc::new(item) }).collect()
    });
    let row: Arc<dyn Fn(Item) -> leptos::AnyView + Send + Sync> = Arc::new(move |item| {
        let value = item.value.downcast_ref::<T>().expect("an item holds the type of its list");
        row(value.clone())
    });
    rows(items, row)
}

/// Tells the items of a list apart: an id, and a mark of the item's content where a changed item is to be drawn anew.
pub type Key = (i64, usize);

#[derive(Clone)]
struct Item {
    key: Key,
    value: Arc<dyn Any + Send + Sync>,
}

fn rows(
    items: Box<dyn Fn() -> Vec<Item> + Send + Sync>,
    row: Arc<dyn Fn(Item) -> leptos::AnyView + Send + Sync>,
) -> leptos::AnyView {
    use leptos::For;
    leptos::view! { <For each=items key=|item| item.key children=move |item| row(item) /> }.into_any()
}

/// A condition.
pub struct Condition(Box<dyn Fn() -> bool + Send + Sync>);

impl<F: Fn() -> bool + Send + Sync + 'static> From<F> for Condition {
    fn from(hold: F) -> Self {
        Self(Box::new(hold))
    }
}

/// Draws its children while a condition holds, else the fallback.
#[leptos::component]
pub fn Show(
    #[prop(into)] when: Condition,
    #[prop(optional, into)] fallback: Option<leptos::ViewFn>,
    children: leptos::ChildrenFn,
) -> leptos::AnyView {
    let holds = Memo::new(move |()| (when.0)());
    part(move || match (holds.get(), &fallback) {
        (true, _) => children(),
        (false, Some(fallback)) => fallback.run(),
        (false, None) => leptos::IntoAny::into_any(()),
    })
}
