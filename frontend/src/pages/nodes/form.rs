use super::install::Installing;
use super::list::{Asked, Editing};
use crate::api::client;
use crate::api::live::use_live;
use crate::i18n::{common, lang_now, nodes as words, t};
use crate::pages::question::closes;
use crate::pages::sending::{FormFoot, KeepMine, Request, Sending};
use crate::reactive::{Memo, RwSignal, Signal, part};
use crate::ui::field::said;
use crate::ui::{Checked, Dialog, FieldErrors, TextField, toast};
use leptos::prelude::*;
use shared::api::{Node, NodeInput, validate_node};
use shared::testid;
use std::sync::Arc;

/// The form for a node.
#[component]
pub fn NodeDialog(asked: Asked) -> AnyView {
    let open = closes(asked.edit);
    let title = Signal::derive(move || {
        let new = asked.edit.with(|edit| matches!(edit, Some(Editing::New)));
        t(if new { words::NEW } else { words::EDIT_TITLE })().to_owned()
    });
    view! {
        <Dialog open title>
            {part(move || asked.edit.get().map(|editing| view! { <NodeForm editing asked open /> }))}
        </Dialog>
    }
    .into_any()
}

/// Texts of the form, one per field.
#[derive(Clone, Copy)]
struct Typed {
    revision: RwSignal<Option<i64>>,
    name: RwSignal<String>,
    server_ip: RwSignal<String>,
    server_ip_v4: RwSignal<String>,
    server_ip_v6: RwSignal<String>,
    port_range: RwSignal<String>,
    interface_name: RwSignal<String>,
    tcp_listen_addr: RwSignal<String>,
    udp_listen_addr: RwSignal<String>,
}

impl Typed {
    fn new(input: NodeInput) -> Self {
        Self {
            revision: RwSignal::new(input.revision),
            name: RwSignal::new(input.name),
            server_ip: RwSignal::new(input.server_ip),
            server_ip_v4: RwSignal::new(input.server_ip_v4),
            server_ip_v6: RwSignal::new(input.server_ip_v6),
            port_range: RwSignal::new(input.port_range),
            interface_name: RwSignal::new(input.interface_name),
            tcp_listen_addr: RwSignal::new(input.tcp_listen_addr),
            udp_listen_addr: RwSignal::new(input.udp_listen_addr),
        }
    }

    fn input(self) -> NodeInput {
        let text = |signal: RwSignal<String>| signal.get().trim().to_owned();
        NodeInput {
            revision: self.revision.get(),
            name: text(self.name),
            server_ip: text(self.server_ip),
            server_ip_v4: text(self.server_ip_v4),
            server_ip_v6: text(self.server_ip_v6),
            port_range: text(self.port_range),
            interface_name: text(self.interface_name),
            tcp_listen_addr: text(self.tcp_listen_addr),
            udp_listen_addr: text(self.udp_listen_addr),
            ..NodeInput::default()
        }
    }
}

fn input_of(node: &Node) -> NodeInput {
    NodeInput {
        revision: Some(node.revision),
        name: node.name.clone(),
        server_ip: node.server_ip.clone(),
        server_ip_v4: node.server_ip_v4.clone(),
        server_ip_v6: node.server_ip_v6.clone(),
        port_range: node.port_range.clone(),
        interface_name: node.interface_name.clone(),
        tcp_listen_addr: node.tcp_listen_addr.clone(),
        udp_listen_addr: node.udp_listen_addr.clone(),
        ..NodeInput::default()
    }
}

