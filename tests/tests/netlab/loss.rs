//! Loss: how much, in which shape, and the same again.

use tests::netlab::{Burst, DropReason, Impairment};

use crate::measure::{MS, Train, connect_times, pair, send_numbered};

const TRAIN: Train = Train { count: 5000, bytes: 100, burst: 50, gap: MS };

/// Half the width of the 99 % interval of a binomial, in packets.
fn interval(count: u32, share: f64) -> f64 {
    2.576 * (f64::from(count) * share * (1.0 - share)).sqrt()
}

#[tokio::test]
async fn loss_is_within_the_binomial_interval() {
    let Some((lab, a, b)) = pair("loss") else { return };
    for loss in [0.0, 0.05, 0.2] {
        lab.link(&a, &b).set(Impairment::lossy(loss)).unwrap();
        let arrivals = send_numbered(&lab, &a, &b, TRAIN).await;
        let lost = f64::from(TRAIN.count) - arrivals.len() as f64;
        let asked = f64::from(TRAIN.count) * loss;
        assert!((lost - asked).abs() <= interval(TRAIN.count, loss), "asked {asked}, lost {lost}");
    }
}

#[tokio::test]
async fn bursts_have_the_average_and_the_length_asked() {
    let Some((lab, a, b)) = pair("burst") else { return };
    let (loss, length) = (0.1, 4.0);
    lab.link(&a, &b).set(Impairment::default().burst(Burst::from_average(loss, length))).unwrap();
    let train = Train { count: 20_000, ..TRAIN };
    let arrivals = send_numbered(&lab, &a, &b, train).await;
    // Gaps in the numbers are the bursts.
    let numbers = std::iter::once(-1).chain(arrivals.iter().map(|arrival| i64::from(arrival.number)));
    let numbers: Vec<i64> = numbers.chain([i64::from(train.count)]).collect();
    let bursts: Vec<i64> =
        numbers.windows(2).map(|pair| pair[1] - pair[0] - 1).filter(|lost| *lost > 0).collect();
    let lost: i64 = bursts.iter().sum();
    let average = lost as f64 / f64::from(train.count);
    let mean = lost as f64 / bursts.len() as f64;
    // About 500 bursts: the standard deviation of the mean of a geometric length is 3.5 / √500 = 0.15, that of the
    // average 0.1 x √((1 + 3 + 3) / 2000) = 0.006. Three of each.
    assert!((average - loss).abs() < 0.018, "average {average}");
    assert!((mean - length).abs() < 0.47, "mean length {mean} of {} bursts", bursts.len());
}

#[tokio::test]
async fn the_same_seed_loses_the_same_packets() {
    let mut patterns = Vec::new();
    for seed in [5, 5, 6] {
        let Some((lab, a, b)) = pair("seed") else { return };
        lab.set_seed(seed).unwrap();
        let burst = Burst::from_average(0.1, 3.0);
        // The delay differs between runs and must not matter.
        let delay = MS * patterns.len() as u32;
        lab.link(&a, &b).set(Impairment::delay(delay).loss(0.1).burst(burst)).unwrap();
        let train = Train { count: 1000, ..TRAIN };
        let arrivals = send_numbered(&lab, &a, &b, train).await;
        patterns.push(arrivals.iter().map(|arrival| arrival.number).collect::<Vec<_>>());
    }
    assert_eq!(patterns[0], patterns[1]);
    assert_ne!(patterns[0], patterns[2]);
}

#[tokio::test]
async fn a_lost_syn_is_sent_again_by_the_kernel_and_shows_in_the_time() {
    let Some((lab, a, b)) = pair("syn") else { return };
    // Loses the first packet and no other: a bad link that turns good with the second packet, for good.
    let first_only = Burst { good_to_bad: 1.0, bad_to_good: 1.0, loss_good: 0.0, loss_bad: 1.0 };
    lab.link(&a, &b).set(Impairment::default().burst(first_only)).unwrap();
    let connect = connect_times(&a, &b, 1);
    let heal = async {
        // As soon as the SYN is lost.
        while lab.link(&a, &b).stats().unwrap().dropped(DropReason::Burst) == 0 {
            tokio::time::sleep(MS).await;
        }
        lab.link(&a, &b).set(Impairment::default()).unwrap();
    };
    let (times, ()) = tokio::join!(connect, heal);
    // The initial timeout is 1 s (RFC 6298); the kernel's timer may be a few ms late, the machine more.
    assert!((MS * 1000..MS * 1500).contains(&times[0]), "{times:?}");
    assert_eq!(lab.link(&a, &b).stats().unwrap().dropped(DropReason::Burst), 1);
}
