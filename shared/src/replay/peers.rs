//! Other systems' rules as they are published, quirks included.

use super::random::Random;
use super::run::{Pick, Rule, World};
use crate::link::Sample;

/// GOST `fifo`: the first node that is not marked; a failed dial marks for 10 s.
#[derive(Debug, Default)]
pub struct GostFifo {
    marked_until: Vec<u64>,
}

/// Dials in order, marking what fails; all marked: the first. Returns the exit that the connection ends at.
fn dial_marking(order: &[usize], marked_until: &mut [u64], world: &World<'_>) -> usize {
    for exit in order {
        if marked_until[*exit] > world.now {
            continue;
        }
        if !world.dial(*exit) {
            marked_until[*exit] = world.now + 10_000;
        }
        return *exit;
    }
    order[0]
}

impl Rule for GostFifo {
    fn name(&self) -> &str {
        "gost fifo"
    }

    fn second(&mut self, world: &World<'_>, _random: &mut Random) -> Pick {
        self.marked_until.resize(world.trace.exits.len(), 0);
        let order: Vec<usize> = (0..world.trace.exits.len()).collect();
        Pick::plain(dial_marking(&order, &mut self.marked_until, world))
    }
}

/// GOST `lowestlatency`: the last probe of the node's own address, compared anew on every dial.
#[derive(Debug, Default)]
pub struct GostLowestLatency {
    marked_until: Vec<u64>,
    last: Vec<Option<f64>>,
}

impl Rule for GostLowestLatency {
    fn name(&self) -> &str {
        "gost lowestlatency"
    }

    fn second(&mut self, world: &World<'_>, random: &mut Random) -> Pick {
        let count = world.trace.exits.len();
        self.marked_until.resize(count, 0);
        self.last.resize(count, None);
        if world.now.is_multiple_of(30_000) {
            for exit in 0..count {
                match world.leg_a(exit, 0, random) {
                    Sample::Ok { ms, .. } => {
                        (self.last[exit], self.marked_until[exit]) = (Some(ms), 0);
                    }
                    // Repeated by the kernel within the timeout of 10 s.
                    Sample::Lost => match world.leg_a(exit, 1000, random) {
                        Sample::Ok { ms, .. } => self.last[exit] = Some(ms + 1000.0),
                        _ => self.marked_until[exit] = world.now + 10_000,
                    },
                    _ => self.marked_until[exit] = world.now + 10_000,
                }
            }
        }
        let mut order: Vec<usize> = (0..count).collect();
        let key = |exit: &usize| self.last[*exit].unwrap_or(f64::INFINITY);
        order.sort_by(|a, b| key(a).total_cmp(&key(b)));
        Pick::plain(dial_marking(&order, &mut self.marked_until, world))
    }
}

/// sing-box URLTest: every 3 minutes, one request, tolerance 50 against a running best, a failed dial only forgets.
#[derive(Debug, Default)]
pub struct SingBox {
    current: Option<usize>,
    /// When and how long.
    history: Vec<Option<(u64, f64)>>,
}

impl Rule for SingBox {
    fn name(&self) -> &str {
        "sing-box urltest"
    }

    fn second(&mut self, world: &World<'_>, random: &mut Random) -> Pick {
        const INTERVAL_MS: u64 = 180_000;
        let count = world.trace.exits.len();
        self.history.resize(count, None);
        if world.now.is_multiple_of(INTERVAL_MS) {
            for exit in 0..count {
                // Stamped when the test ends, a healthy member looks recent at the next tick.
                if self.history[exit].is_some_and(|(at, _)| world.now - at < INTERVAL_MS) {
                    continue;
                }
                self.history[exit] =
                    world.request(exit, 15_000.0, random).map(|ms| (world.now + 1, ms.round()));
            }
            let mut best = self.current.and_then(|exit| Some((exit, self.history[exit]?.1)));
            for exit in 0..count {
                let Some((_, ms)) = self.history[exit] else { continue };
                if best.is_none_or(|(_, least)| least == 0.0 || least > ms + 50.0) {
                    best = Some((exit, ms));
                }
            }
            self.current = best.map(|(exit, _)| exit).or(self.current);
        }
        let current = self.current.unwrap_or(0);
        if !world.dial(current) {
            self.history[current] = None;
        }
        Pick::plain(current)
    }
}

