//! The API that dashboards speak: access, names, choices.

use crate::clash_rig::*;
use crate::policies::{Page, exits, now};
use crate::rig::*;
use agent::clash::Clash;
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::{Value, json};

/// What there is in an order that is not that of the alphabet: the chain `z` with the selector `h` over `a` and `b`, the
/// chain `m` with the test `t` over `a` and `c`, the chain `two` of two hops; and the service `f`, which chooses among them
/// and between two targets.
pub(crate) async fn runtime(page: &Page, exits: &[Exit; 2], target: &Target) -> Runtime {
    let runtime = Runtime::new(RuntimeOptions::default());
    let selector = json!({"strategy": "selector"});
    let [a, b] = exits;
    let hop = json!({"name": "h", "selector": selector, "nodes": [a.node("a", "tcp"), b.node("b", "tcp")]});
    runtime.apply(Change::AddChain(chain(json!({"name": "z", "hops": [hop]})))).await.unwrap();
    let tested = json!({"strategy": format!("urltest(url={}, interval=1h)", page.url())});
    let hop = json!({"name": "t", "selector": tested, "nodes": [a.node("a", "tcp"), b.node("c", "tcp")]});
    runtime.apply(Change::AddChain(chain(json!({"name": "m", "hops": [hop]})))).await.unwrap();
    let first = json!({"name": "in", "selector": selector, "nodes": [a.node("d", "tcp")]});
    let second = json!({"name": "out", "nodes": [b.node("e", "tcp")]});
    runtime.apply(Change::AddChain(chain(json!({"name": "two", "hops": [first, second]})))).await.unwrap();
    let targets =
        json!([{"name": "t1", "addr": target.addr.to_string()}, {"name": "z", "addr": "192.0.2.1:1"}]);
    let service = service(json!({
        "name": "f", "addr": "127.0.0.1:0", "listener": {"type": "tcp"},
        "handler": {"type": "tcp", "chainGroup": {"chains": ["z", "m", "two"], "selector": selector}},
        "forwarder": {"nodes": targets, "selector": {"strategy": "fixed(0)"}}
    }));
    runtime.apply(Change::AddServices(vec![service])).await.unwrap();
    eventually("both are tested", || {
        runtime.group("chain/m/t").unwrap().members.iter().all(|member| member.latency_ms.is_some())
    })
    .await;
    runtime
}

