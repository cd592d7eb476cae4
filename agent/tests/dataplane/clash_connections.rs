//! Connections as dashboards see and close them.

use crate::clash_rig::*;
use crate::policies::exits;
use crate::rig::*;
use crate::udp_rig::{UdpEntry, UdpTarget};
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const TOKEN: &str = "token=a%20secret%20of%20dashboards";

/// The selector `h` over two exits and a forward through it.
async fn entry(exits: &[Exit; 2], target: SocketAddr) -> Entry {
    let runtime = Runtime::new(RuntimeOptions::default());
    let nodes = [exits[0].node("a", "tcp"), exits[1].node("b", "tcp")];
    let hop = json!({"name": "h", "selector": {"strategy": "selector"}, "nodes": nodes});
    runtime.apply(Change::AddChain(chain(json!({"name": "c", "hops": [hop]})))).await.unwrap();
    Entry::in_runtime(runtime, target, json!({})).await
}

async fn opened(addr: SocketAddr) -> TcpStream {
    let mut stream = soon(TcpStream::connect(addr)).await.unwrap();
    ping(&mut stream).await.unwrap();
    stream
}

async fn ping(stream: &mut TcpStream) -> std::io::Result<()> {
    soon(async {
        stream.write_all(b"ping").await?;
        stream.read_exact(&mut [0; 4]).await.map(|_| ())
    })
    .await
}

async fn ends(stream: &mut TcpStream) {
    let read = soon(stream.read(&mut [0; 4])).await;
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
}

