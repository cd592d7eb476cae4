//! Exits that behave as GOST's do by default: the answer is held until the target speaks, and comes glued to what it
//! says.

use crate::rig::*;
use agent::runtime::RuntimeOptions;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A node as peers write it: nothing says that the exit answers at once.
fn lazy(name: &str, addr: SocketAddr) -> Value {
    let mut node = node(name, addr, "tcp");
    node["connector"] = json!({"type": "relay"});
    node
}

/// Dials the target at once, holds its answer until the target's first bytes.
pub(crate) async fn holding_exit() -> SocketAddr {
    let script = |mut client: TcpStream| async move {
        let Ok(features) = read_relay_request(&mut client).await else { return };
        let port = u16::from_be_bytes([features[8], features[9]]);
        let mut target = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let (mut from_client, mut to_client) = client.split();
        let (mut from_target, mut to_target) = target.split();
        let back = async {
            let mut glued = vec![1, 0, 0, 0];
            if from_target.read_buf(&mut glued).await? > 0 {
                to_client.write_all(&glued).await?;
                tokio::io::copy(&mut from_target, &mut to_client).await?;
            }
            to_client.shutdown().await
        };
        let forth = async {
            tokio::io::copy(&mut from_client, &mut to_target).await?;
            to_target.shutdown().await
        };
        let _ = tokio::join!(back, forth);
    };
    scripted(script).await.0
}

#[tokio::test]
async fn a_client_that_speaks_first_is_not_kept_waiting_for_the_answer() {
    let target = Target::start(Does::Echo).await;
    let entry = Entry::start(&[lazy("a", holding_exit().await)], target.addr).await;
    entry.echo().await.unwrap();
    assert!(entry.marked().is_empty());
    assert_eq!(entry.nodes()[0].connections, 1);
}

#[tokio::test]
async fn a_server_that_speaks_first_is_heard_through_a_holding_exit() {
    let target = Target::start(Does::SpeakFirst).await;
    let entry = Entry::start(&[lazy("a", holding_exit().await)], target.addr).await;
    let mut stream = entry.connect().await;
    let mut hello = [0; 5];
    soon(stream.read_exact(&mut hello)).await.unwrap();
    assert_eq!(&hello, b"hello");
}

#[tokio::test]
async fn an_idle_client_of_a_holding_exit_is_not_cut() {
    let target = Target::start(Does::Echo).await;
    let entry = Entry::with(impatient(), &[lazy("a", holding_exit().await)], target.addr, json!({})).await;
    let mut stream = entry.connect().await;
    eventually("the deadline of the answer has passed", || entry.nodes()[0].connections == 1).await;
    stream.write_all(b"ping").await.unwrap();
    let mut back = [0; 4];
    soon(stream.read_exact(&mut back)).await.unwrap();
    assert_eq!(&back, b"ping");
}

#[tokio::test]
async fn a_client_that_only_ends_its_direction_gets_its_answer() {
    let target = Target::start(Does::CountThenAnswer).await;
    let entry = Entry::start(&[lazy("a", holding_exit().await)], target.addr).await;
    let mut stream = entry.connect().await;
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    soon(stream.read_to_string(&mut answer)).await.unwrap();
    assert_eq!(answer, "0");
}

#[tokio::test]
async fn an_early_error_still_leads_to_the_next_exit() {
    let target = Target::start(Does::Echo).await;
    let (broken, _) = answering(7).await;
    let exit = Exit::start(2, "tcp").await;
    let entry = Entry::start(&[lazy("broken", broken), lazy("fine", exit.addr)], target.addr).await;
    entry.echo().await.unwrap();
    assert_eq!(entry.marked(), ["broken"]);
}

#[tokio::test]
async fn a_late_error_marks_the_exit_for_those_who_follow() {
    let target = Target::start(Does::Echo).await;
    // Answers with an error only once payload has arrived: too late for this client.
    let script = |mut stream: TcpStream| async move {
        if read_relay_request(&mut stream).await.is_ok() && stream.read_u8().await.is_ok() {
            let _ = stream.write_all(&[1, 7, 0, 0]).await;
            let _ = stream.shutdown().await;
            let _ = stream.read(&mut [0; 64]).await;
        }
    };
    let (late, asked) = scripted(script).await;
    let exit = Exit::start(2, "tcp").await;
    let entry = Entry::start(&[lazy("late", late), lazy("fine", exit.addr)], target.addr).await;
    assert!(entry.echo().await.is_err(), "payload is never sent twice");
    assert_eq!(entry.marked(), ["late"]);
    entry.echo().await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert_eq!(target.peers(), [exit.from]);
}

#[tokio::test]
async fn an_answer_with_features_in_pieces_is_read_to_its_end_and_no_further() {
    let target = Target::start(Does::Echo).await;
    let script = |mut stream: TcpStream| async move {
        if read_relay_request(&mut stream).await.is_err() {
            return;
        }
        let _ = stream.set_nodelay(true);
        for piece in [&b"\x01\x00"[..], b"\x00\x0a\x02\x00\x07\x01", b"\x7f\x00\x00\x01\x1f\x90pa", b"yload"]
        {
            let _ = stream.write_all(piece).await;
            tokio::task::yield_now().await;
        }
        let _ = stream.shutdown().await;
        let _ = stream.read(&mut [0; 64]).await;
    };
    let (exit, _) = scripted(script).await;
    for node in [lazy("a", exit), node("a", exit, "tcp")] {
        let entry = Entry::with(RuntimeOptions::default(), &[node], target.addr, json!({})).await;
        let mut stream = entry.connect().await;
        let mut payload = [0; 7];
        soon(stream.read_exact(&mut payload)).await.unwrap();
        assert_eq!(&payload, b"payload");
    }
}

#[tokio::test]
async fn what_is_no_relay_peer_is_marked() {
    let target = Target::start(Does::Echo).await;
    let script = |mut stream: TcpStream| async move {
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").await;
        let _ = stream.read(&mut [0; 64]).await;
        let _ = stream.read(&mut [0; 64]).await;
    };
    let (ssh, _) = scripted(script).await;
    let exit = Exit::start(2, "tcp").await;
    let entry = Entry::start(&[node("ssh", ssh, "tcp"), exit.node("fine", "tcp")], target.addr).await;
    entry.echo().await.unwrap();
    assert_eq!(entry.marked(), ["ssh"]);
}
