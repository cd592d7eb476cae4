//! Which part of a history is meant, also by who says little.

use super::Result;
use crate::error::AppError;
use shared::api::WallMs;

/// What charts begin with.
pub(crate) const HOUR_MS: i64 = 3_600_000;
/// What replays take.
pub(crate) const DAY_MS: i64 = 24 * HOUR_MS;

/// What was asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// First moment; without it a usual length of time before `to`.
    pub from: Option<WallMs>,
    /// Last moment, excluded; default now.
    pub to: Option<WallMs>,
    /// Rounds of each step are averaged; 0 = every round by itself.
    pub step_ms: i64,
}

impl Asked {
    /// The span that is meant at `now`; as long as is usual where nothing else was said.
    ///
    /// # Errors
    /// The field `from` when it does not begin before it ends.
    pub(crate) fn span(self, now: WallMs, usual_ms: i64) -> Result<Span> {
        // A moment later than now, so that a round that ends in this millisecond is in.
        let to = self.to.unwrap_or_else(|| now.saturating_add(1));
        let from = self.from.unwrap_or_else(|| to.saturating_sub(usual_ms));
        if from >= to {
            return Err(AppError::field("from", "out_of_range", "must be before `to`"));
        }
        Ok(Span { from, to, step_ms: self.step_ms })
    }
}

/// A part of a history that has a beginning and an end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// First moment.
    pub(crate) from: WallMs,
    /// Last moment, excluded; later than the first.
    pub(crate) to: WallMs,
    /// Rounds of each step are averaged; 0 = every round by itself.
    pub(crate) step_ms: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_usual() {
        let span = |from, to| {
            let asked = Asked { from, to, step_ms: 5 };
            asked.span(1000, 100).map(|span| (span.from, span.to, span.step_ms)).ok()
        };
        assert_eq!(span(None, None), Some((901, 1001, 5)));
        assert_eq!(span(None, Some(500)), Some((400, 500, 5)));
        assert_eq!(span(Some(3), None), Some((3, 1001, 5)));
        assert_eq!(span(Some(3), Some(4)), Some((3, 4, 5)));
        assert_eq!(span(Some(4), Some(4)), None);
        assert_eq!(span(Some(1001), None), None);
        // Far ends of time are no reason to fall over.
        assert_eq!(span(None, Some(i64::MIN)), None);
    }
}
