use super::lint::lint;
use super::*;
use proptest::prelude::*;
use proptest::strategy::Strategy as _;
use serde_json::json;
use shared::api::{IpPreference, TunnelType};
use shared::gost::Auth;
use shared::ids::UserId;
use shared::strategy::{Protocol, Strategy};

fn node(n: i64) -> NodeIntent {
    NodeIntent {
        name: format!("node-{n}"),
        server_ip: format!("192.0.2.{n}"),
        tcp_listen_addr: "[::]".into(),
        udp_listen_addr: "[::]".into(),
        port_range: "10000-60000".into(),
        ..NodeIntent::default()
    }
}

fn group(strategy: Strategy, nodes: &[i64]) -> GroupIntent {
    let member = |n: &i64| MemberIntent { node: NodeId(*n), port: 20_000 + *n as u16, connect_ip: None };
    GroupIntent {
        strategy,
        protocol: Protocol::Tls,
        max_fails: 3,
        fail_timeout_ms: 30_000,
        nodes: nodes.iter().map(member).collect(),
    }
}

fn tunnel(entry: &[i64], hops: Vec<GroupIntent>, exit: GroupIntent) -> TunnelIntent {
    TunnelIntent {
        name: "t".into(),
        kind: TunnelType::Tunnel,
        enabled: true,
        ip_preference: IpPreference::Auto,
        entry: entry.iter().copied().map(NodeId).collect(),
        hops,
        exit: Some(exit),
        relay_auth: Auth { username: "u".into(), password: "p".into() },
    }
}

fn forward(tunnel: i64) -> ForwardIntent {
    ForwardIntent {
        name: "f".into(),
        tunnel: TunnelId(tunnel),
        user: UserId(1),
        listen_port: 30_000,
        listen_ip: None,
        targets: vec!["a.example:80".into(), "[2001:db8::1]:443".into()],
        strategy: Strategy::Fifo,
        enabled: true,
    }
}

/// Tunnel 42: entry 11, hop 21 and 22, best exits 30, 31, 32; forward 7.
fn example() -> Intent {
    let mut intent = Intent::default();
    for n in [11, 21, 22, 30, 31, 32] {
        intent.nodes.insert(NodeId(n), node(n));
    }
    let hops = vec![group(Strategy::Round, &[21, 22])];
    intent.tunnels.insert(TunnelId(42), tunnel(&[11], hops, group(Strategy::Best, &[30, 31, 32])));
    intent.forwards.insert(ForwardId(7), forward(42));
    intent
}

fn rendered(intent: Intent) -> Plans {
    let plans = render(Arc::new(intent));
    assert_eq!(lint(&plans), Vec::<String>::new());
    plans
}

fn members(plans: &Plans, node: i64, chain: &str) -> Vec<String> {
    let hop = &plans.nodes[&NodeId(node)].chains[chain].config.hops[0];
    hop.members().iter().map(|node| node.name.clone()).collect()
}

#[test]
fn each_node_gets_its_part_and_no_more() {
    let plans = rendered(example());
    let names = |n: i64| {
        let plan = &plans.nodes[&NodeId(n)];
        let names: Vec<&str> = plan.chains.keys().chain(plan.services.keys()).map(String::as_str).collect();
        names.join(" ")
    };
    assert_eq!(names(11), "chains_42 7_1_0_tcp 7_1_0_udp");
    assert_eq!(names(21), "chains_42 tunnel_42");
    assert_eq!(names(22), "chains_42 tunnel_42");
    for exit in [30, 31, 32] {
        assert_eq!(names(exit), "tunnel_42");
    }
    assert!(plans.nodes.values().all(|plan| plan.problems.is_empty()));
}

