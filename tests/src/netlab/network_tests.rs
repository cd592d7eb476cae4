//! The network without devices: time and packets are given.

use std::collections::VecDeque;

use tokio::sync::watch;

use super::super::impairment::Impairment;
use super::*;

const MS: Duration = Duration::from_millis(1);

fn network() -> Network {
    let mut network = Network::new(1);
    for (index, name) in ["a", "b", "c"].into_iter().enumerate() {
        network.add_host(name.to_owned(), address(index));
    }
    network
}

fn address(index: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 66, 0, index as u8 + 1)
}

/// Sends a packet of 100 bytes that carries `mark`.
fn send(network: &mut Network, now: Duration, from: usize, to: Ipv4Addr, mark: u8) {
    let mut buffer = network.buffer();
    buffer[0] = 0x45;
    buffer[2..4].copy_from_slice(&100_u16.to_be_bytes());
    buffer[16..20].copy_from_slice(&to.octets());
    buffer[99] = mark;
    network.send(now, from, buffer, 100);
}

/// What is delivered until `now`: (due, to, mark).
fn deliver(network: &mut Network, now: Duration) -> Vec<(Duration, usize, u8)> {
    let mut delivered = Vec::new();
    while let Some((due, packet)) = network.pop_due(now) {
        delivered.push((due, packet.destination(), packet.bytes()[99]));
        network.delivered(packet, now - due, true);
    }
    delivered
}

#[test]
fn packets_go_where_they_are_addressed() {
    let mut network = network();
    send(&mut network, MS, 0, address(1), 1);
    send(&mut network, MS, 1, address(2), 2);
    send(&mut network, MS, 0, Ipv4Addr::new(10, 66, 9, 9), 3);
    network.send(MS, 0, Box::new([0x60; BUFFER_BYTES]), 60);
    assert_eq!(deliver(&mut network, MS), [(MS, 1, 1), (MS, 2, 2)]);
    let stats = network.stats();
    assert_eq!((stats.no_route, stats.not_ipv4), (1, 1));
    assert_eq!(stats.links.len(), 2);
}

#[test]
fn directions_are_apart() {
    let mut network = network();
    network.apply(&Change::set("a", "b", Impairment::delay(10 * MS)));
    send(&mut network, Duration::ZERO, 0, address(1), 1);
    send(&mut network, Duration::ZERO, 1, address(0), 2);
    assert_eq!(network.next_due(), Some(Duration::ZERO));
    assert_eq!(deliver(&mut network, 10 * MS), [(Duration::ZERO, 0, 2), (10 * MS, 1, 1)]);
    network.apply(&Change::set_both("a", "b", Impairment::delay(20 * MS)));
    send(&mut network, 10 * MS, 1, address(0), 3);
    assert_eq!(deliver(&mut network, 29 * MS), []);
    assert_eq!(deliver(&mut network, 30 * MS), [(30 * MS, 0, 3)]);
}

#[test]
fn a_cut_hits_what_is_on_the_way() {
    let mut network = network();
    network.apply(&Change::set_both("a", "b", Impairment::delay(10 * MS)));
    send(&mut network, Duration::ZERO, 0, address(1), 1);
    network.apply(&Change::cut("b", "a"));
    send(&mut network, MS, 1, address(0), 2);
    assert_eq!(deliver(&mut network, 20 * MS), []);
    network.apply(&Change::repair("a", "b"));
    send(&mut network, 20 * MS, 0, address(1), 3);
    assert_eq!(deliver(&mut network, 30 * MS), [(30 * MS, 1, 3)]);
    let stats = network.link_stats("a", "b").unwrap();
    assert_eq!((stats.packets, stats.delivered, stats.in_flight), (2, 1, 0));
    assert_eq!(stats.dropped(DropReason::Cut), 1);
}

