//! Hosts: what runs on them, how they are reached, what is left of them.

use std::io::{BufRead as _, Read, Write};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tests::netlab::LabError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::measure::{LIMIT, MS, lab, pair};

fn namespace_exists(name: &str) -> bool {
    Path::new("/var/run/netns").join(name).exists()
}

#[tokio::test]
async fn programs_run_on_their_host_and_know_the_others_by_name() {
    let Some((_lab, a, b)) = pair("programs") else { return };
    let output = a.command("ip").args(["-4", "-o", "addr", "show"]).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("inet 10.66.0.1/32") && shown.contains("lo"), "{shown}");
    assert_eq!((a.ip(), b.ip()), (Ipv4Addr::new(10, 66, 0, 1), Ipv4Addr::new(10, 66, 0, 2)));
    if Path::new("/etc/netns").join(a.namespace()).exists() {
        let lookup = |name: &str| a.command("getent").args(["ahostsv4", name]).output().unwrap();
        let found = String::from_utf8(lookup("b.lab").stdout).unwrap();
        assert!(found.starts_with("10.66.0.2"), "{found}");
        assert!(!lookup("nobody.lab").status.success());
    }
}

#[tokio::test]
async fn a_program_of_one_host_reaches_a_socket_of_another() {
    let Some((_lab, a, b)) = pair("reach") else { return };
    let listener = TcpListener::from_std(b.tcp_listener(0).unwrap()).unwrap();
    let port = listener.local_addr().unwrap().port();
    let script =
        format!("exec 3<>/dev/tcp/{}/{port}; echo hello >&3; read answer <&3; echo \"$answer\"", b.ip());
    let child = a.command("bash").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    let (mut stream, peer) = timeout(LIMIT, listener.accept()).await.unwrap().unwrap();
    assert_eq!(peer.ip(), std::net::IpAddr::V4(a.ip()));
    let mut buffer = [0; 6];
    timeout(LIMIT, stream.read_exact(&mut buffer)).await.unwrap().unwrap();
    assert_eq!(&buffer, b"hello\n");
    stream.write_all(b"and back\n").await.unwrap();
    drop(stream);
    let output = tokio::task::spawn_blocking(move || child.wait_with_output()).await.unwrap().unwrap();
    assert_eq!(output.stdout, b"and back\n");
}

#[tokio::test]
async fn closures_and_the_runtimes_they_start_are_on_the_host() {
    let Some((_lab, a, b)) = pair("closures") else { return };
    let address = b
        .run(|| {
            let listener = std::net::TcpListener::bind((b.ip(), 0)).unwrap();
            let address = listener.local_addr().unwrap();
            std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"hi").unwrap());
            address
        })
        .unwrap();
    let text = a
        .run(|| {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            runtime.block_on(async {
                let connect = tokio::spawn(TcpStream::connect(address));
                let mut text = String::new();
                connect.await.unwrap().unwrap().read_to_string(&mut text).await.unwrap();
                text
            })
        })
        .unwrap();
    assert_eq!(text, "hi");
    let mut stream = std::net::TcpStream::connect_timeout(&address, MS * 100);
    assert!(stream.as_mut().map(|stream| stream.read(&mut [0])).is_err(), "not reachable from outside");
}

#[tokio::test]
async fn thousands_of_connections_a_second() {
    let Some((lab, a, b)) = pair("many") else { return };
    let listener = TcpListener::from_std(b.tcp_listener(0).unwrap()).unwrap();
    let address = b.addr(listener.local_addr().unwrap().port());
    let accept = async {
        for _ in 0..2000 {
            listener.accept().await.unwrap();
        }
    };
    let connect = async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..2000 {
            let a = a.clone();
            tasks.spawn(async move { a.connect(address).await.map(drop) });
        }
        tasks.join_all().await
    };
    let start = tests::clock::now();
    let (results, ()) = timeout(LIMIT, async { tokio::join!(connect, accept) }).await.unwrap();
    println!("2,000 connections in {:?}, {:?}", start.elapsed(), lab.link(&a, &b).stats().unwrap());
    assert!(results.iter().all(Result::is_ok));
}

