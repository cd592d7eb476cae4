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

/// The noise of one value: differences between neighbouring blocks, for blocks of each length. What every round looks at
/// lies together, and what a complete block changes behind it: with 10,000 owners memory is what takes the time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Noise {
    /// Rounds so far; it tells which of the numbers below are there.
    rounds: u32,
    /// Of the shortest block that is not complete.
    sum: f32,
    /// Variance of a block's mean.
    variance: [f32; WINDOWS.len()],
    /// Sum of the first half of a block, until the second is there.
    half: [f32; WINDOWS.len()],
    /// Mean of the last complete block.
    last: [f32; WINDOWS.len()],
    /// Sizes of the last differences; rings.
    steps: [[f32; KEPT]; WINDOWS.len()],
}

impl Noise {
    pub(super) fn add(&mut self, value: f64) {
        self.rounds = self.rounds.wrapping_add(1);
        self.sum += value as f32;
        if !self.rounds.is_multiple_of(WINDOWS[0] as u32) {
            return;
        }
        let mut sum = std::mem::take(&mut self.sum);
        for (scale, length) in WINDOWS.into_iter().enumerate() {
            // Each length is twice the one before: two blocks of that are one of this.
            if scale > 0 {
                if !self.rounds.is_multiple_of(length as u32) {
                    self.half[scale] = sum;
                    return;
                }
                sum += self.half[scale];
            }
            self.complete(scale, sum / length as f32);
        }
    }

    fn complete(&mut self, scale: usize, mean: f32) {
        let last = std::mem::replace(&mut self.last[scale], mean);
        // The first block has none before it.
        if let Some(number) = (self.rounds as usize / WINDOWS[scale]).checked_sub(2) {
            self.steps[scale][number % KEPT] = (mean - last).abs();
            self.variance[scale] = trimmed(&self.steps[scale][..self.known(scale)]);
        }
    }

    /// Differences that are kept.
    fn known(&self, scale: usize) -> usize {
        (self.rounds as usize / WINDOWS[scale]).saturating_sub(1).min(KEPT)
    }

    /// Variance of the mean over window number `scale`. Where that is not known yet it is taken from a shorter one, and
    /// supposed to shrink only with the square root of the length, as it does where samples are correlated.
    pub(super) fn variance(&self, scale: usize) -> Option<f64> {
        let known = (0..=scale).rev().find(|scale| self.known(*scale) >= ENOUGH)?;
        let variance = f64::from(self.variance[known]);
        Some(if known == scale {
            variance
        } else {
            variance / ((WINDOWS[scale] / WINDOWS[known]) as f64).sqrt()
        })
    }
}

/// Variance of a block's mean: half the mean square of the differences (Allan's variance). It knows correlated samples,
/// bursts and oscillation for what they are at this length. The largest one is left out: a single step is an event to
/// be noticed, not noise; steps that repeat are noise.
fn trimmed(steps: &[f32]) -> f32 {
    let (mut sum, mut largest) = (0.0f64, 0.0f64);
    for step in steps {
        let square = f64::from(*step).powi(2);
        sum += square;
        largest = largest.max(square);
    }
    (0.5 * UNTRIM * (sum - largest) / steps.len().saturating_sub(1).max(1) as f64) as f32
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
