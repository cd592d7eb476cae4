//! Delay, jitter and order.

use std::time::Duration;

use tests::netlab::{Impairment, be_punctual};

use crate::measure::{MS, Train, connect_times, lab, median, pair, send_numbered};

#[tokio::test]
async fn a_tcp_ping_takes_what_was_asked_at_the_median() {
    let Some(lab) = lab("rtt") else { return };
    be_punctual();
    let measure = async |round_trip: u32| {
        let (a, b) =
            (lab.host(&format!("a-{round_trip}")).unwrap(), lab.host(&format!("b-{round_trip}")).unwrap());
        lab.link(&a, &b).set_both(Impairment::delay(MS * round_trip / 2)).unwrap();
        (MS * round_trip, connect_times(&a, &b, 60).await)
    };
    // Side by side, as the links of a network are.
    let (none, short, middle, long) = tokio::join!(measure(0), measure(10), measure(50), measure(150));
    println!("lab: {:?}", lab.stats().unwrap().lateness);
    for (asked, times) in [none, short, middle, long] {
        println!("asked {asked:?}, median {:?}", median(&times));
        assert!(times.iter().all(|time| *time >= asked), "none is faster than {asked:?}: {times:?}");
        assert!(median(&times) - asked <= MS, "asked {asked:?}, median {:?}: {times:?}", median(&times));
    }
}

#[tokio::test]
async fn each_direction_has_its_own_delay() {
    let Some((lab, a, b)) = pair("oneway") else { return };
    be_punctual();
    lab.link(&a, &b).set(Impairment::delay(MS * 30)).unwrap();
    let train = Train { count: 100, bytes: 100, burst: 1, gap: MS };
    for (from, to, asked) in [(&a, &b, MS * 30), (&b, &a, Duration::ZERO)] {
        let arrivals = send_numbered(&lab, from, to, train).await;
        let flights: Vec<_> = arrivals.iter().map(|arrival| arrival.flight()).collect();
        assert_eq!(flights.len(), 100);
        let added = median(&flights).checked_sub(asked).expect("not faster than asked");
        assert!(added <= MS, "{from:?}: {flights:?}");
    }
}

#[tokio::test]
async fn jitter_stays_in_its_bounds_and_fills_them() {
    let Some((lab, a, b)) = pair("jitter") else { return };
    be_punctual();
    lab.link(&a, &b).set(Impairment::delay(MS * 20).jitter(MS * 10)).unwrap();
    // Further apart than the jitter is wide, so that order does not bend the distribution.
    let train = Train { count: 150, bytes: 100, burst: 1, gap: MS * 21 };
    let arrivals = send_numbered(&lab, &a, &b, train).await;
    let mut flights: Vec<_> = arrivals.iter().map(|arrival| arrival.flight()).collect();
    flights.sort_unstable();
    assert!(flights[0] >= MS * 10, "never below 20 - 10 ms: {flights:?}");
    // Quantiles of 150 uniform values over 20 ms: 3 standard deviations are at most 4.9 ms; and 1 ms for the lab.
    for (share, asked) in [(0.1, 12.0), (0.5, 20.0), (0.9, 28.0)] {
        let index = (share * flights.len() as f64) as usize;
        let deviation = 20.0 * (share * (1.0 - share) / flights.len() as f64).sqrt();
        let found = flights[index].as_secs_f64() * 1000.0;
        assert!(
            (found - asked).abs() <= 3.0 * deviation + 1.0,
            "quantile {share}: {found} ms, asked {asked} ms"
        );
    }
}

#[tokio::test]
async fn order_is_kept_unless_reordering_is_asked_for() {
    let Some((lab, a, b)) = pair("order") else { return };
    let train = Train { count: 2000, bytes: 100, burst: 4, gap: MS };
    let overtaken = |arrivals: &[crate::measure::Arrival]| {
        arrivals.windows(2).filter(|pair| pair[1].number < pair[0].number).count()
    };

    lab.link(&a, &b).set(Impairment::delay(MS * 10).jitter(MS * 10)).unwrap();
    let arrivals = send_numbered(&lab, &a, &b, train).await;
    assert_eq!((arrivals.len(), overtaken(&arrivals)), (2000, 0), "jitter alone");

    lab.link(&a, &b).set(Impairment::delay(MS * 10).reorder(0.1, MS * 20)).unwrap();
    let arrivals = send_numbered(&lab, &a, &b, train).await;
    assert_eq!(arrivals.len(), 2000, "reordering loses nothing");
    let held = lab.link(&a, &b).stats().unwrap().held;
    // 99.9 % of a binomial of 2,000 at 10 %: 200 ± 44.
    assert!((156..=244).contains(&held), "{held}");
    // Held packets that leave together, or behind the last one, are overtaken as one.
    let overtaken = overtaken(&arrivals);
    assert!(overtaken > 50 && overtaken as u64 <= held, "{overtaken} of {held}");
}
