//! A diagnosis, item by item as they are done.

use crate::api::http::StreamGuard;
use crate::api::{ApiError, client};
use crate::format;
use crate::i18n::{Text, common, errors, lang, t};
use crate::pages::question::closes;
use crate::reactive::{Memo, RwSignal, Signal, part, phrase};
use crate::ui::{Button, Dialog, Look};
use leptos::prelude::*;
use leptos::task::spawn_local;
use shared::api::{DiagnoseItem, DiagnoseLine};
use shared::ids::{ForwardId, TunnelId};
use shared::testid;

/// What is diagnosed, and its name.
#[derive(Clone, PartialEq)]
pub enum Subject {
    /// A tunnel.
    Tunnel(TunnelId, String),
    /// A forward.
    Forward(ForwardId, String),
}

impl Subject {
    fn name(&self) -> &str {
        match self {
            Subject::Tunnel(_, name) | Subject::Forward(_, name) => name,
        }
    }
}

#[derive(Clone, PartialEq)]
struct Outcome {
    success: bool,
    latency_ms: Option<f64>,
    loss: Option<f64>,
    /// Why it failed, in the panel's words.
    message: String,
    /// The same as a code.
    code: Option<String>,
}

#[derive(Clone, Default, PartialEq)]
struct Progress {
    items: Vec<(DiagnoseItem, Option<Outcome>)>,
    done: Option<(usize, usize)>,
    stopped: Option<ApiError>,
}

impl Progress {
    fn take(&mut self, line: DiagnoseLine) {
        match line {
            DiagnoseLine::Start { items } => {
                self.items = items.into_iter().map(|item| (item, None)).collect()
            }
            DiagnoseLine::Item { index, success, latency_ms, loss, message, code } => {
                if let Some((_, outcome)) = self.items.get_mut(index) {
                    *outcome = Some(Outcome { success, latency_ms, loss, message, code });
                }
            }
            DiagnoseLine::Done { succeeded, failed } => self.done = Some((succeeded, failed)),
        }
    }
}

/// Opens when a subject is set, and diagnoses it.
#[component]
pub fn DiagnoseDialog(asked: RwSignal<Option<Subject>>) -> AnyView {
    let open = closes(asked);
    let title = Signal::derive(move || {
        let name = asked.with(|asked| asked.as_ref().map(|subject| subject.name().to_owned()));
        common::DIAGNOSE_TITLE.with(lang(), &[("name", &name.unwrap_or_default())])
    });
    view! {
        <Dialog open title wide=true>
            {part(move || asked.get().map(|subject| view! { <Run subject open /> }))}
        </Dialog>
    }
    .into_any()
}

#[component]
fn Run(subject: Subject, open: RwSignal<bool>) -> AnyView {
    let progress = RwSignal::new(Progress::default());
    // Dropped when the dialog closes, which stops the stream.
    let guard = StoredValue::new_local(None::<StreamGuard>);
    let start = move || {
        progress.set(Progress::default());
        let Some(stream) = StreamGuard::new() else { return };
        let handle = stream.handle();
        guard.set_value(Some(stream));
        let subject = subject.clone();
        spawn_local(async move {
            let on_line = move |line| {
                let _ = progress.try_update(|progress| progress.take(line));
            };
            let ended = match subject {
                Subject::Tunnel(id, _) => client::diagnose_tunnel(id, handle, on_line).await,
                Subject::Forward(id, _) => client::diagnose_forward(id, handle, on_line).await,
            };
            if let Err(error) = ended {
                let _ = progress.try_update(|progress| progress.stopped = Some(error));
            }
        });
    };
    start();
    let running = Memo::new(move |_| progress.with(|p| p.done.is_none() && p.stopped.is_none()));
    view! {
        <p class="diagnose-status" role="status" data-testid=testid::DIAGNOSE_STATUS>
            {phrase(move || progress.with(status_line))}
        </p>
        <ol class="diagnose">{part(move || progress.with(|p| p.items.iter().enumerate().map(item_view).collect_view()))}</ol>
        <footer class="dialog-foot">
            <Button text=common::DIAGNOSE_AGAIN on_press=Callback::new(move |()| start()) disabled=running />
            <Button text=common::CLOSE on_press=Callback::new(move |()| open.set(false)) look=Look::Primary />
        </footer>
    }
    .into_any()
}

