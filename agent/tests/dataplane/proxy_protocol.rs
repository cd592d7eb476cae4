//! PROXY headers on real connections: taken from clients, given to targets, through chains too.

use crate::rig::{Entry, Exit, LONG, fifo, impatient, merged_forward, service, soon};
use crate::udp_rig::{UdpEntry, UdpTarget};
use agent::runtime::{Change, Runtime, RuntimeOptions};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A target that keeps what each connection sent before its end, and answers with the number of bytes.
async fn recording() -> (SocketAddr, Arc<Mutex<Vec<Vec<u8>>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, seen) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<Vec<u8>>>>::default());
    let records = seen.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let records = records.clone();
            tokio::spawn(async move {
                let mut all = Vec::new();
                if stream.read_to_end(&mut all).await.is_ok() {
                    let count = all.len().to_string();
                    records.lock().unwrap().push(all);
                    let _ = stream.write_all(count.as_bytes()).await;
                }
            });
        }
    });
    (address, seen)
}

/// Sends all and reads to the end.
async fn exchange(entry: SocketAddr, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    soon(async {
        let mut stream = TcpStream::connect(entry).await?;
        stream.write_all(bytes).await?;
        stream.shutdown().await?;
        let mut back = Vec::new();
        stream.read_to_end(&mut back).await?;
        Ok(back)
    })
    .await
}

/// A forward without a chain.
async fn plain(options: RuntimeOptions, target: SocketAddr, more: Value) -> (Runtime, SocketAddr) {
    let runtime = Runtime::new(options);
    let config = merged_forward(target, more);
    runtime.apply(Change::AddServices(vec![service(config)])).await.unwrap();
    let entry = runtime.listening("f").unwrap();
    (runtime, entry)
}

/// Without a chain.
fn direct(more: Value) -> Value {
    let mut all = more;
    all["handler"]["chain"] = json!("");
    all
}

#[tokio::test]
async fn a_target_is_told_who_the_client_is() {
    let (target, seen) = recording().await;
    for (version, start) in
        [(json!(1), &b"PROXY TCP4 127.0.0.1 127.0.0.1 "[..]), (json!("2"), b"\r\n\r\n\0\r\nQUIT\n")]
    {
        let more = direct(json!({"handler": {"metadata": {"proxyProtocol": version}}}));
        let (_runtime, entry) = plain(RuntimeOptions::default(), target, more).await;
        exchange(entry, b"payload").await.unwrap();
        let got = seen.lock().unwrap().pop().unwrap();
        assert!(got.starts_with(start), "{got:?}");
        assert!(got.ends_with(b"payload"), "{got:?}");
        let header = agent::proxy_protocol::read(&mut &got[..]).await.unwrap().unwrap();
        assert_eq!(header.destination, entry);
    }
}

#[tokio::test]
async fn the_header_of_a_proxy_in_front_is_passed_on_through_a_chain() {
    let (target, seen) = recording().await;
    let exit = Exit::start(1, "tls").await;
    let more = json!({"metadata": {"proxyProtocol": 1}, "handler": {"metadata": {"proxyProtocol": 2}}});
    let entry = Entry::with(RuntimeOptions::default(), &[exit.node("a", "tls")], target, more).await;
    let header = b"PROXY TCP6 2001:db8::7 2001:db8::8 4000 443\r\n";
    exchange(entry.addr, &[&header[..], b"payload"].concat()).await.unwrap();
    let got = seen.lock().unwrap().pop().unwrap();
    let mut rest = &got[..];
    let ends = agent::proxy_protocol::read(&mut rest).await.unwrap().unwrap();
    assert_eq!(ends.source, "[2001:db8::7]:4000".parse().unwrap());
    assert_eq!(ends.destination, "[2001:db8::8]:443".parse().unwrap());
    assert_eq!(rest, b"payload");
}