/// mihomo url-test: every 300 s, tolerance 50 that does not protect the first member; failing dials test early.
#[derive(Debug, Default)]
pub struct Mihomo {
    current: Option<usize>,
    delays: Vec<f64>,
    fails: Vec<u64>,
}

impl Rule for Mihomo {
    fn name(&self) -> &str {
        "mihomo url-test"
    }

    fn second(&mut self, world: &World<'_>, random: &mut Random) -> Pick {
        const DEAD: f64 = 65_535.0;
        let count = world.trace.exits.len();
        self.delays.resize(count, DEAD);
        let early = self.fails.len() >= 5;
        if world.now.is_multiple_of(300_000) || early {
            self.fails.clear();
            for exit in 0..count {
                self.delays[exit] = world.request(exit, 5000.0, random).unwrap_or(DEAD);
            }
            let fastest = (0..count).min_by(|a, b| self.delays[*a].total_cmp(&self.delays[*b])).unwrap_or(0);
            let keep = self.current.filter(|current| {
                *current != 0
                    && self.delays[*current] < DEAD
                    && self.delays[*current] <= self.delays[fastest] + 50.0
            });
            self.current = Some(keep.unwrap_or(fastest));
        }
        let current = self.current.unwrap_or(0);
        self.fails.retain(|at| world.now - at < 5000);
        if !world.dial(current) {
            self.fails.push(world.now);
        }
        Pick::plain(current)
    }
}

/// Xray observatory with leastPing: one exit every 10 s in turn, the lowest last result.
#[derive(Debug, Default)]
pub struct XrayLeastPing {
    last: Vec<Option<f64>>,
}

impl Rule for XrayLeastPing {
    fn name(&self) -> &str {
        "xray leastPing"
    }

    fn second(&mut self, world: &World<'_>, random: &mut Random) -> Pick {
        let count = world.trace.exits.len();
        self.last.resize(count, None);
        if world.now.is_multiple_of(10_000) {
            let exit = usize::try_from(world.now / 10_000).unwrap_or(0) % count;
            self.last[exit] = world.request(exit, 5000.0, random);
        }
        let known = (0..count).filter_map(|exit| Some((exit, self.last[exit]?)));
        Pick::plain(known.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(exit, _)| exit))
    }
}

/// dae `min_moving_avg`: every 30 s, an average that starts at half, no tolerance; an unreachable proxy dies at once.
#[derive(Debug, Default)]
pub struct DaeMovingAverage {
    average: Vec<f64>,
    alive: Vec<bool>,
    current: Option<usize>,
}

impl Rule for DaeMovingAverage {
    fn name(&self) -> &str {
        "dae min_moving_avg"
    }

    fn second(&mut self, world: &World<'_>, random: &mut Random) -> Pick {
        let count = world.trace.exits.len();
        self.average.resize(count, 0.0);
        self.alive.resize(count, true);
        let mut look = world.now.is_multiple_of(30_000);
        let current = self.current.unwrap_or(0);
        if !world.dial(current) && self.alive[current] {
            self.alive[current] = false;
            look = true;
        }
        if world.now.is_multiple_of(30_000) {
            for exit in 0..count {
                // Two attempts; the one that works counts.
                let ms =
                    world.request(exit, 10_000.0, random).or_else(|| world.request(exit, 10_000.0, random));
                self.alive[exit] = ms.is_some();
                if let Some(ms) = ms {
                    self.average[exit] = f64::midpoint(self.average[exit], ms);
                }
            }
        }
        if look {
            let alive = (0..count).filter(|exit| self.alive[*exit]);
            self.current =
                alive.min_by(|a, b| self.average[*a].total_cmp(&self.average[*b])).or(self.current);
        }
        Pick::plain(self.current.unwrap_or(0))
    }
}