#[tokio::test]
async fn a_published_port_is_reached_from_outside_and_half_closed() {
    let Some((lab, _, b)) = pair("publish") else { return };
    let listener = TcpListener::from_std(b.tcp_listener(0).unwrap()).unwrap();
    let published = lab.publish(&b, listener.local_addr().unwrap().port()).unwrap();
    assert!(published.ip().is_loopback());
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut question = Vec::new();
        // Ends only when the half-close comes through.
        stream.read_to_end(&mut question).await.unwrap();
        question.reverse();
        stream.write_all(&question).await.unwrap();
    };
    let ask = async {
        let mut stream = TcpStream::connect(published).await.unwrap();
        stream.write_all(b"stressed").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let ((), answer) = timeout(LIMIT, async { tokio::join!(serve, ask) }).await.unwrap();
    assert_eq!(answer, "desserts");
    timeout(LIMIT, lab.close()).await.unwrap();
    let after = TcpStream::connect(published).await.unwrap_err();
    assert_eq!(after.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn nothing_is_left_of_a_lab_and_its_hosts_say_so() {
    let Some((lab, a, b)) = pair("left") else { return };
    assert!(namespace_exists(a.namespace()) && namespace_exists(b.namespace()));
    drop(lab);
    for host in [&a, &b] {
        assert!(!namespace_exists(host.namespace()));
        assert!(!Path::new("/etc/netns").join(host.namespace()).exists());
        assert_eq!(host.udp_socket(0).unwrap_err().kind(), std::io::ErrorKind::NotConnected);
        assert!(host.run(|| ()).is_err());
    }
}

/// In the process that is killed: a lab with a program that outlives it.
const VICTIM: &str = "NETLAB_TEST_VICTIM";

#[test]
fn what_a_killed_process_left_is_removed() {
    if std::env::var_os(VICTIM).is_some() {
        let (_lab, a, _) = pair("victim").unwrap();
        let mut program = a.command("sleep").arg("600").spawn().unwrap();
        println!("VICTIM {} {}", a.namespace(), program.id());
        program.wait().unwrap();
        panic!("not killed");
    }
    let Some(lab) = lab("sweep") else { return };
    let mut victim = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "hosts::what_a_killed_process_left_is_removed"])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufReader::new(victim.stdout.take().unwrap()).lines();
    let told =
        lines.map_while(Result::ok).find_map(|line| line.strip_prefix("VICTIM ").map(str::to_owned)).unwrap();
    let (namespace, program) = told.split_once(' ').unwrap();
    let own = lab.host("a").unwrap();

    tests::netlab::sweep();
    assert!(namespace_exists(namespace), "its process is alive");
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert!(namespace_exists(namespace), "nobody has removed it");
    tests::netlab::sweep();
    assert!(!namespace_exists(namespace));
    assert!(!Path::new("/etc/netns").join(namespace).exists());
    assert!(namespace_exists(own.namespace()), "the living keep theirs");

    // Ended, and at most waiting for whoever inherited it to take note.
    let status = format!("/proc/{program}/stat");
    let start = tests::clock::now();
    while std::fs::read_to_string(&status).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(start.elapsed() < LIMIT, "{program} still runs");
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn labs_do_not_see_each_other() {
    let Some((_first, a, _)) = pair("same") else { return };
    let Some((_second, _, b)) = pair("same") else { return };
    let listener = b.tcp_listener(0).unwrap();
    let port = listener.local_addr().unwrap().port();
    // The same address in the first lab is another host, where nobody listens.
    let refused = timeout(LIMIT, a.connect(b.addr(port))).await.unwrap().unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn hosts_are_made_once_and_wrong_names_are_refused() {
    let Some(lab) = lab("names") else { return };
    assert_eq!(lab.host("a").unwrap().namespace(), lab.host("a").unwrap().namespace());
    for name in ["", "A", "a_b", "a/b", "ä", &"x".repeat(33)] {
        assert!(matches!(lab.host(name), Err(LabError::Name { .. })), "{name}");
    }
    let error = lab.link("a", "zz").cut().unwrap_err();
    assert_eq!(error.to_string(), "no host \"zz\" in this lab");
    let b = lab.host("b").unwrap();
    assert!(matches!(lab.publish(&b, 1), Err(LabError::NoRuntime)));
    assert!(b.tcp_connect(b.addr(1), Duration::from_secs(5)).is_err());
}
