//! Links that let nothing through.

use std::time::Duration;

use tests::netlab::{DropReason, Impairment};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::measure::{LIMIT, MS, connect_times, listen, pair, udp_pair};

#[tokio::test]
async fn a_cut_drops_everything_and_a_repair_brings_back_what_was() {
    let Some((lab, a, b)) = pair("cut") else { return };
    lab.link(&a, &b).set_both(Impairment::delay(MS * 10)).unwrap();
    lab.link(&a, &b).cut().unwrap();
    let listener = listen(&b);
    let address = b.addr(listener.local_addr().unwrap().port());
    assert!(timeout(MS * 200, a.connect(address)).await.is_err(), "nothing passes a cut");
    let (sender, _receiver) = udp_pair(&b, &a);
    sender.send(b"x").await.unwrap();
    crate::measure::settled(&lab, &b, &a, 1).await;
    assert_eq!(lab.link(&b, &a).stats().unwrap().dropped(DropReason::Cut), 1, "nor the other way");
    lab.link(&b, &a).repair().unwrap();
    let times = connect_times(&a, &b, 5).await;
    assert!(times.iter().all(|time| *time >= MS * 20), "{times:?}");
    assert_eq!(lab.link(&a, &b).impairment().unwrap(), Impairment::delay(MS * 10));
}

#[tokio::test]
async fn a_connection_survives_a_cut() {
    let Some((lab, a, b)) = pair("survive") else { return };
    let listener = TcpListener::from_std(b.tcp_listener(0).unwrap()).unwrap();
    let address = b.addr(listener.local_addr().unwrap().port());
    let (client, server) = tokio::join!(a.connect(address), listener.accept());
    let (mut client, (mut server, _)) = (client.unwrap(), server.unwrap());
    lab.link(&a, &b).cut().unwrap();
    client.write_all(b"over the cut").await.unwrap();
    let mut buffer = [0; 12];
    assert!(timeout(MS * 200, server.read_exact(&mut buffer)).await.is_err(), "nothing passes");
    lab.link(&a, &b).repair().unwrap();
    // The kernel has been sending it again and again.
    timeout(LIMIT, server.read_exact(&mut buffer)).await.unwrap().unwrap();
    assert_eq!(&buffer, b"over the cut");
}

#[tokio::test]
async fn a_black_hole_lets_the_syn_through_and_no_answer() {
    let Some((lab, a, b)) = pair("hole") else { return };
    lab.link(&b, &a).black_hole().unwrap();
    let listener = listen(&b);
    let address = b.addr(listener.local_addr().unwrap().port());
    assert!(timeout(MS * 300, a.connect(address)).await.is_err(), "no answer");
    let (there, back) = (lab.link(&a, &b).stats().unwrap(), lab.link(&b, &a).stats().unwrap());
    assert!(there.delivered >= 1, "the SYN arrives: {there:?}");
    assert!(back.dropped(DropReason::BlackHole) >= 1, "it is answered: {back:?}");
    assert_eq!(back.delivered, 0);

    // A datagram from the other side of the hole arrives, from this side it does not.
    let (sender, receiver) = udp_pair(&a, &b);
    sender.send(b"there").await.unwrap();
    let mut buffer = [0; 16];
    let length = timeout(LIMIT, receiver.recv(&mut buffer)).await.unwrap().unwrap();
    assert_eq!(&buffer[..length], b"there");
    lab.link(&a, &b).repair().unwrap();
    timeout(LIMIT, a.connect(address)).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_port_nobody_listens_on_refuses_and_an_address_nobody_has_is_silent() {
    let Some((lab, a, b)) = pair("refuse") else { return };
    let port = {
        let listener = b.tcp_listener(0).unwrap();
        listener.local_addr().unwrap().port()
    };
    let refused = timeout(LIMIT, a.connect(b.addr(port))).await.unwrap().unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused, "the kernel's reset comes through");
    let nowhere = std::net::SocketAddr::from(([10, 66, 77, 77], 1));
    assert!(timeout(Duration::from_millis(200), a.connect(nowhere)).await.is_err());
    assert!(lab.stats().unwrap().no_route >= 1);
}