#[test]
fn objects_as_they_are_sent() {
    let mut intent = example();
    intent.nodes.get_mut(&NodeId(21)).unwrap().interface_name = "eth1".into();
    intent.nodes.get_mut(&NodeId(30)).unwrap().interface_name = "eth2".into();
    intent.applied.insert((TunnelId(42), NodeId(21)), vec![NodeId(31), NodeId(30), NodeId(32)]);
    let plans = rendered(intent);
    let node = |name: &str, addr: &str| {
        json!({"name":name,"addr":addr,
            "connector":{"type":"relay","auth":{"username":"u","password":"p"},"metadata":{"nodelay":true}},
            "dialer":{"type":"tls"}})
    };
    assert_eq!(
        serde_json::to_value(&plans.nodes[&NodeId(21)].chains["chains_42"].config).unwrap(),
        json!({"name":"chains_42","hops":[{"name":"hop_42",
            "selector":{"strategy":"fifo","maxFails":3,"failTimeout":30_000_000_000u64},
            "nodes":[node("node_2","192.0.2.31:20031"),node("node_1","192.0.2.30:20030"),
                     node("node_3","192.0.2.32:20032")],
            "interface":"eth1"}]})
    );
    assert_eq!(
        serde_json::to_value(&plans.nodes[&NodeId(21)].services["tunnel_42"].config).unwrap(),
        json!({"name":"tunnel_42","addr":"[::]:20021",
            "handler":{"type":"relay","chain":"chains_42","auth":{"username":"u","password":"p"},
                       "metadata":{"nodelay":true}},
            "listener":{"type":"tls"}})
    );
    assert_eq!(
        serde_json::to_value(&plans.nodes[&NodeId(30)].services["tunnel_42"].config).unwrap(),
        json!({"name":"tunnel_42","addr":"[::]:20030",
            "handler":{"type":"relay","auth":{"username":"u","password":"p"},"metadata":{"nodelay":true}},
            "listener":{"type":"tls"},"metadata":{"interface":"eth2"}})
    );
    assert_eq!(
        serde_json::to_value(&plans.nodes[&NodeId(11)].services["7_1_0_tcp"].config).unwrap(),
        json!({"name":"7_1_0_tcp","addr":"[::]:30000","handler":{"type":"tcp","chain":"chains_42"},
            "listener":{"type":"tcp"},
            "forwarder":{"nodes":[{"name":"node_1","addr":"a.example:80"},
                                  {"name":"node_2","addr":"[2001:db8::1]:443"}],
                         "selector":{"strategy":"fifo","maxFails":3,"failTimeout":30_000_000_000u64}}})
    );
    let services = &plans.nodes[&NodeId(11)].services;
    let udp = serde_json::to_value(&services["7_1_0_udp"].config).unwrap();
    let mut expected = serde_json::to_value(&services["7_1_0_tcp"].config).unwrap();
    expected["name"] = json!("7_1_0_udp");
    expected["handler"]["type"] = json!("udp");
    expected["listener"] = json!({"type":"udp","metadata":{"keepAlive":true,"ttl":"30s"}});
    assert_eq!(udp, expected);
}

#[test]
fn the_applied_order_is_completed_and_belongs_to_its_owner() {
    let mut intent = example();
    // 99 is gone, 32 is new; owner 22 has no order yet.
    intent.applied.insert((TunnelId(42), NodeId(21)), vec![NodeId(31), NodeId(99), NodeId(30)]);
    let plans = rendered(intent);
    assert_eq!(members(&plans, 21, "chains_42"), ["node_2", "node_1", "node_3"]);
    assert_eq!(members(&plans, 22, "chains_42"), ["node_1", "node_2", "node_3"]);
    assert_eq!(members(&plans, 11, "chains_42"), ["node_1", "node_2"], "not an owner: the hop's saved order");
}

#[test]
fn an_applied_order_counts_for_best_only() {
    let mut intent = example();
    intent.applied.insert((TunnelId(42), NodeId(21)), vec![NodeId(32), NodeId(31), NodeId(30)]);
    intent.tunnels.get_mut(&TunnelId(42)).unwrap().exit.as_mut().unwrap().strategy = Strategy::Rand;
    let plans = rendered(intent);
    assert_eq!(members(&plans, 21, "chains_42"), ["node_1", "node_2", "node_3"]);
    let chain = &plans.nodes[&NodeId(21)].chains["chains_42"].config;
    assert_eq!(chain.hops[0].selector.as_ref().unwrap().strategy, "rand");
}

