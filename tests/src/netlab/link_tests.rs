//! The model alone: seeds fixed, time given.

use proptest::prelude::*;

use super::super::impairment::Reorder;
use super::*;

const MS: Duration = Duration::from_millis(1);

fn model(impairment: Impairment) -> LinkModel {
    let mut model = LinkModel::new(7);
    model.set(impairment);
    model
}

/// Fates of `count` packets of 1,000 bytes, `gap` apart.
fn fates(model: &mut LinkModel, count: u32, gap: Duration) -> Vec<(Duration, Verdict)> {
    (0..count).map(|index| (gap * index, model.decide(gap * index, 1000))).collect()
}

fn drops(fates: &[(Duration, Verdict)], reason: DropReason) -> usize {
    fates.iter().filter(|(_, verdict)| *verdict == Verdict::Drop(reason)).count()
}

#[test]
fn a_perfect_link_delivers_at_once() {
    for (sent, verdict) in fates(&mut model(Impairment::default()), 100, MS) {
        assert_eq!(verdict, Verdict::Deliver { at: sent, held: false });
    }
}

#[test]
fn delay_is_exact() {
    for (sent, verdict) in fates(&mut model(Impairment::delay(50 * MS)), 100, MS) {
        assert_eq!(verdict, Verdict::Deliver { at: sent + 50 * MS, held: false });
    }
}

#[test]
fn jitter_fills_its_range_evenly_and_nothing_else() {
    let gap = 100 * MS;
    let mut tenths = [0_u32; 10];
    for (sent, verdict) in fates(&mut model(Impairment::delay(30 * MS).jitter(20 * MS)), 10_000, gap) {
        let Verdict::Deliver { at, held: false } = verdict else { panic!("{verdict:?}") };
        let flight = at - sent;
        assert!((10 * MS..=50 * MS).contains(&flight), "{flight:?}");
        let share = (flight - 10 * MS).as_secs_f64() / 0.04;
        tenths[(share * 10.0).min(9.0) as usize] += 1;
    }
    // 1,000 expected in each; 99.99 % interval of a binomial is ±3.9 standard deviations of 30.
    assert!(tenths.iter().all(|count| count.abs_diff(1000) < 117), "{tenths:?}");
}

#[test]
fn jitter_larger_than_the_delay_does_not_go_back_in_time() {
    for (sent, verdict) in fates(&mut model(Impairment::delay(MS).jitter(20 * MS)), 1000, 100 * MS) {
        let Verdict::Deliver { at, .. } = verdict else { panic!("{verdict:?}") };
        assert!(at >= sent && at <= sent + 21 * MS);
    }
}

#[test]
fn loss_is_as_asked() {
    for loss in [0.0, 0.01, 0.2, 1.0] {
        let count = 100_000;
        let fates = fates(&mut model(Impairment::lossy(loss)), count, MS);
        let lost = drops(&fates, DropReason::Loss) as f64;
        let deviation = (f64::from(count) * loss * (1.0 - loss)).sqrt();
        assert!((lost - f64::from(count) * loss).abs() <= 2.576 * deviation, "{loss}: {lost}");
    }
}

#[test]
fn bursts_have_the_average_and_the_length_asked() {
    for (loss, length) in [(0.05, 4.0), (0.2, 10.0)] {
        let impairment = Impairment::default().burst(Burst::from_average(loss, length));
        let fates = fates(&mut model(impairment), 400_000, MS);
        let lost = drops(&fates, DropReason::Burst);
        let bursts = 1 + fates
            .windows(2)
            .filter(|pair| {
                let is_lost = |verdict| verdict == Verdict::Drop(DropReason::Burst);
                !is_lost(pair[0].1) && is_lost(pair[1].1)
            })
            .count();
        let average = lost as f64 / fates.len() as f64;
        assert!((average / loss - 1.0).abs() < 0.05, "asked {loss}, got {average}");
        let mean = lost as f64 / bursts as f64;
        assert!((mean / length - 1.0).abs() < 0.05, "asked {length}, got {mean}");
    }
}

#[test]
fn rate_spaces_packets_and_bounds_the_queue() {
    // 8 Mbit/s: a packet of 1,000 bytes takes 1 ms.
    let rate = Rate { bits_per_second: 8_000_000, burst_bytes: 2000, queue_bytes: 10_000 };
    let mut model = model(Impairment::default().rate(rate));
    let start = Duration::from_secs(1);
    let fates: Vec<Verdict> = (0..20).map(|_| model.decide(start, 1000)).collect();
    for (index, verdict) in fates.iter().enumerate() {
        // Two of the burst at once, ten wait, the rest finds the queue full.
        let expected = match index as u32 {
            0 | 1 => Verdict::Deliver { at: start, held: false },
            2..12 => Verdict::Deliver { at: start + MS * (index as u32 - 1), held: false },
            _ => Verdict::Drop(DropReason::QueueFull),
        };
        assert_eq!(*verdict, expected, "{index}");
    }
    assert_eq!(model.decide(start + 11 * MS, 1000), Verdict::Deliver { at: start + 11 * MS, held: false });
}

