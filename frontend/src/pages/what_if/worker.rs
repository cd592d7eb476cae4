//! Where histories are replayed: a worker, so that the page goes on meanwhile.

use crate::api::ApiError;
use leptos::prelude::{
    GetValue as _, LocalStorage, SetValue as _, StoredValue, UpdateValue as _, WithValue as _, on_cleanup,
};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::api::Problem;
use shared::replay::report::Report;
use wasm_bindgen::JsCast as _;
use wasm_bindgen::closure::Closure;

/// As xtask names the worker's script in index.html.
const NAME: &str = "replay-worker=";

/// What is to be done: fetch a history from an address, or answer a question about it.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Fetch it.
    Load(String),
    /// Answer this, a question as JSON.
    Ask(Value),
}

/// What came of it.
pub type Outcome = Result<Option<Box<Report>>, ApiError>;

#[derive(Deserialize)]
struct Reply {
    id: u32,
    report: Option<Box<Report>>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    status: u16,
    problem: Option<Problem>,
}

struct Running {
    worker: web_sys::Worker,
    _on_message: Closure<dyn Fn(web_sys::MessageEvent)>,
}

type Told = std::rc::Rc<dyn Fn(&Work, Outcome)>;

/// A worker with at most one piece of work, and the newest that waits for it. What was asked for before is not answered.
#[derive(Clone, Copy)]
pub struct Replayer {
    running: StoredValue<Option<Running>, LocalStorage>,
    state: StoredValue<Queue, LocalStorage>,
    told: StoredValue<Option<Told>, LocalStorage>,
}

#[derive(Default)]
struct Queue {
    last: u32,
    busy: Option<(u32, Work)>,
    next: Option<Work>,
    /// What was loaded, for a worker that is started anew.
    loaded: Option<Work>,
}

impl Replayer {
    /// Tells what came of work. It ends with the screen.
    pub fn new(told: impl Fn(&Work, Outcome) + 'static) -> Self {
        let replayer = Self {
            running: StoredValue::new_local(None),
            state: StoredValue::new_local(Queue::default()),
            told: StoredValue::new_local(Some(std::rc::Rc::new(told))),
        };
        on_cleanup(move || replayer.stop());
        replayer
    }

    /// The work instead of all that was to be done before.
    pub fn instead(self, work: Work) {
        let long = self.state.with_value(|queue| {
            queue.busy.as_ref().is_some_and(|(_, work)| is_long(work)) && !matches!(work, Work::Load(_))
        });
        if long {
            // What takes long is not waited for: a new worker fetches the history again.
            self.stop();
            let loaded = self.state.try_update_value(|queue| {
                *queue = Queue { last: queue.last, loaded: queue.loaded.clone(), ..Queue::default() };
                queue.loaded.clone()
            });
            if let Some(Some(load)) = loaded {
                self.send(load);
            }
        }
        let busy = self.state.with_value(|queue| queue.busy.is_some());
        if busy && !matches!(work, Work::Load(_)) {
            self.state.update_value(|queue| queue.next = Some(work));
        } else {
            self.send(work);
        }
    }

    fn send(self, work: Work) {
        let text = self.state.try_update_value(|queue| {
            queue.last += 1;
            queue.next = None;
            if matches!(work, Work::Load(_)) {
                queue.loaded = Some(work.clone());
            }
            let text = match &work {
                Work::Load(address) => json!({ "id": queue.last, "load": address }),
                Work::Ask(question) => json!({ "id": queue.last, "ask": question }),
            };
            queue.busy = Some((queue.last, work.clone()));
            text.to_string()
        });
        if self.running.with_value(Option::is_none) {
            self.running.set_value(self.start());
        }
        let sent = self.running.with_value(|running| {
            let running = running.as_ref()?;
            running.worker.post_message(&text.unwrap_or_default().into()).ok()
        });
        if sent.is_none() {
            self.tell(&work, Err(unreachable()));
        }
    }

    fn start(self) -> Option<Running> {
        let document = web_sys::window()?.document()?;
        let listed = document.query_selector("meta[name=\"exitpilot-modules\"]").ok()??;
        let listed = listed.get_attribute("content")?;
        let script = listed.split(' ').find_map(|entry| entry.strip_prefix(NAME))?;
        let options = web_sys::WorkerOptions::new();
        options.set_type(web_sys::WorkerType::Module);
        let worker = web_sys::Worker::new_with_options(&format!("/modules/{script}"), &options).ok()?;
        let on_message: Closure<dyn Fn(web_sys::MessageEvent)> =
            Closure::new(move |event: web_sys::MessageEvent| {
                // A script that does not come is an error event without data.
                let text =
                    js_sys::Reflect::get(&event, &"data".into()).ok().and_then(|data| data.as_string());
                self.received(text.as_deref());
            });
        worker.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        worker.set_onerror(Some(on_message.as_ref().unchecked_ref()));
        Some(Running { worker, _on_message: on_message })
    }

    fn received(self, text: Option<&str>) {
        let reply = text.and_then(|text| serde_json::from_str::<Reply>(text).ok());
        let taken = self.state.try_update_value(|queue| {
            let current =
                queue.busy.as_ref().is_some_and(|(id, _)| reply.as_ref().is_none_or(|it| it.id == *id));
            if current { (queue.busy.take(), queue.next.take()) } else { (None, None) }
        });
        let Some((Some((_, work)), next)) = taken else { return };
        if reply.is_none() {
            self.stop();
        }
        let failed = reply.as_ref().is_none_or(|reply| reply.error.is_some());
        if let Some(next) = next
            && (!failed || matches!(work, Work::Ask(_)))
        {
            // The answer is old already.
            return self.send(next);
        }
        let outcome = match reply {
            None => Err(unreachable()),
            Some(Reply { error: Some(Failure { status, problem }), .. }) => {
                Err(ApiError { status, problem, retry_after_s: None })
            }
            Some(Reply { report, .. }) => Ok(report),
        };
        self.tell(&work, outcome);
    }

    fn tell(self, work: &Work, outcome: Outcome) {
        if let Some(Some(told)) = self.told.try_get_value() {
            told(work, outcome);
        }
    }

    fn stop(self) {
        self.running.try_update_value(|running| {
            if let Some(running) = running.take() {
                running.worker.terminate();
            }
        });
    }
}

fn is_long(work: &Work) -> bool {
    matches!(work, Work::Ask(question) if question["suggest"] == true)
}

fn unreachable() -> ApiError {
    ApiError { status: 0, problem: None, retry_after_s: None }
}