#[test]
fn a_pushed_order_renders_as_the_plan_would_with_it() {
    let intent = example();
    let order = [NodeId(32), NodeId(30), NodeId(31)];
    let pushed = owner_chain(&intent, TunnelId(42), NodeId(22), &order).unwrap();
    let mut later = intent.clone();
    later.applied.insert((TunnelId(42), NodeId(22)), order.to_vec());
    assert_eq!(rendered(later).nodes[&NodeId(22)].chains["chains_42"], pushed);
    assert_eq!(owner_chain(&intent, TunnelId(42), NodeId(30), &order), None, "an exit holds no chain");
    assert_eq!(owner_chain(&intent, TunnelId(1), NodeId(22), &order), None);
}

#[test]
fn what_is_off_is_not_there() {
    let mut intent = example();
    intent.forwards.get_mut(&ForwardId(7)).unwrap().enabled = false;
    let plans = rendered(intent.clone());
    assert!(plans.nodes[&NodeId(11)].services.is_empty(), "a paused forward");
    assert!(!plans.nodes[&NodeId(11)].chains.is_empty());

    intent.forwards.get_mut(&ForwardId(7)).unwrap().enabled = true;
    intent.tunnels.get_mut(&TunnelId(42)).unwrap().enabled = false;
    let plans = rendered(intent);
    assert!(plans.nodes.values().all(|plan| *plan == NodePlan::default()), "a disabled tunnel");
}

#[test]
fn a_port_tunnel_has_forwards_without_a_chain() {
    let mut intent = example();
    intent.nodes.get_mut(&NodeId(11)).unwrap().interface_name = "eth0".into();
    let stored = intent.tunnels.get_mut(&TunnelId(42)).unwrap();
    (stored.kind, stored.hops, stored.exit) = (TunnelType::Port, vec![], None);
    let plans = rendered(intent);
    let plan = &plans.nodes[&NodeId(11)];
    assert!(plan.chains.is_empty() && plan.problems.is_empty());
    let service = &plan.services["7_1_0_tcp"].config;
    assert_eq!(service.handler.chain, None);
    assert_eq!(service.metadata["interface"], "eth0");
}

#[test]
fn an_exit_of_another_family_is_left_out_and_told() {
    let mut intent = example();
    intent.nodes.get_mut(&NodeId(31)).unwrap().server_ip = "2001:db8::31".into();
    let plans = rendered(intent);
    assert_eq!(members(&plans, 21, "chains_42"), ["node_1", "node_3"], "names stay");
    let problem = &plans.nodes[&NodeId(21)].problems[&Subject::Tunnel(TunnelId(42))];
    assert!(problem.contains("node-21") && problem.contains("node-31"), "{problem}");
    assert!(plans.nodes[&NodeId(11)].problems.is_empty(), "the entry reaches its hop");
}

#[test]
fn nothing_leads_into_a_missing_chain() {
    let mut intent = example();
    for exit in [30, 31, 32] {
        intent.nodes.get_mut(&NodeId(exit)).unwrap().server_ip = format!("2001:db8::{exit}");
    }
    // The hop nodes reach no exit, so they relay nothing; a chain or relay without a way on would be a leak.
    let plans = rendered(intent.clone());
    for hop in [21, 22] {
        let plan = &plans.nodes[&NodeId(hop)];
        assert!(plan.chains.is_empty() && plan.services.is_empty());
        assert!(plan.problems.contains_key(&Subject::Tunnel(TunnelId(42))));
    }
    // Without the hop it is the entry that reaches no exit; its forward is not rendered and says why.
    intent.tunnels.get_mut(&TunnelId(42)).unwrap().hops.clear();
    let plans = rendered(intent);
    let plan = &plans.nodes[&NodeId(11)];
    assert!(plan.chains.is_empty() && plan.services.is_empty());
    assert!(plan.problems[&Subject::Forward(ForwardId(7))].contains("no address family in common"));
}

#[test]
fn passwords_are_masked_for_eyes() {
    let plans = rendered(example());
    for plan in plans.nodes.values() {
        let view = mask::view(plan, |subject| subject == Subject::Tunnel(TunnelId(42)));
        let text = serde_json::to_string(&view).unwrap();
        assert!(!text.contains("\"p\"") && text.contains(mask::MASK), "{text}");
        assert!(!text.contains("7_1_0_tcp"));
    }
}

