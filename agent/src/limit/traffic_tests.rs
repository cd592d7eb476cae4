//! Streams under limits, on a paused clock: what is asserted is virtual time, whatever the machine does.

use super::super::limited::Limited;
use super::*;
use std::net::Ipv4Addr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

const A: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const B: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));
const MB: u64 = 1024 * 1024;

fn rules(lines: &[&str]) -> Rules<Rates> {
    let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    Rules::traffic("limiter l", &lines).unwrap()
}

fn limiter(clock: &Clock, lines: &[&str]) -> Arc<TrafficLimiter> {
    Arc::new(TrafficLimiter::new(rules(lines), clock))
}

/// A connection under limits, and its other end, which is not.
fn connection(
    limiters: &[Arc<TrafficLimiter>],
    ip: IpAddr,
    clock: &Clock,
) -> (Limited<DuplexStream>, DuplexStream) {
    let (near, far) = duplex(64 * 1024);
    (Limited::new(near, limiters, ip, clock), far)
}

/// Seconds on the clock.
fn seconds(clock: &Clock) -> f64 {
    clock.now_ns() as f64 / 1e9
}

/// Reads so many bytes under the limits.
async fn receive(limited: &mut Limited<DuplexStream>, far: &mut DuplexStream, bytes: u64) {
    let send = async {
        let chunk = [7; 8192];
        let mut left = usize::try_from(bytes).unwrap();
        while left > 0 {
            let n = left.min(chunk.len());
            far.write_all(&chunk[..n]).await.unwrap();
            left -= n;
        }
    };
    let read = async {
        let mut buffer = vec![0; 64 * 1024];
        let mut left = bytes;
        while left > 0 {
            let n = limited.read(&mut buffer).await.unwrap() as u64;
            assert!(n > 0);
            left -= n;
        }
    };
    tokio::join!(send, read);
}

/// Writes so many bytes under the limits.
async fn send(limited: &mut Limited<DuplexStream>, far: &mut DuplexStream, bytes: u64) {
    let chunk = vec![7; usize::try_from(bytes).unwrap()];
    let write = async { limited.write_all(&chunk).await.unwrap() };
    let read = async {
        let mut back = vec![0; chunk.len()];
        far.read_exact(&mut back).await.unwrap();
        assert!(back == chunk);
    };
    tokio::join!(write, read);
}

#[tokio::test(start_paused = true)]
async fn each_direction_keeps_to_its_own_limit() {
    let clock = Clock::system();
    let limits = limiter(&clock, &["$ 1MB 2MB"]);
    let (mut limited, mut far) = connection(&[limits], A, &clock);
    receive(&mut limited, &mut far, 10 * MB).await;
    let input = seconds(&clock);
    // A tenth of a second's worth comes at once.
    assert!((9.85..=10.0).contains(&input), "{input}");
    send(&mut limited, &mut far, 10 * MB).await;
    let output = seconds(&clock) - input;
    assert!((4.85..=5.0).contains(&output), "{output}");
}

#[tokio::test(start_paused = true)]
async fn what_has_no_limit_takes_no_time() {
    let clock = Clock::system();
    let limits = limiter(&clock, &["$ 0 1MB", "192.0.2.2 1KB"]);
    let (mut limited, mut far) = connection(&[limits], A, &clock);
    receive(&mut limited, &mut far, 50 * MB).await;
    assert_eq!(clock.now_ns(), 0);
}

