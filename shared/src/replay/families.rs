//! Random traces: some families to tune on, and others, never looked at while tuning, to report on.

use super::random::Random;
use super::trace::{Dead, Exit, Script, Trace, What, both, bursts};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

/// A named maker of traces.
pub type Family = (&'static str, fn(u64) -> Trace);

/// Tuned on.
pub const TUNING: [Family; 6] = [
    ("equal exits, independent loss", equal_loss),
    ("steps of latency", steps),
    ("onsets of loss", loss_onsets),
    ("oscillation", oscillation),
    ("hard failures", failures),
    ("drift", drift),
];

/// Reported on, and not tuned on.
pub const HELD_OUT: [Family; 6] = [
    ("equal exits, bursty loss (Gilbert-Elliott)", equal_bursts),
    ("one exit with bursty loss (Gilbert-Elliott)", bursts_onset),
    ("slow oscillation of three exits", slow_oscillation),
    ("heavy jitter and a second path", heavy_jitter),
    ("evenings: loss and latency together", evenings),
    ("everything at once", mixture),
];

fn path(random: &mut Random, low: f64, high: f64, jitter: f64) -> Exit {
    let total = random.between(low, high);
    Exit::new(Script::new(total * 0.6 - jitter, jitter), Script::new(total * 0.4 - jitter, jitter))
}

fn equal_loss(seed: u64) -> Trace {
    let mut random = Random::new(seed);
    let (loss, jitter) = (random.between(0.0, 0.05), random.between(1.0, 20.0));
    let exit = || Exit::new(Script::new(60.0, jitter).lossy(loss), Script::new(40.0, jitter).lossy(loss));
    Trace::new(seed, 8 * HOUR, vec![exit(), exit()])
}

fn steps(seed: u64) -> Trace {
    let mut random = Random::new(seed);
    let jitter = random.between(1.0, 6.0);
    let mut exits = vec![
        path(&mut random, 80.0, 140.0, jitter),
        path(&mut random, 80.0, 140.0, jitter),
        path(&mut random, 80.0, 140.0, jitter),
    ];
    for exit in &mut exits {
        let mut t = 0;
        while t < 4 * HOUR {
            t += random.exponential(50.0 * MINUTE as f64) as u64 + 5 * MINUTE;
            let length = random.exponential(30.0 * MINUTE as f64) as u64 + 5 * MINUTE;
            exit.a = exit.a.clone().with(t, t + length, What::Add(random.between(-30.0, 150.0)));
            t += length;
        }
    }
    Trace::new(seed, 4 * HOUR, exits)
}

fn loss_onsets(seed: u64) -> Trace {
    let mut random = Random::new(seed);
    let mut exits = vec![path(&mut random, 80.0, 110.0, 4.0), path(&mut random, 80.0, 110.0, 4.0)];
    for exit in &mut exits {
        let mut t = 0;
        while t < 4 * HOUR {
            t += random.exponential(60.0 * MINUTE as f64) as u64 + 10 * MINUTE;
            let length = random.exponential(20.0 * MINUTE as f64) as u64 + 5 * MINUTE;
            exit.b = exit.b.clone().with(t, t + length, What::Loss(both(random.between(0.01, 0.25))));
            t += length;
        }
    }
    Trace::new(seed, 4 * HOUR, exits)
}

fn oscillation(seed: u64) -> Trace {
    let mut random = Random::new(seed);
    let (period, swing) = (random.between(15_000.0, 200_000.0) as u64, random.between(50.0, 150.0));
    let mut a = path(&mut random, 60.0, 80.0, 3.0);
    a.a = a.a.with(20 * MINUTE, u64::MAX, What::Square(period, swing));
    let b = path(&mut random, 90.0, 130.0, 3.0);
    Trace::new(seed, 6 * HOUR, vec![a, b])
}

fn failures(seed: u64) -> Trace {
    let mut random = Random::new(seed);
    let mut exits = vec![
        path(&mut random, 80.0, 100.0, 3.0),
        path(&mut random, 90.0, 130.0, 3.0),
        path(&mut random, 90.0, 130.0, 3.0),
    ];
    for exit in &mut exits {
        let mut t = 0;
        while t < 4 * HOUR {
            t += random.exponential(70.0 * MINUTE as f64) as u64 + MINUTE;
            let length = random.exponential(4.0 * MINUTE as f64) as u64 + 3000;
            let dead = if random.chance(0.3) { Dead::Refused } else { Dead::Silent };
            let leg = if random.chance(0.5) { &mut exit.a } else { &mut exit.b };
            *leg = leg.clone().with(t, t + length, What::Dead(dead));
            t += length;
        }
    }
    Trace::new(seed, 4 * HOUR, exits)
}

fn drift(seed: u64) -> Trace {
    let mut random = Random::new(seed);
    let mut exits = vec![path(&mut random, 70.0, 90.0, 3.0), path(&mut random, 90.0, 120.0, 3.0)];
    let per_minute = random.between(0.2, 3.0);
    exits[0].a = exits[0].a.clone().with(HOUR, 3 * HOUR, What::Ramp(per_minute));
    Trace::new(seed, 4 * HOUR, exits)
}

fn equal_bursts(seed: u64) -> Trace {
    let mut random = Random::new(seed);
    let (good, bad, loss) =
        (random.between(60_000.0, 400_000.0), random.between(2000.0, 15_000.0), random.between(0.2, 0.7));
    let mut leg = |base: f64| {
        let stretches = bursts(random.draw(), 8 * HOUR, good, bad);
        Script::new(base, 5.0).with(0, u64::MAX, What::Bursts(stretches, loss))
    };
    let exits = vec![Exit::new(leg(60.0), leg(40.0)), Exit::new(leg(60.0), leg(40.0))];
    Trace::new(seed, 8 * HOUR, exits)
}

fn bursts_onset(seed: u64) -> Trace {
    let mut random = Random::new(seed);
    let mut exits = vec![path(&mut random, 80.0, 100.0, 4.0), path(&mut random, 85.0, 110.0, 4.0)];
    let stretches = bursts(
        random.draw(),
        4 * HOUR,
        random.between(20_000.0, 120_000.0),
        random.between(2000.0, 10_000.0),
    );
    let loss = random.between(0.2, 0.6);
    exits[0].a = exits[0].a.clone().with(40 * MINUTE, 2 * HOUR, What::Bursts(stretches, loss));
    let mut trace = Trace::new(seed, 3 * HOUR, exits);
    trace.onset = Some(40 * MINUTE);
    trace
}

fn slow_oscillation(seed: u64) -> Trace {
    let mut random = Random::new(seed);
    let mut exits = Vec::new();
    for _ in 0..3 {
        let mut exit = path(&mut random, 70.0, 110.0, 4.0);
        let period = random.between(4.0 * MINUTE as f64, 90.0 * MINUTE as f64) as u64;
        let swing = random.between(20.0, 120.0);
        exit.b = exit.b.with(random.between(0.0, 1_800_000.0) as u64, u64::MAX, What::Square(period, swing));
        exits.push(exit);
    }
    Trace::new(seed, 8 * HOUR, exits)
}

fn heavy_jitter(seed: u64) -> Trace {
    let mut random = Random::new(seed);
    let mut exits = Vec::new();
    for _ in 0..2 {
        let jitter = random.between(15.0, 45.0);
        let mut exit = path(&mut random, 130.0, 200.0, jitter);
        exit.a = exit.a.with(0, u64::MAX, What::Mode(random.between(0.0, 0.3), random.between(30.0, 250.0)));
        exits.push(exit);
    }
    Trace::new(seed, 6 * HOUR, exits)
}

fn evenings(seed: u64) -> Trace {
    let mut random = Random::new(seed);
    let mut exits = vec![path(&mut random, 60.0, 90.0, 4.0), path(&mut random, 90.0, 130.0, 4.0)];
    for day in 0..2 {
        let from = (day * 24 + 19) * HOUR + random.between(0.0, HOUR as f64) as u64;
        let to = from + random.between(2.0, 5.0) as u64 * HOUR;
        let stretches = bursts(random.draw(), 48 * HOUR, 30_000.0, 6000.0);
        exits[0].a = exits[0].a.clone().with(from, to, What::Add(random.between(10.0, 80.0)));
        exits[0].a = exits[0].a.clone().with(from, to, What::Bursts(stretches, random.between(0.05, 0.4)));
    }
    Trace::new(seed, 48 * HOUR, exits)
}

fn mixture(seed: u64) -> Trace {
    let mut random = Random::new(seed);
    let mut exits = Vec::new();
    for _ in 0..4 {
        let mut exit = path(&mut random, 70.0, 160.0, 6.0);
        let mut t = 0;
        while t < 8 * HOUR {
            t += random.exponential(50.0 * MINUTE as f64) as u64 + 30_000;
            let length = random.exponential(15.0 * MINUTE as f64) as u64 + 5000;
            let what = match random.draw() % 7 {
                0 => What::Add(random.between(5.0, 200.0)),
                1 => What::Loss(both(random.between(0.005, 0.2))),
                2 => What::Jitter(random.between(10.0, 40.0)),
                3 => What::Mode(random.between(0.05, 0.4), random.between(50.0, 300.0)),
                4 => What::Dead(if random.chance(0.5) { Dead::Silent } else { Dead::Refused }),
                5 => What::Square(random.between(10_000.0, 600_000.0) as u64, random.between(30.0, 150.0)),
                _ => {
                    What::Bursts(bursts(random.draw(), 9 * HOUR, 40_000.0, 5000.0), random.between(0.2, 0.8))
                }
            };
            let leg = if random.chance(0.5) { &mut exit.a } else { &mut exit.b };
            *leg = leg.clone().with(t, t + length, what);
            t += length;
        }
        exits.push(exit);
    }
    Trace::new(seed, 8 * HOUR, exits)
}