prop_compose! {
    fn any_intent()(
        families in prop::collection::vec(0..3u8, 8),
        best in any::<bool>(),
        preference in 0..3u8,
        cut in (1..4usize, 0..3usize, 1..4usize),
        order in Just(vec![0i64, 1, 2, 3, 4, 5, 6, 7]).prop_shuffle(),
        applied in prop::collection::vec(0..8i64, 0..5),
        with_forward in any::<bool>(),
    ) -> Intent {
        let mut intent = Intent::default();
        for (n, family) in (0i64..).zip(families) {
            let mut made = node(n + 1);
            match family {
                0 => {}
                1 => made.server_ip = format!("2001:db8::{}", n + 1),
                _ => made.server_ip_v6 = format!("2001:db8::{}", n + 1),
            }
            intent.nodes.insert(NodeId(n), made);
        }
        let (entries, hops, exits) = cut;
        let entry = &order[..entries];
        let hop = &order[entries..entries + hops];
        let exit = &order[entries + hops..(entries + hops + exits).min(8)];
        let strategy = if best { Strategy::Best } else { Strategy::Fifo };
        let hops = if hop.is_empty() { vec![] } else { vec![group(Strategy::Round, hop)] };
        let mut made = tunnel(entry, hops, group(strategy, exit));
        made.ip_preference = [IpPreference::Auto, IpPreference::V4, IpPreference::V6][usize::from(preference)];
        for owner in made.owners() {
            intent.applied.insert((TunnelId(1), owner), applied.iter().copied().map(NodeId).collect());
        }
        intent.tunnels.insert(TunnelId(1), made);
        if with_forward {
            intent.forwards.insert(ForwardId(1), forward(1));
        }
        intent
    }
}

proptest! {
    #[test]
    fn every_plan_passes_the_lint(intent in any_intent()) {
        let plans = render(Arc::new(intent));
        prop_assert_eq!(lint(&plans), Vec::<String>::new());
        // A node that is asked to dial somewhere either does, or says why not.
        let tunnel = &plans.intent.tunnels[&TunnelId(1)];
        for owner in tunnel.owners() {
            let plan = &plans.nodes[&owner];
            let dialled = plan.chains.get("chains_1").map_or(0, |chain| chain.config.hops[0].members().len());
            let complete = dialled == tunnel.exit.as_ref().unwrap().nodes.len();
            prop_assert_eq!(complete, !plan.problems.contains_key(&Subject::Tunnel(TunnelId(1))));
        }
    }

    #[test]
    fn plans_that_reuse_those_before_are_the_same(
        before in any_intent(),
        after in any_intent(),
        keep in prop::array::uniform4(any::<bool>()),
        deleted in 1..9i64,
    ) {
        let mut next = after;
        let [nodes, tunnels, forwards, applied] = keep;
        if nodes {
            next.nodes.clone_from(&before.nodes);
        }
        if tunnels {
            next.tunnels.clone_from(&before.tunnels);
        }
        if forwards {
            next.forwards.clone_from(&before.forwards);
        }
        if applied {
            next.applied.clone_from(&before.applied);
        }
        let plans = render(Arc::new(before.clone()));
        // What is reused must be as it was, and what is not must be made.
        prop_assert_eq!(render_again(plans.intent.clone(), Some(&plans)), plans.clone());
        next.nodes.remove(&NodeId(deleted));
        let next = Arc::new(next);
        prop_assert_eq!(render_again(next.clone(), Some(&plans)), render(next));
    }

    #[test]
    fn saved_order_does_not_change_what_members_are_called(intent in any_intent()) {
        // Names follow the saved position, so a chain with another applied order holds the same nodes.
        let mut other = intent.clone();
        other.applied.clear();
        let (a, b) = (render(Arc::new(intent)), render(Arc::new(other)));
        for (node, plan) in &a.nodes {
            for (name, chain) in &plan.chains {
                let sorted = |chain: &Planned<ChainConfig>| {
                    let mut nodes: Vec<_> =
                        chain.config.hops[0].members().iter().map(|n| (n.name.clone(), n.addr.clone())).collect();
                    nodes.sort();
                    nodes
                };
                prop_assert_eq!(sorted(chain), sorted(&b.nodes[node].chains[name]));
            }
        }
    }
}