#[test]
fn a_black_hole_is_one_way() {
    let mut network = network();
    network.apply(&Change::black_hole("b", "a"));
    send(&mut network, MS, 0, address(1), 1);
    send(&mut network, MS, 1, address(0), 2);
    assert_eq!(deliver(&mut network, MS), [(MS, 1, 1)]);
    assert_eq!(network.link_stats("b", "a").unwrap().dropped(DropReason::BlackHole), 1);
    // What was on the way falls in, too.
    network.apply(&Change::set("a", "c", Impairment::delay(10 * MS)));
    send(&mut network, MS, 0, address(2), 3);
    network.apply(&Change::black_hole("a", "c"));
    assert_eq!(deliver(&mut network, 20 * MS), []);
    assert_eq!(network.link_stats("a", "c").unwrap().dropped(DropReason::BlackHole), 1);
}

#[test]
fn what_is_on_the_way_is_bounded() {
    let mut network = network();
    network.apply(&Change::set("a", "b", Impairment::delay(10 * MS)));
    for _ in 0..IN_FLIGHT_LIMIT + 5 {
        send(&mut network, MS, 0, address(1), 1);
    }
    let stats = network.link_stats("a", "b").unwrap();
    assert_eq!((stats.in_flight, stats.dropped(DropReason::Overflow)), (IN_FLIGHT_LIMIT, 5));
    assert_eq!(deliver(&mut network, 11 * MS).len() as u64, IN_FLIGHT_LIMIT);
    assert!(network.unused.len() <= UNUSED_LIMIT);
}

#[test]
fn script_changes_are_made_at_their_time_and_told() {
    let mut network = network();
    let (applied, progress) = watch::channel(Vec::new());
    let steps = VecDeque::from([
        (5 * MS, Change::cut("a", "b")),
        (5 * MS, Change::repair("a", "b")),
        (9 * MS, Change::path("a", "b", 3 * MS, 0.0)),
    ]);
    network.play(Playing { start: 100 * MS, steps, applied });
    assert_eq!(network.next_due(), Some(105 * MS));
    network.play_due(104 * MS);
    assert!(progress.borrow().is_empty());
    network.play_due(106 * MS);
    let told: Vec<_> = progress.borrow().iter().map(|done| (done.asked, done.at)).collect();
    assert_eq!(told, [(5 * MS, 6 * MS), (5 * MS, 6 * MS)]);
    assert_eq!(network.model("a", "b").unwrap().passage, Passage::Open);
    network.play_due(109 * MS);
    assert_eq!(network.model("a", "b").unwrap().impairment().delay, 3 * MS);
    assert_eq!(network.model("b", "a").unwrap().impairment().delay, Duration::ZERO);
    assert_eq!(network.next_due(), None);
    assert!(progress.has_changed().is_err(), "a finished script lets go of its progress");
}

#[test]
fn the_same_seed_loses_the_same_packets_whatever_the_order_of_hosts() {
    let run = |names: [&str; 2], seed| {
        let mut network = Network::new(99);
        for (index, name) in names.into_iter().enumerate() {
            network.add_host(name.to_owned(), address(index));
        }
        network.apply(&Change::set("x", "y", Impairment::lossy(0.5)));
        let x = usize::from(names[0] != "x");
        // What was sent before does not matter after a seed is set.
        send(&mut network, Duration::ZERO, x, address(1 - x), 0);
        deliver(&mut network, Duration::ZERO);
        network.set_seed(seed);
        for mark in 0..200 {
            send(&mut network, MS, x, address(1 - x), mark);
        }
        deliver(&mut network, MS).into_iter().map(|(_, _, mark)| mark).collect::<Vec<_>>()
    };
    assert_eq!(run(["x", "y"], 5), run(["y", "x"], 5));
    assert_ne!(run(["x", "y"], 5), run(["x", "y"], 6));
}

#[test]
fn unknown_hosts_are_named() {
    let error = network().check(&Change::cut("a", "nobody")).unwrap_err();
    assert_eq!(error.to_string(), "no host \"nobody\" in this lab");
}
