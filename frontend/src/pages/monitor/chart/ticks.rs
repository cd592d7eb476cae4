//! Where the axes have their lines, and what they say.

use super::span::{Axis, DAY_MS, HOUR_MS, MINUTE_MS};
use crate::format;
use crate::i18n::Lang;
use shared::api::WallMs;

/// Between two times on the axis: room for `00:00:00` and some air.
const PIXELS_PER_TIME: f64 = 84.0;
/// Between two times, as clocks and calendars are divided.
const TIMES_MS: [i64; 19] = [
    5_000,
    10_000,
    15_000,
    30_000,
    MINUTE_MS,
    2 * MINUTE_MS,
    5 * MINUTE_MS,
    10 * MINUTE_MS,
    15 * MINUTE_MS,
    30 * MINUTE_MS,
    HOUR_MS,
    2 * HOUR_MS,
    3 * HOUR_MS,
    6 * HOUR_MS,
    12 * HOUR_MS,
    DAY_MS,
    2 * DAY_MS,
    5 * DAY_MS,
    10 * DAY_MS,
];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A time on the axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tick {
    /// When.
    pub at: WallMs,
    /// What is written there.
    pub label: String,
}

/// Round times of the reader's day. `zone` is how far the reader's clock is ahead of UTC at a moment, in milliseconds.
pub fn times(axis: Axis, width: f64, zone: &dyn Fn(WallMs) -> i64, lang: Lang) -> Vec<Tick> {
    let span_ms = (axis.to - axis.from) as f64;
    let fits = |step: &i64| span_ms / *step as f64 <= (width / PIXELS_PER_TIME).max(1.0);
    let step = TIMES_MS.into_iter().find(fits).unwrap_or(10 * DAY_MS);
    let mut ticks = Vec::new();
    // In local time, because midnight is where the reader has it.
    let mut local = (axis.from + zone(axis.from)).div_euclid(step) * step;
    loop {
        // The zone of about that moment; where the clock is set meanwhile, the lines follow it.
        let at = local - zone(local - zone(axis.from));
        if at > axis.to {
            return ticks;
        }
        if at >= axis.from && ticks.last().is_none_or(|last: &Tick| last.at < at) {
            ticks.push(Tick { at, label: label(local, step, lang) });
        }
        local += step;
    }
}

fn label(local: i64, step: i64, lang: Lang) -> String {
    let of_day = local.rem_euclid(DAY_MS);
    if of_day == 0 {
        let (month, day) = month_and_day(local.div_euclid(DAY_MS));
        return match lang {
            Lang::Zh => format!("{}月{day}日", month + 1),
            Lang::En => format!("{day} {}", MONTHS[month]),
        };
    }
    let two = |number: i64| format!("{number:0>2}");
    let (hours, minutes) = (two(of_day / HOUR_MS), two(of_day / MINUTE_MS % 60));
    if step >= MINUTE_MS {
        return format!("{hours}:{minutes}");
    }
    format!("{hours}:{minutes}:{}", two(of_day / 1000 % 60))
}

/// Month (from 0) and day (from 1) of a day counted from 1970-01-01. Years are counted from March on, so that the day
/// that comes every four years is the last; 400 of them are 146,097 days.
fn month_and_day(days: i64) -> (usize, i64) {
    let of_era = (days + 719_468).rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march_based = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_based + 2) / 5 + 1;
    (((march_based + 2) % 12) as usize, day)
}

/// The values of one chart, from 0 to `top`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The upper edge.
    pub top: f64,
    /// Between two lines.
    pub step: f64,
}