fn status_line(progress: &Progress) -> String {
    let lang = lang();
    if let Some(error) = &progress.stopped {
        return common::DIAGNOSE_STOPPED.with(lang, &[("error", &errors::api(error, lang))]);
    }
    if let Some((succeeded, failed)) = progress.done {
        let (succeeded, failed) = (succeeded.to_string(), failed.to_string());
        return common::DIAGNOSE_DONE.with(lang, &[("succeeded", &succeeded), ("failed", &failed)]);
    }
    if progress.items.is_empty() {
        return common::DIAGNOSE_STARTING.say(lang).to_owned();
    }
    let done = progress.items.iter().filter(|(_, outcome)| outcome.is_some()).count().to_string();
    common::DIAGNOSE_RUNNING.with(lang, &[("done", &done), ("total", &progress.items.len().to_string())])
}

/// Words for a kind of failure.
fn failure(code: &str) -> Option<Text> {
    Some(match code {
        "no_answer" => common::DIAGNOSE_NO_ANSWER,
        "unreachable" => common::DIAGNOSE_UNREACHABLE,
        "node_offline" => common::DIAGNOSE_NODE_OFFLINE,
        "node_timeout" => common::DIAGNOSE_NODE_TIMEOUT,
        "agent_old" => common::DIAGNOSE_AGENT_OLD,
        "agent_foreign" => common::DIAGNOSE_AGENT_FOREIGN,
        "agent_new" => common::DIAGNOSE_AGENT_NEW,
        _ => return None,
    })
}

fn item_view((index, (item, outcome)): (usize, &(DiagnoseItem, Option<Outcome>))) -> AnyView {
    let kind: Option<Text> = match item.kind.as_str() {
        "link" => Some(common::DIAGNOSE_LINK),
        "target" => Some(common::DIAGNOSE_TARGET),
        "connection" => Some(common::DIAGNOSE_CONNECTION),
        _ => None,
    };
    let (state, word, tone) = match outcome {
        None => ("waiting", common::DIAGNOSE_WAITING, "waiting"),
        Some(outcome) if outcome.success => ("ok", common::DIAGNOSE_OK, "good"),
        Some(_) => ("failed", common::DIAGNOSE_FAILED, "bad"),
    };
    let numbers = outcome.as_ref().map(|outcome| {
        let loss = outcome.loss.filter(|loss| *loss > 0.0);
        let loss = loss.map(|loss| common::LOSS_OF.with(lang(), &[("loss", &format::percent(loss))]));
        [outcome.latency_ms.map(format::ms), loss].into_iter().flatten().collect::<Vec<_>>().join(" · ")
    });
    // What was seen is in the line above; what went wrong needs words.
    let message = outcome.as_ref().filter(|outcome| !outcome.success).map(|outcome| {
        let code = outcome.code.as_deref();
        code.and_then(failure).map_or_else(|| outcome.message.clone(), |text| text.say(lang()).to_owned())
    });
    view! {
        <li data-testid=testid::with(testid::DIAGNOSE_ITEM, index) data-state=state>
            <span class=format!("state-word {tone}")>{t(word)}</span>
            <span class="diagnose-what">
                {kind.map(|kind| view! { <span class="muted">{t(kind)}</span> })}
                <span>{format!("{} → {}", item.from, item.to)}</span>
            </span>
            <span class="number">{numbers}</span>
            <span class="diagnose-message muted">{message}</span>
        </li>
    }
    .into_any()
}