#[tokio::test(start_paused = true)]
async fn connections_share_the_limit_of_all_and_of_their_address() {
    // (lines, address of the second, seconds that both need for 5 MB each)
    let cases = [
        (vec!["$ 1MB"], B, 10.0),
        (vec!["$$ 1MB"], A, 5.0),
        (vec!["0.0.0.0/0 1MB"], A, 10.0),
        (vec!["0.0.0.0/0 1MB"], B, 5.0),
        (vec!["192.0.2.1 2MB", "$ 1MB"], A, 10.0),
        (vec!["$ 4MB", "$$ 2MB", "192.0.2.1 1MB"], A, 10.0),
    ];
    for (lines, second, expected) in cases {
        let clock = Clock::system();
        let limits = [limiter(&clock, &lines)];
        let (mut one, mut one_far) = connection(&limits, A, &clock);
        let (mut two, mut two_far) = connection(&limits, second, &clock);
        tokio::join!(receive(&mut one, &mut one_far, 5 * MB), receive(&mut two, &mut two_far, 5 * MB));
        let took = seconds(&clock);
        assert!((expected * 0.96..=expected).contains(&took), "{lines:?}: {took}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_tightest_of_several_limiters_counts() {
    let clock = Clock::system();
    let limits = [limiter(&clock, &["$ 8MB"]), limiter(&clock, &["$ 1MB"]), limiter(&clock, &["$$ 4MB"])];
    let (mut limited, mut far) = connection(&limits, A, &clock);
    receive(&mut limited, &mut far, 5 * MB).await;
    let took = seconds(&clock);
    assert!((4.8..=5.0).contains(&took), "{took}");
}

#[tokio::test(start_paused = true)]
async fn many_connections_share_fairly_and_lose_nothing() {
    let clock = Clock::system();
    let limits = [limiter(&clock, &["$ 1MB"])];
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..50u8 {
        let (mut limited, mut far) = connection(&limits, IpAddr::from([10, 0, 0, n]), &clock);
        let clock = clock.clone();
        tasks.spawn(async move {
            receive(&mut limited, &mut far, MB / 5).await;
            seconds(&clock)
        });
    }
    let mut ends: Vec<f64> = tasks.join_all().await;
    ends.sort_by(f64::total_cmp);
    // 10 MB in all.
    assert!((9.8..=10.0).contains(&ends[49]), "{ends:?}");
    assert!(ends[0] > 4.0, "nobody is through long before the others: {ends:?}");
}

#[tokio::test(start_paused = true)]
async fn idle_connections_hold_nothing_back() {
    let clock = Clock::system();
    let limits = [limiter(&clock, &["$ 1MB"])];
    let mut idle = Vec::new();
    for _ in 0..20 {
        let (mut limited, far) = connection(&limits, A, &clock);
        let reading = tokio::spawn(async move {
            let _ = limited.read(&mut [0; 1024]).await;
        });
        idle.push((far, reading));
    }
    tokio::task::yield_now().await;
    let (mut limited, mut far) = connection(&limits, B, &clock);
    receive(&mut limited, &mut far, 5 * MB).await;
    let took = seconds(&clock);
    assert!((4.85..=5.0).contains(&took), "{took}");
}

#[tokio::test(start_paused = true)]
async fn live_connections_follow_a_change() {
    let clock = Clock::system();
    let limits = limiter(&clock, &["$$ 1KB"]);
    let (mut limited, mut far) = connection(std::slice::from_ref(&limits), A, &clock);
    let change = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        limits.set(rules(&["$ 1MB"]));
    };
    tokio::join!(receive(&mut limited, &mut far, 5 * MB), change);
    let took = seconds(&clock);
    // Ten seconds of almost nothing, up to one until the change is felt, then a megabyte per second.
    assert!((14.8..=16.0).contains(&took), "{took}");
    limits.set(Rules::default());
    receive(&mut limited, &mut far, 50 * MB).await;
    assert!(seconds(&clock) - took < 1.1, "no limit is left");
    limits.set(rules(&["192.0.2.0/24 1MB"]));
    let before = seconds(&clock);
    receive(&mut limited, &mut far, 5 * MB).await;
    assert!(seconds(&clock) - before > 4.8, "a new line holds for those who are there");
}

#[tokio::test(start_paused = true)]
async fn a_slow_limit_moves_in_steps_no_larger_than_a_second() {
    let clock = Clock::system();
    let limits = limiter(&clock, &["$ 1KB"]);
    let (mut limited, mut far) = connection(&[limits], A, &clock);
    receive(&mut limited, &mut far, 11 * 1024).await;
    let took = seconds(&clock);
    assert!((9.9..=10.6).contains(&took), "{took}");
}

#[tokio::test(start_paused = true)]
async fn addresses_are_forgotten_when_nobody_is_there() {
    let clock = Clock::system();
    let limits = limiter(&clock, &["0.0.0.0/0 1MB 1MB"]);
    for n in 0..FIRST_SWEEP as u32 {
        drop(connection(std::slice::from_ref(&limits), IpAddr::from(n.to_be_bytes()), &clock));
    }
    let kept = connection(std::slice::from_ref(&limits), IpAddr::from(5u32.to_be_bytes()), &clock);
    assert_eq!(limits.remembered(), FIRST_SWEEP);
    drop(connection(std::slice::from_ref(&limits), A, &clock));
    assert_eq!(limits.remembered(), 2, "the one in use and the new one");
    drop(kept);
}
