//! TCP through the relay protocol: every transport, both roles, both ways to send headers.

use crate::address::exit_ip;
use crate::node::{self, Node, Product, chain, credentials, forward};
use crate::talk;
use crate::target::{Does, Target};
use serde_json::{Value, json};
use std::net::SocketAddr;

/// When the relay headers travel: `nodelay` of connector and handler. GOST's default is not to send them alone.
#[derive(Clone, Copy, Debug)]
struct Headers {
    /// The entry asks at once and waits for the answer.
    asked_at_once: bool,
    /// The exit answers at once.
    answered_at_once: bool,
}

/// An entry, an exit and all targets.
struct Tunnel {
    _entry: Node,
    _exit: Node,
    targets: Vec<(Does, Target, SocketAddr)>,
}

impl Tunnel {
    async fn set(entry: Product, exit: Product, transport: &str, headers: Headers) -> Option<Self> {
        let mut handler = json!({ "type": "relay", "auth": credentials() });
        let mut connector = handler.clone();
        if headers.answered_at_once {
            handler["metadata"] = json!({ "nodelay": true });
        }
        if headers.asked_at_once {
            connector["metadata"] = json!({ "nodelay": true });
        }
        let (service, addr) = node::exit(handler, transport, exit_ip(1));
        let exit = Node::start(exit, "exit", &json!({ "services": [service] })).await?;

        let (mut targets, mut services): (Vec<_>, Vec<Value>) = Default::default();
        for does in [Does::Echo, Does::Greet, Does::Digest, Does::Farewell, Does::Bulk] {
            let target = Target::start(does).await;
            let (service, addr) = forward(&format!("{does:?}"), target.addr);
            services.push(service);
            targets.push((does, target, addr));
        }
        let node = json!({
            "name": "exit", "addr": addr.to_string(), "connector": connector, "dialer": { "type": transport },
        });
        let document = json!({ "services": services, "chains": [chain(&[node])] });
        let entry = Node::start(entry, "entry", &document).await?;
        Some(Self { _entry: entry, _exit: exit, targets })
    }

    fn at(&self, wanted: Does) -> (&Target, SocketAddr) {
        let (_, target, addr) = self.targets.iter().find(|(does, ..)| *does == wanted).unwrap();
        (target, *addr)
    }

    /// Holds every conversation that this row has to carry.
    async fn converse(&self, able: Able) {
        if able.client_first {
            talk::hold("client first", talk::client_first(self.at(Does::Echo).1)).await;
            talk::hold("many connections", talk::many(self.at(Does::Echo).1)).await;
            let bulk = talk::bulk(self.at(Does::Bulk).1);
            talk::try_hold("bulk both ways", talk::bulk_limit(), bulk).await.unwrap();
        }
        if able.client_first && able.client_ends {
            talk::hold("client ends its direction", talk::client_ends(self.at(Does::Digest).1)).await;
        }
        if able.server_first {
            talk::hold("server first", talk::server_first(self.at(Does::Greet).1)).await;
        }
        if able.server_first {
            let (target, addr) = self.at(Does::Farewell);
            talk::hold("server is done", talk::server_done(addr)).await;
            if able.server_ends {
                talk::hold("server ends its direction", talk::server_ends(addr, target)).await;
            }
        }
    }

    fn assert_nothing_went_past_the_exit(&self) {
        for (_, target, _) in self.targets.iter().filter(|(_, target, _)| !target.peers().is_empty()) {
            target.assert_reached_only_from(exit_ip(1));
        }
    }
}

/// What can be asked of a row. With ours on both sides all of it works. With GOST on both sides the ends that its
/// headers and sessions keep back are lost as well (tried with 3.2.6).
#[derive(Clone, Copy, Debug)]
struct Able {
    client_first: bool,
    server_first: bool,
    client_ends: bool,
    server_ends: bool,
}

impl Able {
    fn of(entry: Product, exit: Product, transport: &str, headers: Headers) -> Self {
        let entry_keeps_back = entry == Product::Gost && !headers.asked_at_once;
        let exit_keeps_back = exit == Product::Gost && !headers.answered_at_once;
        // The sessions of GOST know only an end of both directions: nothing can be said on a stream after it.
        let session = transport.starts_with('m');
        Self {
            // Who waits for an answer before passing on what the client said, and who does not answer before the target
            // has said something, wait for each other.
            client_first: !(headers.asked_at_once && exit_keeps_back),
            // The request leaves with the client's first words.
            server_first: !entry_keeps_back,
            // GOST's connection with the header still to send has no end of one direction: it closes both.
            client_ends: !entry_keeps_back && !session,
            server_ends: !exit_keeps_back && !session,
        }
    }
}

async fn row(entry: Product, exit: Product, transport: &str, headers: Headers) {
    let Some(tunnel) = Tunnel::set(entry, exit, transport, headers).await else { return };
    tunnel.converse(Able::of(entry, exit, transport, headers)).await;
    tunnel.assert_nothing_went_past_the_exit();
}

macro_rules! rows {
    ($($name:ident)*) => { $(
        mod $name {
            use super::*;

            const TRANSPORT: &str = stringify!($name);

            async fn ours_to_gost(asked_at_once: bool, answered_at_once: bool) {
                row(Product::Ours, Product::Gost, TRANSPORT, Headers { asked_at_once, answered_at_once }).await;
            }

            async fn gost_to_ours(asked_at_once: bool, answered_at_once: bool) {
                row(Product::Gost, Product::Ours, TRANSPORT, Headers { asked_at_once, answered_at_once }).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn our_entry_to_gost_with_the_defaults_of_both() {
                ours_to_gost(false, false).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn our_entry_to_gost_with_nodelay_in_both() {
                ours_to_gost(true, true).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn our_default_entry_to_gost_that_answers_at_once() {
                ours_to_gost(false, true).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn gost_entry_to_our_exit_with_the_defaults_of_both() {
                gost_to_ours(false, false).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn gost_entry_to_our_exit_with_nodelay_in_both() {
                gost_to_ours(true, true).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn gost_entry_that_waits_for_the_answer_to_our_default_exit() {
                gost_to_ours(true, false).await;
            }
        }
    )* };
}

rows! { tcp tls ws wss mtcp mtls mwss }

/// The pair for which an entry does better not to wait; with a target that speaks first it works all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_entry_that_waits_hears_a_server_behind_gost_that_holds_its_answer() {
    row(Product::Ours, Product::Gost, "tls", Headers { asked_at_once: true, answered_at_once: false }).await;
}