#[tokio::test]
async fn without_a_good_header_nobody_comes_in() {
    let (target, seen) = recording().await;
    let more = direct(json!({"metadata": {"proxyProtocol": 2}}));
    let (_runtime, entry) = plain(impatient(), target, more).await;
    let good = b"PROXY TCP4 192.0.2.1 192.0.2.2 4000 443\r\npayload";
    assert_eq!(exchange(entry, good).await.unwrap(), b"7", "the header is not the target's");
    let mut two = agent::proxy_protocol::header(
        agent::proxy_protocol::Version::Two,
        agent::proxy_protocol::Ends { source: entry, destination: entry },
    )
    .unwrap();
    two.extend(b"xy");
    assert_eq!(exchange(entry, &two).await.unwrap(), b"2", "either version is understood");
    for wrong in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"PROXY TCP4 1 2 3 4\r\n", b"PROXY TCP4 192.0.2.1", b"x"] {
        assert!(exchange(entry, wrong).await.map_or(true, |back| back.is_empty()), "{wrong:?}");
    }
    // One that says nothing is cut off by the deadline of half a second.
    let mut mute = soon(TcpStream::connect(entry)).await.unwrap();
    let end = tokio::time::timeout(LONG, mute.read(&mut [0; 1])).await.expect("never cut off");
    assert!(!matches!(end, Ok(1)));
    assert_eq!(seen.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn limits_and_the_hash_go_by_the_address_in_the_header() {
    let (target, seen) = recording().await;
    let runtime = Runtime::new(RuntimeOptions::default());
    let rare = serde_json::from_value(json!({"name": "r", "limits": ["$$ 0.001"]})).unwrap();
    runtime.apply(Change::AddLimiter(agent::limit::LimitKind::Rate, rare)).await.unwrap();
    let exits = [Exit::start(1, "tcp").await, Exit::start(2, "tcp").await];
    let mut chain = fifo(&[exits[0].node("a", "tcp"), exits[1].node("b", "tcp")]);
    chain.hops[0].selector.as_mut().unwrap().strategy = "hash".into();
    runtime.apply(Change::AddChain(chain)).await.unwrap();
    let more = json!({"metadata": {"proxyProtocol": 1}, "rlimiter": "r"});
    runtime.apply(Change::AddServices(vec![service(merged_forward(target, more))])).await.unwrap();
    let entry = runtime.listening("f").unwrap();
    let from = |ip: &str| format!("PROXY TCP4 {ip} 192.0.2.99 4000 443\r\nx").into_bytes();
    for n in 1..=20 {
        exchange(entry, &from(&format!("192.0.2.{n}"))).await.unwrap();
    }
    assert_eq!(seen.lock().unwrap().len(), 20);
    assert!(exchange(entry, &from("192.0.2.1")).await.is_err(), "the second of this address");
    let used: Vec<u64> = runtime.report().chains[0].nodes.iter().map(|node| node.connections).collect();
    assert_eq!(used.iter().sum::<u64>(), 20);
    assert!(
        used.iter().all(|n| *n > 0),
        "one address of the proxy would always take the same exit: {used:?}"
    );
}

#[tokio::test]
async fn a_target_of_datagrams_is_told_who_the_client_is_before_its_first() {
    let exit = Exit::start(1, "tcp").await;
    let told = json!({"handler": {"metadata": {"proxyProtocol": 2}}});
    for chained in [false, true] {
        let target = UdpTarget::start().await;
        let runtime = Runtime::new(RuntimeOptions::default());
        let mut more = told.clone();
        if chained {
            runtime.apply(Change::AddChain(fifo(&[exit.node("a", "tcp")]))).await.unwrap();
            more["handler"]["chain"] = json!("c");
        }
        let entry = UdpEntry::in_runtime(runtime, &[target.addr], more).await;
        let client = entry.client().await;
        client.send(b"one").await;
        // The target sends everything back, the header first.
        let header = client.receive().await;
        assert_eq!(client.receive().await, b"one");
        client.echo(b"two").await;
        assert_eq!(target.seen(), [header.clone(), b"one".to_vec(), b"two".to_vec()], "once per session");
        // Version 2, PROXY, IPv4, datagrams, twelve bytes of addresses.
        assert_eq!(header[..16], *b"\r\n\r\n\0\r\nQUIT\n\x21\x12\0\x0c");
        let (source, destination) = (client.0.local_addr().unwrap(), entry.addr);
        let ports = [source.port().to_be_bytes(), destination.port().to_be_bytes()].concat();
        assert_eq!(header[16..], [&[127, 0, 0, 1, 127, 0, 0, 1][..], &ports].concat());
        if chained {
            target.assert_only_exits_sent();
        }
    }
}

/// Panels set both for all services of a forward, and version 1 has no words for datagrams.
#[tokio::test]
async fn datagrams_come_without_headers_and_leave_without_those_of_version_1() {
    let target = UdpTarget::start().await;
    let more = json!({"metadata": {"proxyProtocol": 1}, "handler": {"metadata": {"proxyProtocol": 1}}});
    let entry = UdpEntry::direct(&[target.addr], more).await;
    entry.client().await.echo(b"one").await;
    assert_eq!(target.seen(), [b"one"]);
}