impl Scale {
    /// Round numbers for milliseconds, up to what is to be shown.
    pub fn of_numbers(highest: f64) -> Self {
        // Where everything is 0 or nothing is known, the axis still has to end somewhere.
        let highest = if highest > 0.0 { highest } else { 1.0 };
        let rough = highest / 3.0;
        let mut power = 1e-6;
        while power * 10.0 <= rough {
            power *= 10.0;
        }
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|n| n * power);
        let step = steps.into_iter().find(|step| *step >= rough * 0.999_999).unwrap_or(10.0 * power);
        Self { top: step * (highest / step - 1e-6).ceil().max(1.0), step }
    }

    /// Shares of 0 to 1.
    pub fn of_shares(highest: f64) -> Self {
        let tops = [0.05, 0.1, 0.2, 0.5];
        let top = tops.into_iter().find(|top| *top >= highest).unwrap_or(1.0);
        Self { top, step: top / 2.0 }
    }

    /// The lines above 0.
    pub fn values(self) -> Vec<f64> {
        (1..=(self.top / self.step).round() as i32).map(|n| f64::from(n) * self.step).collect()
    }

    /// A value without its unit, with the digits that tell it from the next.
    pub fn label(self, value: f64) -> String {
        let exact = |digits: &u32| {
            let scaled = self.step * f64::from(10_i32.pow(*digits));
            scaled > 0.5 && (scaled - scaled.round()).abs() < 1e-6
        };
        format::fixed(value, (0..3).find(exact).unwrap_or(3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(from: WallMs, to: WallMs, width: f64, zone: &dyn Fn(WallMs) -> i64) -> Vec<String> {
        let ticks = times(Axis { from, to, step_ms: 1000 }, width, zone, Lang::En);
        assert!(ticks.iter().all(|tick| (from..=to).contains(&tick.at)));
        ticks.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn times_are_round_in_the_readers_zone() {
        let utc = |_| 0;
        let shanghai = |_| 8 * HOUR_MS;
        let kathmandu = |_| 5 * HOUR_MS + 45 * MINUTE_MS;
        // 2026-11-30 15:50 UTC.
        let from = 1_796_053_800_000;
        assert_eq!(labels(from, from + HOUR_MS, 420.0, &utc), ["16:00", "16:15", "16:30", "16:45"]);
        assert_eq!(labels(from, from + HOUR_MS, 420.0, &shanghai), ["1 Dec", "00:15", "00:30", "00:45"]);
        assert_eq!(labels(from, from + HOUR_MS, 170.0, &kathmandu), ["22:00", "22:30"]);
        assert_eq!(labels(from, from + MINUTE_MS, 600.0, &utc)[..2], ["15:50:00", "15:50:10"]);
        // The shortest charts there are, on a screen and on a telephone.
        assert_eq!(labels(from, from + MINUTE_MS, 900.0, &utc).len(), 7);
        assert_eq!(
            labels(from, from + MINUTE_MS, 345.0, &utc),
            ["15:50:00", "15:50:15", "15:50:30", "15:50:45", "15:51:00"]
        );
        assert_eq!(labels(from, from + MINUTE_MS, 300.0, &utc), ["15:50:00", "15:50:30", "15:51:00"]);
        assert_eq!(labels(from, from + 5 * MINUTE_MS, 300.0, &utc), ["15:50", "15:52", "15:54"]);
        let week = labels(from, from + 7 * DAY_MS, 700.0, &shanghai);
        assert_eq!(week[..2], ["1 Dec", "2 Dec"]);
        assert_eq!(week.len(), 7);
    }

    #[test]
    fn midnight_stays_midnight_when_the_clock_is_set() {
        // The night to 2026-10-25 in Europe: from two hours ahead to one, at 01:00 UTC.
        let night = 1_792_886_400_000;
        let berlin = move |at| if at < night + HOUR_MS { 2 * HOUR_MS } else { HOUR_MS };
        let days = labels(night - 2 * DAY_MS, night + 2 * DAY_MS, 500.0, &berlin);
        assert_eq!(days, ["24 Oct", "25 Oct", "26 Oct", "27 Oct"]);
        let ticks = times(
            Axis { from: night - DAY_MS, to: night + 2 * DAY_MS, step_ms: 1 },
            300.0,
            &berlin,
            Lang::Zh,
        );
        let at: Vec<i64> = ticks.iter().map(|tick| (tick.at - night) / HOUR_MS).collect();
        assert_eq!(at, [-2, 23, 47]);
        assert_eq!(ticks[0].label, "10月25日");
    }

    #[test]
    fn days_have_their_dates() {
        for (days, wanted) in
            [(0, (0, 1)), (58, (1, 28)), (59, (2, 1)), (11_016, (1, 29)), (20_787, (10, 30)), (-1, (11, 31))]
        {
            assert_eq!(month_and_day(days), wanted, "{days}");
        }
    }

    #[test]
    fn values_are_round() {
        for (highest, wanted) in [
            (61.0, &["25", "50", "75"][..]),
            (60.0, &["20", "40", "60"]),
            (2_600.0, &["1000", "2000", "3000"]),
            (0.08, &["0.05", "0.10"]),
            (7.0, &["2.5", "5.0", "7.5"]),
            (0.0, &["0.5", "1.0"]),
            (1.0, &["0.5", "1.0"]),
        ] {
            let scale = Scale::of_numbers(highest);
            let labels: Vec<String> = scale.values().into_iter().map(|value| scale.label(value)).collect();
            assert_eq!(labels, wanted, "{highest}");
            assert!(scale.top >= highest);
        }
        assert_eq!(Scale::of_shares(0.0), Scale { top: 0.05, step: 0.025 });
        assert_eq!(Scale::of_shares(0.12).top, 0.2);
        assert_eq!(Scale::of_shares(1.0).values(), [0.5, 1.0]);
    }
}