/// What is listed, once there are so many.
async fn listed(dashboard: &Dashboard, count: usize) -> Vec<Value> {
    soon(async {
        loop {
            let list = dashboard.get("/connections").await["connections"].as_array().unwrap().clone();
            if list.len() == count {
                return list;
            }
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    })
    .await
}

#[tokio::test]
async fn connections_are_listed_with_their_way_and_closed_one_by_one() {
    let (target, exits) = (Target::start(Does::Echo).await, exits::<2>().await);
    let entry = entry(&exits, target.addr).await;
    let dashboard = Dashboard::of(&entry.runtime).await;
    let empty = dashboard.get("/connections").await;
    assert_eq!(
        (&empty["connections"], &empty["uploadTotal"], &empty["downloadTotal"]),
        (&json!([]), &json!(0), &json!(0))
    );
    let mut through_a = opened(entry.addr).await;
    entry.runtime.choose("chain/c/h", Some("b".into())).await.unwrap();
    let mut through_b = opened(entry.addr).await;
    ping(&mut through_b).await.unwrap();

    let list = listed(&dashboard, 2).await;
    let (first, second) = (&list[0], &list[1]);
    let client = through_a.local_addr().unwrap();
    let mut expected = json!({
        "id": first["id"], "start": first["start"], "upload": 4, "download": 4, "chains": ["a", "chain/c/h"],
        "rule": "", "rulePayload": "",
        "metadata": {
            "network": "tcp", "type": "f", "sourceIP": "127.0.0.1", "sourcePort": client.port().to_string(),
            "destinationIP": "127.0.0.1", "destinationPort": target.addr.port().to_string(), "host": "",
            "dnsMode": "normal", "processPath": ""
        }
    });
    assert_eq!(*first, expected);
    expected["id"] = second["id"].clone();
    expected["start"] = second["start"].clone();
    expected["metadata"]["sourcePort"] = json!(through_b.local_addr().unwrap().port().to_string());
    merge(&mut expected, json!({"upload": 8, "download": 8, "chains": ["b", "chain/c/h"]}));
    assert_eq!(*second, expected);

    let close = async |id: &str| dashboard.request(&format!("DELETE /connections/{id}"), "").await;
    let not_found = (404, r#"{"message":"Resource not found"}"#.to_owned());
    for id in ["999", "x", "-1"] {
        assert_eq!(close(id).await, not_found, "{id}");
    }
    let id = first["id"].as_str().unwrap();
    assert_eq!(close(id).await, (204, String::new()));
    ends(&mut through_a).await;
    ping(&mut through_b).await.unwrap();
    assert_eq!(listed(&dashboard, 1).await[0]["id"], second["id"]);
    assert_eq!(close(id).await, not_found, "it is gone");
    // What has ended counts on.
    let all = dashboard.get("/connections").await;
    assert_eq!((&all["uploadTotal"], &all["downloadTotal"]), (&json!(16), &json!(16)));
    assert_eq!(entry.runtime.traffic("f").unwrap().up(), 16, "and counts for the service as before");

    let mut another = opened(entry.addr).await;
    assert_eq!(dashboard.request("DELETE /connections", "").await, (204, String::new()));
    ends(&mut through_b).await;
    ends(&mut another).await;
    listed(&dashboard, 0).await;
    entry.echo().await.unwrap();
}

#[tokio::test]
async fn bytes_are_seen_while_they_flow() {
    let exits = exits::<2>().await;
    let target = Target::start(Does::CountThenAnswer).await;
    let entry = entry(&exits, target.addr).await;
    let dashboard = Dashboard::of(&entry.runtime).await;
    let mut connections = dashboard.stream(&format!("/connections?interval=100&{TOKEN}")).await.unwrap();
    let mut traffic = dashboard.stream(&format!("/traffic?{TOKEN}")).await.unwrap();
    assert_eq!(next(&mut traffic).await, json!({"up": 0, "down": 0}));
    let mut memory = dashboard.stream(&format!("/memory?{TOKEN}")).await.unwrap();
    assert!(next(&mut memory).await["inuse"].as_u64().unwrap() > 1024 * 1024);
    let mut logs = dashboard.stream(&format!("/logs?level=info&{TOKEN}")).await.unwrap();
    assert_eq!(next(&mut logs).await["type"], "info");
    assert_eq!(dashboard.stream(&format!("/connections?interval=x&{TOKEN}")).await.err(), Some(400));

    // Large enough for the kernel to carry it by itself.
    let payload = vec![7; 4 * 1024 * 1024];
    let mut stream = entry.connect().await;
    soon(stream.write_all(&payload)).await.unwrap();
    let open = soon(async {
        loop {
            let list = next(&mut connections).await;
            if list["connections"][0]["upload"] == json!(payload.len()) {
                return list;
            }
        }
    })
    .await;
    assert_eq!(
        (&open["uploadTotal"], &open["connections"][0]["download"]),
        (&json!(payload.len()), &json!(0))
    );
    soon(async {
        let mut up = 0;
        while up < payload.len() as u64 {
            up += next(&mut traffic).await["up"].as_u64().unwrap();
        }
        assert_eq!(up, payload.len() as u64);
    })
    .await;
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    soon(stream.read_to_string(&mut answer)).await.unwrap();
    assert_eq!(answer, payload.len().to_string());

    // The end of the agent ends the streams.
    dashboard.stop.cancel();
    soon(dashboard.served).await.unwrap();
    soon(async {
        use futures_util::StreamExt as _;
        while let Some(Ok(_)) = connections.next().await {}
    })
    .await;
}

#[tokio::test]
async fn sessions_of_datagrams_are_connections_too() {
    let (target, exits) = (UdpTarget::start().await, exits::<2>().await);
    let runtime = Runtime::new(RuntimeOptions::default());
    let nodes = [exits[0].node("a", "tcp"), exits[1].node("b", "tcp")];
    let hop = json!({"name": "h", "selector": {"strategy": "selector"}, "nodes": nodes});
    runtime.apply(Change::AddChain(chain(json!({"name": "c", "hops": [hop]})))).await.unwrap();
    let dashboard = Dashboard::of(&runtime).await;
    let entry = UdpEntry::in_runtime(runtime, &[target.addr], json!({"handler": {"chain": "c"}})).await;
    let client = entry.client().await;
    client.echo(b"one").await;
    client.echo(b"seven").await;
    let seen = listed(&dashboard, 1).await.remove(0);
    assert_eq!((&seen["upload"], &seen["download"]), (&json!(8), &json!(8)));
    assert_eq!((&seen["metadata"]["network"], &seen["metadata"]["type"]), (&json!("udp"), &json!("u")));
    assert_eq!(seen["metadata"]["sourcePort"], client.0.local_addr().unwrap().port().to_string());
    assert_eq!(seen["chains"], json!(["a", "chain/c/h"]));
    let id = seen["id"].as_str().unwrap();
    assert_eq!(dashboard.request(&format!("DELETE /connections/{id}"), "").await.0, 204);
    listed(&dashboard, 0).await;
    client.echo(b"again").await;
    assert_ne!(listed(&dashboard, 1).await[0]["id"], seen["id"], "another session");
}

#[tokio::test]
async fn without_a_dashboard_nothing_is_kept() {
    let (target, exits) = (Target::start(Does::Echo).await, exits::<2>().await);
    let entry = entry(&exits, target.addr).await;
    let _open = opened(entry.addr).await;
    assert!(entry.runtime.watch().all().0.is_empty());
}