#[test]
fn without_a_pause_the_rate_is_exact() {
    let rate = Rate { bits_per_second: 1_000_000, burst_bytes: 3000, queue_bytes: 20_000 };
    let fates = fates(&mut model(Impairment::default().rate(rate)), 20_000, MS);
    let delivered = fates.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Deliver { .. })).count();
    // 20 s of 125 packets, plus what the bucket and the queue hold at the ends.
    assert!((2500..=2524).contains(&delivered), "{delivered}");
}

#[test]
fn held_packets_are_overtaken_and_only_they() {
    let mut model = model(Impairment::delay(10 * MS).reorder(0.1, 5 * MS));
    let fates = fates(&mut model, 10_000, MS);
    let held = fates.iter().filter(|(_, v)| matches!(v, Verdict::Deliver { held: true, .. })).count();
    assert!((923..=1077).contains(&held), "{held}");
    for (sent, verdict) in fates {
        let Verdict::Deliver { at, held } = verdict else { panic!("{verdict:?}") };
        assert_eq!(at - sent, if held { 15 * MS } else { 10 * MS });
    }
}

#[test]
fn cut_and_black_hole_drop_everything_and_opening_brings_back_the_impairment() {
    let mut model = model(Impairment::delay(10 * MS));
    model.passage = Passage::Cut;
    assert_eq!(model.decide(MS, 100), Verdict::Drop(DropReason::Cut));
    model.passage = Passage::BlackHole;
    assert_eq!(model.decide(2 * MS, 100), Verdict::Drop(DropReason::BlackHole));
    model.passage = Passage::Open;
    assert_eq!(model.decide(3 * MS, 100), Verdict::Deliver { at: 13 * MS, held: false });
}

#[test]
fn seeds_differ_by_lab_seed_and_by_direction() {
    let seeds = [
        link_seed(1, "a", "b"),
        link_seed(1, "b", "a"),
        link_seed(2, "a", "b"),
        link_seed(1, "a", "c"),
        link_seed(1, "ab", ""),
        link_seed(1, "", "ab"),
    ];
    let mut unique = seeds.to_vec();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), seeds.len());
}

fn impairments() -> impl Strategy<Value = Impairment> {
    let millis = |max: u64| (0..max).prop_map(Duration::from_millis);
    let burst = (0.0..0.5, 1.0..20.0).prop_map(|(loss, length)| Burst::from_average(loss, length));
    let reorder = (0.0..1.0, millis(50)).prop_map(|(probability, hold)| Reorder { probability, hold });
    let rate = (1_u64..100_000_000, 0_u64..100_000, 0_u64..1_000_000).prop_map(
        |(bits, burst_bytes, queue_bytes)| Rate { bits_per_second: bits, burst_bytes, queue_bytes },
    );
    (
        millis(500),
        millis(500),
        0.0..1.0,
        prop::option::of(burst),
        prop::option::of(reorder),
        prop::option::of(rate),
    )
        .prop_map(|(delay, jitter, loss, burst, reorder, rate)| Impairment {
            delay,
            jitter,
            loss,
            burst,
            reorder,
            rate,
        })
}

proptest! {
    #[test]
    fn same_seed_same_fates(impairment in impairments(), seed: u64) {
        let run = || {
            let mut model = LinkModel::new(seed);
            model.set(impairment.clone());
            fates(&mut model, 200, MS)
        };
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn no_packet_arrives_before_it_was_sent_nor_overtakes_unless_held(
        changes in prop::collection::vec(impairments(), 1..5),
        gaps in prop::collection::vec(0_u64..20_000, 1..200),
    ) {
        let mut model = LinkModel::new(1);
        let mut now = Duration::ZERO;
        let mut last = Duration::ZERO;
        for (index, gap) in gaps.iter().enumerate() {
            model.set(changes[index * changes.len() / gaps.len()].clone());
            now += Duration::from_micros(*gap);
            if let Verdict::Deliver { at, held } = model.decide(now, 1500) {
                prop_assert!(at >= now);
                prop_assert!(at >= last);
                if !held {
                    last = at;
                }
            }
        }
    }

    #[test]
    fn which_packets_are_lost_does_not_depend_on_delays_or_cuts(seed: u64, cut in 0_usize..100) {
        let mut plain = LinkModel::new(seed);
        plain.set(Impairment::lossy(0.3));
        let mut busy = LinkModel::new(seed);
        busy.set(Impairment::delay(30 * MS).jitter(30 * MS).loss(0.3));
        for index in 0..200 {
            busy.passage = if (cut..cut + 20).contains(&index) { Passage::Cut } else { Passage::Open };
            let lost = plain.decide(MS * index as u32, 100) == Verdict::Drop(DropReason::Loss);
            let fate = busy.decide(MS * index as u32, 1500);
            if busy.passage == Passage::Open {
                prop_assert_eq!(fate == Verdict::Drop(DropReason::Loss), lost);
            }
        }
    }
}
