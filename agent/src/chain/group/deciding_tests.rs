use super::*;
use crate::chain::group::steering::SteeredMember;
use crate::chain::probe::tasks::Place;
use crate::clock::{Clock, Random};
use crate::options::RuntimeOptions;
use shared::policy::{Leaf, parse};
use tokio::time::advance;

/// A group of chains that do not exist: every test of one fails at once and needs no socket.
struct Dead {
    steering: Arc<Steering>,
    plane: Arc<Plane>,
    stop: CancellationToken,
}

impl Dead {
    fn start(policy: &str, members: usize) -> Self {
        let options =
            RuntimeOptions { clock: Clock::system(), random: Random::seeded(1), ..RuntimeOptions::default() };
        let plane = Arc::new(Plane::new(options));
        let member = |i| SteeredMember { leaf: Leaf::new(format!("m{i}")), state: Arc::default() };
        let members: Vec<_> = (0..members).map(member).collect();
        let places = members.iter().map(|member| Place::Chain(member.leaf.name.clone())).collect();
        let steering = Steering::build("s", "g".into(), parse(policy).unwrap(), members, None).unwrap();
        steering.set_places(places);
        let begun = steering.begin(&plane.options.choices);
        let stop = plane.stop.child_token();
        let shared = (plane.clone(), Arc::new(Semaphore::new(32)));
        plane.tracker.spawn(decide(steering.clone(), begun, shared, stop.clone()));
        Self { steering, plane, stop }
    }

    /// How often the member was tested, each time in vain.
    async fn tests(&self, member: usize) -> u32 {
        // What is due at this moment is done before.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        self.steering.report(0).members[member].failures
    }

    /// The milliseconds until `until` at which the member was tested.
    async fn tested_at(&self, member: usize, until: u64) -> Vec<u64> {
        let (mut at, mut seen) = (Vec::new(), 0);
        loop {
            let tests = self.tests(member).await;
            let now = self.plane.options.clock.now_ms();
            at.extend((seen..tests).map(|_| now));
            seen = tests;
            if now >= until {
                return at;
            }
            // Every millisecond around whole seconds; what happens at other times is seen before the next one.
            let step = match now % 1000 {
                998 | 999 | 0 | 1 => 1,
                past => (998 - past).min(until - now),
            };
            advance(Duration::from_millis(step)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn fixed_fallback_tests_to_the_millisecond() {
    let dead = Dead::start("fixed_fallback(0, timeout=3s, retries=3, interval=1h)", 2);
    // The round at the start finds it dead; retry 1 follows at once, then one every timeout; at 9 s they are used up,
    // and the waits grow.
    assert_eq!(dead.tested_at(0, 28_000).await, [0, 0, 3000, 6000, 15_000, 27_000]);
    assert_eq!(dead.tests(1).await, 1, "nobody retries the others");
}

#[tokio::test(start_paused = true)]
async fn without_retries_only_rounds_test() {
    let dead = Dead::start("fixed_fallback(0, retries=0, interval=20s)", 2);
    let at = dead.tested_at(0, 45_000).await;
    // A round comes up to a tenth of the interval late.
    assert_eq!(at.len(), 3, "{at:?}");
    assert!(at[0] == 0 && (20_000..=22_000).contains(&at[1]) && (40_000..=44_000).contains(&at[2]), "{at:?}");
}

#[tokio::test(start_paused = true)]
async fn a_group_that_ends_tests_no_more() {
    let dead = Dead::start("fixed_fallback(0)", 2);
    assert_eq!(dead.tests(0).await, 2);
    dead.stop.cancel();
    dead.plane.tracker.close();
    dead.plane.tracker.wait().await;
    advance(Duration::from_secs(3600)).await;
    assert_eq!(dead.tests(0).await, 2);
    assert_eq!(dead.steering.choose(None).await, Err(ChoiceError::NotRunning));
}

#[tokio::test(start_paused = true)]
async fn an_idle_group_stops_and_its_first_use_wakes_it() {
    let dead = Dead::start("urltest(interval=10s, idle_timeout=30s)", 1);
    // Without any use there is only the round at the start.
    assert_eq!(dead.tested_at(0, 100_000).await, [0]);
    dead.steering.used(dead.plane.options.clock.now_ms());
    let at = dead.tested_at(0, 100_001).await;
    assert_eq!(at.len(), 2, "the first use wakes it: {at:?}");
    let at = dead.tested_at(0, 200_000).await;
    // At 110, 120 and 130 s, each a little late; then nobody has used it for 30 s.
    assert!((4..=5).contains(&at.len()), "{at:?}");
    assert_eq!(dead.tested_at(0, 300_000).await.len(), at.len(), "it sleeps again");
}

#[tokio::test(start_paused = true)]
async fn a_failed_dial_leads_to_a_test_at_once() {
    let dead = Dead::start("min(interval=1h)", 1);
    assert_eq!(dead.tested_at(0, 5000).await, [0]);
    dead.steering.failed(0, Network::Udp4);
    assert_eq!(dead.tested_at(0, 5001).await.len(), 2);
}
