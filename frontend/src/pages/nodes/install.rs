use crate::api::live::use_live;
use crate::api::{Feed, client};
use crate::i18n::{common, lang, nodes as words, t};
use crate::pages::loaded::loaded;
use crate::pages::question::closes;
use crate::reactive::{Memo, RwSignal, Show, Signal, part};
use crate::ui::{Button, CopyBox, Dialog, Look};
use leptos::prelude::*;
use shared::ids::NodeId;
use shared::testid;

/// Whose agent is to be installed. The secret is there right after it was made, and never again.
#[derive(Clone, PartialEq)]
pub struct Installing {
    /// The node.
    pub id: NodeId,
    /// Its name.
    pub name: String,
    /// Its secret, if it was made just now.
    pub secret: Option<String>,
}

/// Shows the command line that installs a node's agent.
#[component]
pub fn InstallDialog(asked: RwSignal<Option<Installing>>) -> AnyView {
    let open = closes(asked);
    let title = Signal::derive(move || {
        let name = asked.with(|asked| asked.as_ref().map(|asked| asked.name.clone())).unwrap_or_default();
        words::INSTALL_TITLE.with(lang(), &[("name", &name)])
    });
    view! {
        <Dialog open title wide=true>
            {part(move || asked.get().map(|installing| view! { <Command installing /> }))}
            <footer class="dialog-foot">
                <Button text=common::CLOSE look=Look::Primary on_press=Callback::new(move |()| open.set(false))
                    testid=testid::CANCEL />
            </footer>
        </Dialog>
    }
    .into_any()
}

/// The command's placeholder for the secret.
const PLACEHOLDER: &str = "<secret>";

/// Whether an address leads nowhere from another machine.
fn is_of_this_machine(address: &str) -> bool {
    let host = address.split_once("://").map_or(address, |(_, host)| host);
    ["127.", "localhost", "[::1]", "0.0.0.0"].iter().any(|own| host.starts_with(own))
}

#[component]
fn Command(installing: Installing) -> AnyView {
    let id = installing.id;
    let live = use_live();
    let command = Feed::new(move || client::install_command(id));
    let secret = installing.secret.clone();
    let with_secret = move |line: String| match &secret {
        Some(secret) => line.replace(PLACEHOLDER, secret),
        None => line,
    };
    let lines = Memo::new(move |_| {
        let (script, command) =
            command.get().map(|answer| (answer.script.clone(), answer.command.clone())).unwrap_or_default();
        (with_secret(script), with_secret(command))
    });
    let script = Signal::derive(move || lines.with(|lines| lines.0.clone()));
    let line = Signal::derive(move || lines.with(|lines| lines.1.clone()));
    let own = Memo::new(move |_| command.get().is_some_and(|answer| is_of_this_machine(&answer.panel)));
    let online = Memo::new(move |_| {
        live.nodes.get().is_some_and(|nodes| nodes.iter().any(|node| node.id == id && node.online))
    });
    let state = move || {
        let (class, text) = if online.get() {
            ("online yes", words::INSTALL_DONE)
        } else {
            ("online no", words::INSTALL_WAITING)
        };
        view! { <span class=class>{t(text)}</span> }
    };
    let once = installing.secret.is_some().then(|| {
        view! { <div class="alert notice"><p>{t(words::SECRET_ONCE)}</p></div> }
    });
    let secret = installing.secret.map(|secret| {
        view! {
            <h3>{t(words::SECRET)}</h3>
            <CopyBox text=Signal::stored(secret) testid=testid::NODE_SECRET />
        }
    });
    let placeholder =
        secret.is_none().then(|| view! { <p class="hint">{t(words::INSTALL_PLACEHOLDER_HINT)}</p> });
    view! {
        {once}
        <p>{t(words::INSTALL_HINT)}</p>
        <Show when=move || own.get()>
            <div class="alert notice"><p>{t(words::INSTALL_LOOPBACK)}</p></div>
        </Show>
        {loaded(command, move || view! {
            <CopyBox text=script testid=testid::INSTALL_SCRIPT />
            <p role="status">{part(state)}</p>
            <p>{t(words::INSTALL_BY_HAND)}</p>
            <CopyBox text=line testid=testid::INSTALL_COMMAND />
        }.into_any())}
        {secret}
        {placeholder}
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::is_of_this_machine;

    #[test]
    fn addresses_that_lead_nowhere_from_elsewhere_are_told_apart() {
        for own in ["ws://127.0.0.1:6365", "ws://localhost:6365", "ws://[::1]:6365"] {
            assert!(is_of_this_machine(own), "{own}");
        }
        for other in ["wss://panel.example.com", "ws://192.0.2.1:6365", "ws://[2001:db8::1]:6365"] {
            assert!(!is_of_this_machine(other), "{other}");
        }
    }
}
