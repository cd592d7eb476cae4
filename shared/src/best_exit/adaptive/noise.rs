//! How much a value wanders by itself, measured at the time scale at which it is to be judged.

use serde::{Deserialize, Serialize};

/// Windows, in rounds. A difference is judged over each of them, against the noise of means over that many rounds.
pub(super) const WINDOWS: [usize; 5] = [4, 8, 16, 32, 64];
/// Differences of neighbouring blocks that are kept: the memory is this many blocks.
const KEPT: usize = 16;
/// Without its largest value a mean square of normal ones is smaller by about this.
const UNTRIM: f64 = 1.25;
/// Fewer say nothing yet.
const ENOUGH: usize = 3;

/// Differences between neighbouring blocks of one length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Blocks {
    sum: f64,
    rounds: usize,
    last: Option<f64>,
    /// Sizes of the last differences; a ring.
    steps: Vec<f32>,
    next: usize,
    variance: Option<f64>,
}

impl Blocks {
    fn add(&mut self, value: f64, length: usize) {
        self.sum += value;
        self.rounds += 1;
        if self.rounds < length {
            return;
        }
        let mean = self.sum / length as f64;
        (self.sum, self.rounds) = (0.0, 0);
        if let Some(last) = self.last.replace(mean) {
            let step = (mean - last).abs() as f32;
            if self.steps.len() < KEPT {
                self.steps.push(step);
            } else {
                self.steps[self.next] = step;
            }
            self.next = (self.next + 1) % KEPT;
            self.variance = self.trimmed();
        }
    }

    /// Variance of a block's mean: half the mean square of the differences (Allan's variance). It knows correlated
    /// samples, bursts and oscillation for what they are at this length. The largest one is left out: a single step is
    /// an event to be noticed, not noise; steps that repeat are noise.
    fn trimmed(&self) -> Option<f64> {
        if self.steps.len() < ENOUGH {
            return None;
        }
        let (mut sum, mut largest) = (0.0, 0.0f64);
        for step in &self.steps {
            let square = f64::from(*step).powi(2);
            sum += square;
            largest = largest.max(square);
        }
        Some(0.5 * UNTRIM * (sum - largest) / (self.steps.len() - 1) as f64)
    }
}

/// The noise of one value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Noise {
    blocks: [Blocks; WINDOWS.len()],
}

impl Noise {
    pub(super) fn add(&mut self, value: f64) {
        for (blocks, length) in self.blocks.iter_mut().zip(WINDOWS) {
            blocks.add(value, length);
        }
    }

    /// Variance of the mean over window number `scale`. Where that is not known yet it is taken from a shorter one, and
    /// supposed to shrink only with the square root of the length, as it does where samples are correlated.
    pub(super) fn variance(&self, scale: usize) -> Option<f64> {
        let known = (0..=scale).rev().find_map(|s| Some((s, self.blocks[s].variance?)));
        known.map(|(s, variance)| variance / ((WINDOWS[scale] / WINDOWS[s]) as f64).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(values: impl Iterator<Item = f64>) -> Noise {
        let mut noise = Noise::default();
        values.for_each(|value| noise.add(value));
        noise
    }

    #[test]
    fn a_single_step_is_no_noise_and_an_oscillation_is_at_its_own_scale() {
        let step = noise((0..640).map(|i| if i < 300 { 70.0 } else { 170.0 }));
        // Two neighbouring blocks share the step at most.
        assert!(step.variance(0).is_some_and(|v| v < 400.0), "{:?}", step.variance(0));
        let flips = noise((0..640).map(|i| if i / 4 % 2 == 0 { 70.0 } else { 170.0 }));
        assert_eq!(flips.variance(0), Some(5000.0 * UNTRIM));
        assert_eq!(flips.variance(1), Some(0.0), "over a whole period the mean is always the same");
    }

    #[test]
    fn nothing_is_known_before_there_are_blocks() {
        assert_eq!(noise((0..15).map(f64::from)).variance(4), None);
        let early = noise((0..40).map(|i| f64::from(i % 3)));
        assert!(early.variance(4).is_some());
    }
}