#[tokio::test]
async fn it_is_never_there_without_a_secret() {
    let error = Clash::bind(&options("", &[])).await.unwrap_err().to_string();
    assert!(error.ends_with("needs a secret"), "{error}");
    let error = Clash::bind(&options("s", &["*"])).await.unwrap_err().to_string();
    assert!(error.starts_with("`*` is no origin"), "{error}");
    assert!(!format!("{:?}", options(SECRET, &[])).contains(SECRET));

    let runtime = Runtime::new(RuntimeOptions::default());
    let dashboard = Dashboard::of(&runtime).await;
    let token = "a%20secret%20of%20dashboards";
    let lines = [
        "GET /",
        "GET /version",
        "GET /configs",
        "PUT /configs",
        "GET /rules",
        "GET /providers/proxies",
        "GET /proxies",
        "GET /proxies/GLOBAL",
        "PUT /proxies/x",
        "DELETE /proxies/x",
        "GET /proxies/x/delay",
        "GET /group",
        "GET /group/x",
        "GET /group/x/delay",
        "GET /connections",
        "DELETE /connections",
        "DELETE /connections/1",
        "GET /traffic",
        "GET /memory",
        "GET /logs",
        "GET /x",
        "POST /proxies",
        "OPTIONS /proxies",
        // The token in an address is for websockets only.
        &format!("GET /version?token={token}"),
    ];
    let wrong = [
        "",
        "Authorization: Bearer \r\n",
        "Authorization: Bearer a secret of dashboardt\r\n",
        "Authorization: a secret of dashboards\r\n",
    ];
    for line in lines {
        for head in wrong {
            let answer = dashboard.ask(line, head, "").await;
            let got = (answer.status, answer.body.as_str());
            assert_eq!(got, (401, r#"{"message":"Unauthorized"}"#), "{line} {head}");
        }
    }
    for path in ["/traffic", "/connections", "/traffic?token=", "/traffic?token=a"] {
        assert_eq!(dashboard.stream(path).await.err(), Some(401), "{path}");
    }
    dashboard.stream(&format!("/traffic?token={token}")).await.unwrap();
}

#[tokio::test]
async fn pages_of_other_origins_are_let_in_by_name() {
    let dashboard = Dashboard::of(&Runtime::new(RuntimeOptions::default())).await;
    let asks = "Access-Control-Request-Method: PUT\r\nAccess-Control-Request-Private-Network: true\r\n";
    let first = async |origin: &str| {
        dashboard.ask("OPTIONS /proxies/x", &format!("Origin: {origin}\r\n{asks}"), "").await
    };
    let allowed = first(ORIGIN).await;
    assert_eq!(allowed.status, 204);
    for line in [
        "access-control-allow-origin: https://dash.example",
        "access-control-allow-methods: get, post, put, patch, delete",
        "access-control-allow-headers: content-type, authorization",
        "access-control-max-age: 300",
        "access-control-allow-private-network: true",
        "vary: origin",
    ] {
        assert!(allowed.head.lines().any(|there| there == line), "{line} not in {}", allowed.head);
    }
    for origin in ["https://other.example", "http://dash.example", "https://dash.example:8443", "null"] {
        let refused = first(origin).await;
        assert_eq!((refused.status, refused.body.as_str()), (403, r#"{"message":"Forbidden"}"#), "{origin}");
        assert!(!refused.head.contains("access-control-allow-origin"), "{}", refused.head);
        let answer = dashboard
            .ask("GET /version", &format!("Origin: {origin}\r\nAuthorization: Bearer {SECRET}\r\n"), "")
            .await;
        assert!(!answer.head.contains("access-control-allow"), "{}", answer.head);
        let path = "/memory?token=a%20secret%20of%20dashboards";
        assert_eq!(dashboard.stream_of(path, Some(origin)).await.err(), Some(403), "{origin}");
        dashboard.stream_of(path, Some(ORIGIN)).await.unwrap();
    }
    // An error is an answer that the page has to be able to read.
    let answer = dashboard.ask("GET /version", &format!("Origin: {ORIGIN}\r\n"), "").await;
    assert_eq!(answer.status, 401);
    assert!(answer.head.contains("access-control-allow-origin: https://dash.example"), "{}", answer.head);
    // A page that is served from the very address.
    let own = format!("Origin: http://{}\r\nAuthorization: Bearer {SECRET}\r\n", dashboard.api);
    assert_eq!(dashboard.ask("GET /version", &own, "").await.status, 200);
}

#[tokio::test]
async fn what_dashboards_ask_at_first_is_answered() {
    let dashboard = Dashboard::of(&Runtime::new(RuntimeOptions::default())).await;
    let version = json!({"version": concat!("exitpilot-agent ", env!("CARGO_PKG_VERSION")), "premium": true, "meta": true});
    let configs = json!({
        "port": 0, "socks-port": 0, "redir-port": 0, "tproxy-port": 0, "mixed-port": 0, "allow-lan": true,
        "bind-address": "*", "mode": "rule", "mode-list": ["rule"], "modes": ["rule"], "log-level": "info", "ipv6": true,
        "tun": {"enable": false}
    });
    let global = json!({"type": "Fallback", "name": "GLOBAL", "udp": true, "alive": true, "history": [], "now": "", "all": []});
    let no_change =
        json!({"message": "the agent's configuration is its file's or its panel's and is not changed here"});
    let table = [
        ("GET /", 200, json!({"hello": "clash"})),
        ("GET /version", 200, version),
        ("GET /configs", 200, configs),
        ("PUT /configs?force=true", 403, no_change.clone()),
        ("PATCH /configs", 403, no_change),
        ("GET /rules", 200, json!({"rules": []})),
        ("GET /providers/proxies", 200, json!({"providers": {}})),
        ("GET /providers/rules", 200, json!({"providers": {}})),
        ("GET /proxies", 200, json!({"proxies": {"GLOBAL": global}})),
        ("GET /group", 200, json!({"proxies": []})),
        ("GET /logs", 200, json!({"type": "info", "payload": "the agent's log is on its standard error"})),
        ("GET /traffic", 200, json!({"up": 0, "down": 0})),
        ("GET /dns/query", 404, json!({"message": "Resource not found"})),
        ("GET /group/weights", 404, json!({"message": "Resource not found"})),
        ("POST /proxies", 405, json!({"message": "Method Not Allowed"})),
        ("GET /proxies/GLOBAL/delay", 503, json!({"message": "An error occurred in the delay test"})),
    ];
    for (line, status, body) in table {
        let (got, text) = dashboard.request(line, "").await;
        assert_eq!((got, serde_json::from_str::<Value>(&text).unwrap()), (status, body), "{line}");
    }
    let memory = dashboard.get("/memory").await["inuse"].as_u64().unwrap();
    assert!(memory > 1024 * 1024, "{memory}");
    assert!(dashboard.get("/connections").await["memory"].as_u64().unwrap() > 1024 * 1024);
}

#[tokio::test]
async fn each_thing_has_one_name_and_all_stand_in_the_configured_order() {
    let (target, page, exits) = (Target::start(Does::Echo).await, Page::start().await, exits::<2>().await);
    let runtime = runtime(&page, &exits, &target).await;
    let dashboard = Dashboard::of(&runtime).await;
    let (_, text) = dashboard.request("GET /proxies", "").await;
    let names = [
        "chain/z/h",
        "chain/m/t",
        "chain/two/in",
        "service/f/chains",
        "service/f/targets",
        // `a` is there twice, `z` is a target only: the chain is its group.
        "chain/z/h/a",
        "b",
        "chain/m/t/a",
        "c",
        "d",
        "two",
        "t1",
        "z",
        "GLOBAL",
    ];
    let mut from = 0;
    for name in names {
        let key = format!("{}:{{\"type\":", json!(name));
        from += text[from..].find(&key).unwrap_or_else(|| panic!("no {name} after {}", &text[..from]));
    }
    let all: Value = serde_json::from_str(&text).unwrap();
    let proxies = all["proxies"].as_object().unwrap();
    assert_eq!(proxies.len(), names.len(), "{proxies:?}");
    assert_eq!(proxies["GLOBAL"]["all"], json!(names[..13]));
    assert_eq!(proxies["GLOBAL"]["now"], "chain/z/h");

    assert_eq!(
        proxies["chain/z/h"],
        json!({"type": "Selector", "name": "chain/z/h", "udp": true, "alive": true, "history": [],
            "now": "chain/z/h/a", "all": ["chain/z/h/a", "b"]})
    );
    assert_eq!(
        proxies["b"],
        json!({"type": "relay+tcp", "name": "b", "udp": true, "alive": true, "history": []})
    );
    let tested = &proxies["chain/m/t"];
    assert_eq!((&tested["type"], &tested["all"]), (&json!("URLTest"), &json!(["chain/m/t/a", "c"])));
    assert_eq!(tested["testUrl"], page.url());
    let delay = tested["history"][0]["delay"].as_u64().unwrap();
    assert!(delay >= 1, "{tested}");
    let time = tested["history"][0]["time"].as_str().unwrap();
    assert!(time.starts_with("20") && time.ends_with('Z') && time.len() == 24, "{time}");
    assert_eq!(proxies["c"]["history"].as_array().unwrap().len(), 1);
    // Groups in groups, and a chain of which a group is only a part.
    assert_eq!(proxies["service/f/chains"]["all"], json!(["chain/z/h", "chain/m/t", "two"]));
    assert_eq!(proxies["service/f/chains"]["now"], "chain/z/h");
    assert_eq!(
        (&proxies["two"]["type"], &proxies["two"]["all"]),
        (&json!("Relay"), &json!(["chain/two/in"]))
    );
    assert_eq!(
        (&proxies["service/f/targets"]["type"], &proxies["service/f/targets"]["now"], &proxies["t1"]["type"]),
        (&json!("Fixed"), &json!("t1"), &json!("Target"))
    );

    let groups = dashboard.get("/group").await["proxies"].as_array().unwrap().clone();
    let listed: Vec<_> = groups.iter().map(|group| group["name"].as_str().unwrap()).collect();
    assert_eq!(listed, names[..5]);
    for (at, path) in [(0, "/group/chain%2Fz%2Fh"), (3, "/group/service%2Ff%2Fchains")] {
        assert_eq!(dashboard.get(path).await, groups[at]);
        assert_eq!(dashboard.get(&path.replace("group", "proxies")).await, groups[at]);
    }
    assert_eq!(dashboard.get("/proxies/chain%2Fz%2Fh%2Fa").await["name"], "chain/z/h/a");
    assert_eq!(dashboard.get("/proxies/GLOBAL").await, proxies["GLOBAL"]);
    for line in [
        "GET /group/b",
        "GET /group/GLOBAL",
        "GET /proxies/a",
        "GET /proxies/chain/z/h",
        "GET /group/b/delay",
    ] {
        let not_found = (404, r#"{"message":"Resource not found"}"#.to_owned());
        assert_eq!(dashboard.request(line, "").await, not_found, "{line}");
    }
}

#[tokio::test]
async fn a_selector_is_chosen_in_and_cleared_and_nothing_else_is() {
    let (target, page, exits) = (Target::start(Does::Echo).await, Page::start().await, exits::<2>().await);
    let runtime = runtime(&page, &exits, &target).await;
    let dashboard = Dashboard::of(&runtime).await;
    let message = |text: &str| json!({"message": text}).to_string();
    let selector = "/proxies/chain%2Fz%2Fh";
    let table = [
        (format!("PUT {selector}"), r#"{"name":"c"}"#, 400, message("Selector update error: not found")),
        (
            format!("PUT {selector}"),
            r#"{"name":"chain/m/t/a"}"#,
            400,
            message("Selector update error: not found"),
        ),
        (format!("PUT {selector}"), r#"{"nam":"b"}"#, 400, message("Body invalid")),
        (format!("PUT {selector}"), "b", 400, message("Body invalid")),
        (format!("PUT {selector}"), "", 400, message("Body invalid")),
        ("PUT /proxies/chain%2Fm%2Ft".into(), r#"{"name":"c"}"#, 400, message("Must be a Selector")),
        ("PUT /proxies/service%2Ff%2Ftargets".into(), r#"{"name":"z"}"#, 400, message("Must be a Selector")),
        ("PUT /proxies/b".into(), r#"{"name":"b"}"#, 400, message("Must be a Selector")),
        ("PUT /proxies/GLOBAL".into(), r#"{"name":"b"}"#, 400, message("Must be a Selector")),
        ("PUT /proxies/x".into(), r#"{"name":"b"}"#, 404, message("Resource not found")),
        ("DELETE /proxies/chain%2Fm%2Ft".into(), "", 400, message("Must be a Selector")),
        ("DELETE /proxies/b".into(), "", 400, message("Must be a Selector")),
        ("DELETE /proxies/x".into(), "", 404, message("Resource not found")),
    ];
    let before = runtime.groups().into_iter().map(|group| (group.now, group.choice)).collect::<Vec<_>>();
    for (line, body, status, expected) in table {
        assert_eq!(dashboard.request(&line, body).await, (status, expected), "{line} {body}");
    }
    let after = runtime.groups().into_iter().map(|group| (group.now, group.choice)).collect::<Vec<_>>();
    assert_eq!(before, after, "what is refused changes nothing");

    let put = async |path: &str, body: &str| dashboard.request(&format!("PUT {path}"), body).await;
    assert_eq!(put(selector, r#"{"name":"b"}"#).await, (204, String::new()));
    assert_eq!(runtime.group("chain/z/h").unwrap().choice.as_deref(), Some("b"));
    assert_eq!(dashboard.get(selector).await["now"], "b");
    echo(runtime.listening("f").unwrap()).await.unwrap();
    // By the name that it is listed under, and by its own.
    for name in ["chain/z/h/a", "a"] {
        put(selector, r#"{"name":"b"}"#).await;
        assert_eq!(put(selector, &json!({"name": name}).to_string()).await.0, 204, "{name}");
        assert_eq!(runtime.group("chain/z/h").unwrap().choice.as_deref(), Some("a"), "{name}");
    }
    echo(runtime.listening("f").unwrap()).await.unwrap();
    assert_eq!(target.peers(), [exits[1].from, exits[0].from]);
    assert_eq!(dashboard.request(&format!("DELETE {selector}"), "").await, (204, String::new()));
    assert_eq!(runtime.group("chain/z/h").unwrap().choice, None);

    // A group in a group.
    let outer = "/proxies/service%2Ff%2Fchains";
    assert_eq!(put(outer, r#"{"name":"chain/m/t"}"#).await.0, 204);
    assert_eq!(now(&runtime, "service/f/chains").as_deref(), Some("m"));
    assert_eq!(put(outer, r#"{"name":"two"}"#).await.0, 204);
    echo(runtime.listening("f").unwrap()).await.unwrap();
    assert_eq!(target.peers().last(), Some(&exits[1].from));
    target.assert_only_exits_came();
}
