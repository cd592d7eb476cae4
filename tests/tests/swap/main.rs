//! 100,000 connections while the chain they go through is replaced 2,000 times.
//!
//! A real agent is the entry, two more are the exits, and the panel is this test. Each exit relays to a target of its
//! own, which says its name first; the address that the entry's forward asks for is a third listener. So every
//! connection tells how it left: through an exit, or directly, which must never happen.
//!
//! ```text
//!   clients ─► entry ─┬─► exit A ─► target A
//!                     ├─► exit B ─► target B
//!                     └─ never ───► direct
//! ```

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod panel;
mod scene;
mod target;
mod traffic;

use scene::Scene;
use std::time::Duration;
use target::ExitName;
use tests::clock;
use traffic::{LongLived, Traffic};

/// What is asked of one run.
struct Load {
    /// Transport between entry and exits.
    transport: &'static str,
    /// Short connections from the clients; each swap adds one of its own.
    connections: usize,
    /// Accepted updates of the chain.
    swaps: usize,
}

/// Connections at the same time. Enough that every swap meets connections in every stage of their setup.
const CLIENTS: usize = 96;
/// Connections that are there before most swaps and after all of them.
const LONG_LIVED: usize = 16;
/// The slowest part of a run is a debug build that shares its cores.
const TIME: Duration = Duration::from_secs(900);

/// Both runs want all the machine.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_swaps_cost_none_of_a_hundred_thousand_connections() {
    let _turn = TURN.lock().await;
    let load = Load { transport: "tcp", connections: 100_000, swaps: 2_000 };
    tokio::time::timeout(TIME, swap_under(load)).await.expect("still running");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_do_they_between_tls_sessions() {
    let _turn = TURN.lock().await;
    let load = Load { transport: "tls", connections: 4_000, swaps: 400 };
    tokio::time::timeout(TIME, swap_under(load)).await.expect("still running");
}

async fn swap_under(load: Load) {
    let mut scene = Scene::set(load.transport).await;
    let start = clock::now();

    // Half of the long-lived connections through each exit.
    let mut long_lived = Vec::new();
    for first in [ExitName::A, ExitName::B] {
        scene.apply(first).await;
        for _ in 0..LONG_LIVED / 2 {
            long_lived.push(LongLived::open(scene.entry(), first).await);
        }
    }

    let traffic = Traffic::start(scene.entry(), CLIENTS, load.connections);
    for swap in 0..load.swaps {
        // Spread over all connections: each swap waits for its share of them and for the answer to the one before.
        traffic.finished(if swap == 0 { 0 } else { load.connections / load.swaps }).await;
        let first = if swap % 2 == 0 { ExitName::A } else { ExitName::B };
        scene.apply(first).await;
        // What was acknowledged is in force: a connection opened now goes where the new order says.
        assert_eq!(traffic::once(scene.entry(), 0).await, Ok(first), "after swap {swap}");
    }
    let counts = traffic.end().await;
    let mut rounds = 0;
    for connection in long_lived {
        rounds += connection.end().await;
    }

    let seconds = start.elapsed().as_secs_f64();
    let direct = scene.direct();
    println!(
        "{}: {} connections in {seconds:.1} s ({:.0}/s), {} failed, {} cut, {direct} direct, {} through exit A, {} \
         through exit B; {} swaps accepted, {} of them followed by a connection the new way; {LONG_LIVED} long-lived \
         connections, {rounds} echoes on them",
        load.transport,
        counts.total(),
        counts.total() as f64 / seconds,
        counts.failed,
        counts.cut,
        counts.through_a,
        counts.through_b,
        load.swaps,
        load.swaps,
    );
    assert_eq!((counts.failed, counts.cut, direct), (0, 0, 0), "{:#?}", counts.reasons);
    assert_eq!(counts.total(), load.connections);
    // Half of the time each; a tenth is far from chance and from a swap that does nothing.
    let least = load.connections / 10;
    assert!(counts.through_a > least && counts.through_b > least, "{counts:?}");

    // The agent's own account: every connection of this test went through one of the exits at the first attempt.
    let all = load.connections + load.swaps + LONG_LIVED;
    scene.agrees(all as u64).await;
}