#[component]
fn NodeForm(editing: Editing, asked: Asked, open: RwSignal<bool>) -> AnyView {
    let live = use_live();
    let existing: Option<Arc<Node>> = match editing {
        Editing::New => None,
        Editing::Existing(node) => Some(node),
    };
    let id = existing.as_ref().map(|node| node.id);
    let typed = Typed::new(existing.as_ref().map(|node| input_of(node)).unwrap_or_default());
    let wrong = FieldErrors::new(move || {
        let input = typed.input();
        Checked { json: serde_json::to_value(&input).unwrap_or_default(), errors: validate_node(&input) }
    });
    let sending = Sending::new(wrong);
    let submit = sending.on_submit(move || {
        let input = typed.input();
        Box::pin(async move {
            let node = match id {
                Some(id) => client::update_node(id, &input).await?,
                None => client::create_node(&input).await?,
            };
            live.nodes.refresh();
            let _ = open.try_set(false);
            if id.is_none() {
                toast::good(words::CREATED.with(lang_now(), &[("name", &node.name)]));
                let installing = Installing { id: node.id, name: node.name, secret: node.secret };
                let _ = asked.install.try_set(Some(installing));
            } else {
                toast::good(common::SAVED.say(lang_now()));
            }
            Ok(())
        })
    });
    let stored = move || -> Request<Option<i64>> {
        live.nodes.refresh();
        Box::pin(async move {
            let nodes = client::nodes().await?;
            Ok(nodes.iter().find(|node| Some(node.id) == id).map(|node| node.revision))
        })
    };
    let action = if id.is_some() { common::SAVE } else { common::CREATE };
    view! {
        <form class="form" on:submit=submit novalidate>
            <Fields typed wrong />
            <KeepMine sending version=typed.revision fetch=Box::new(stored) />
            <FormFoot sending open action testid=testid::NODE_SAVE />
        </form>
    }
    .into_any()
}

#[component]
fn Fields(typed: Typed, wrong: FieldErrors) -> AnyView {
    let id = |field: &str| testid::with(testid::NODE_FIELD, field);
    view! {
        <TextField label=words::NAME value=typed.name field="name" error=wrong.of("name") autofocus=true testid=id("name") />
        <TextField label=words::SERVER_IP value=typed.server_ip field="serverIp" error=wrong.of("serverIp")
            hint=said(words::SERVER_IP_HINT) testid=id("serverIp") />
        <TextField label=words::PORT_RANGE value=typed.port_range field="portRange" error=wrong.of("portRange")
            hint=said(words::PORT_RANGE_HINT) testid=id("portRange") />
        <MoreFields typed wrong />
    }
    .into_any()
}

#[component]
fn MoreFields(typed: Typed, wrong: FieldErrors) -> AnyView {
    let id = |field: &str| testid::with(testid::NODE_FIELD, field);
    let inside = ["serverIpV4", "serverIpV6", "interfaceName", "tcpListenAddr", "udpListenAddr"];
    // An error must not hide in what is closed.
    let needed = Memo::new(move |_| wrong.all().iter().any(|error| inside.contains(&error.field.as_str())));
    view! {
        <details class="advanced" prop:open=move || needed.get()>
            <summary>{t(words::ADVANCED)}</summary>
            <div class="field-row">
                <TextField label=words::SERVER_IP_V4 value=typed.server_ip_v4 field="serverIpV4"
                    error=wrong.of("serverIpV4") hint=said(words::OPTIONAL_IP_HINT) testid=id("serverIpV4") />
                <TextField label=words::SERVER_IP_V6 value=typed.server_ip_v6 field="serverIpV6"
                    error=wrong.of("serverIpV6") hint=said(words::OPTIONAL_IP_HINT) testid=id("serverIpV6") />
                <TextField label=words::TCP_LISTEN value=typed.tcp_listen_addr field="tcpListenAddr"
                    error=wrong.of("tcpListenAddr") testid=id("tcpListenAddr") />
                <TextField label=words::UDP_LISTEN value=typed.udp_listen_addr field="udpListenAddr"
                    error=wrong.of("udpListenAddr") testid=id("udpListenAddr") />
                <TextField label=words::INTERFACE value=typed.interface_name field="interfaceName"
                    error=wrong.of("interfaceName") hint=said(words::INTERFACE_HINT) testid=id("interfaceName") />
            </div>
        </details>
    }
    .into_any()
}
