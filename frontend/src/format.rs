//! Numbers and times as people read them.

use crate::i18n::Lang;
use shared::api::WallMs;

/// Milliseconds with as many digits as matter: `0.08 ms`, `38.4 ms`, `1205 ms`.
pub fn ms(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    match value.abs() {
        0.0 => "0 ms".to_owned(),
        small if small < 0.995 => fixed(value, 2) + " ms",
        middle if middle < 99.95 => fixed(value, 1) + " ms",
        _ => fixed(value, 0) + " ms",
    }
}

/// A score: rounded, because its digits behind the point are noise; small ones only exist in a laboratory.
pub fn score(value: f64) -> String {
    match value {
        value if !value.is_finite() => "–".to_owned(),
        small if small < 9.95 => fixed(small, 2),
        value => fixed(value, 0),
    }
}

/// A share of 0 to 1 as percent: `0 %`, `2.5 %`, `25 %`.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "–".to_owned();
    }
    let percent = share * 100.0;
    let digits = if percent == 0.0 || percent >= 9.95 { 0 } else { 1 };
    fixed(percent, digits) + " %"
}

/// A length of time in words, two units at most: `45 秒`, `2 min 5 s`, `3 d 4 h`.
pub fn duration(milliseconds: i64, lang: Lang) -> String {
    let seconds = milliseconds.max(0) / 1000;
    let (d, h, m, s) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let units = match lang {
        Lang::Zh => ["天", "小时", "分", "秒"],
        Lang::En => ["d", "h", "min", "s"],
    };
    let parts = [d, h, m, s];
    let first = parts.iter().position(|part| *part > 0).unwrap_or(3);
    let mut words = vec![format!("{} {}", parts[first], units[first])];
    if let Some(second) = parts.get(first + 1)
        && *second > 0
    {
        words.push(format!("{second} {}", units[first + 1]));
    }
    words.join(" ")
}

/// Seconds that remain, counted up, so that the last second is a 1 and not a 0.
pub fn countdown(milliseconds: i64, lang: Lang) -> String {
    duration((milliseconds.max(0) + 999) / 1000 * 1000, lang)
}

/// Date and time in the reader's zone.
pub fn date_time(at: WallMs, lang: Lang) -> String {
    let date = js_sys::Date::new(&wasm_bindgen::JsValue::from_f64(at as f64));
    String::from(date.to_locale_string(lang.tag(), &wasm_bindgen::JsValue::UNDEFINED))
}

/// Time of day in the reader's zone.
pub fn time(at: WallMs, lang: Lang) -> String {
    let date = js_sys::Date::new(&wasm_bindgen::JsValue::from_f64(at as f64));
    String::from(date.to_locale_time_string(lang.tag()))
}

/// How far the reader's clock is ahead of UTC at a moment, in milliseconds.
pub fn zone_ms(at: WallMs) -> i64 {
    let date = js_sys::Date::new(&wasm_bindgen::JsValue::from_f64(at as f64));
    -(date.get_timezone_offset() * 60_000.0) as i64
}

/// A number as an input shows it: without the digits behind the point when they are zero.
pub fn plain(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 { (value as i64).to_string() } else { value.to_string() }
}

/// A number with so many digits behind the point. By whole numbers, because the library's way of cutting any number
/// anywhere weighs more than this page's numbers need.
pub fn fixed(value: f64, digits: u32) -> String {
    let scale = 10_i64.pow(digits);
    let scaled = (value * scale as f64).round() as i64;
    let sign = if scaled < 0 { "-" } else { "" };
    let (whole, part) = (scaled.unsigned_abs() / scale as u64, scaled.unsigned_abs() % scale as u64);
    if digits == 0 {
        return format!("{sign}{whole}");
    }
    format!("{sign}{whole}.{part:0>width$}", width = digits as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(ms(0.0), "0 ms");
        assert_eq!(ms(0.016), "0.02 ms");
        assert_eq!(ms(1.0), "1.0 ms");
        assert_eq!(ms(38.44), "38.4 ms");
        assert_eq!(ms(99.96), "100 ms");
        assert_eq!(ms(1204.6), "1205 ms");
        assert_eq!(ms(f64::NAN), "–");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.025), "2.5 %");
        assert_eq!(percent(0.25), "25 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(plain(30000.0), "30000");
        assert_eq!(plain(0.15), "0.15");
        assert_eq!(score(543.6), "544");
        assert_eq!(score(0.034), "0.03");
        assert_eq!(fixed(-1.06, 1), "-1.1");
        assert_eq!(fixed(-0.04, 1), "0.0");
        assert_eq!(fixed(12.006, 2), "12.01");
        assert_eq!(fixed(3.0, 2), "3.00");
    }

    #[test]
    fn durations() {
        assert_eq!(duration(0, Lang::En), "0 s");
        assert_eq!(duration(45_900, Lang::Zh), "45 秒");
        assert_eq!(duration(125_000, Lang::En), "2 min 5 s");
        assert_eq!(duration(3 * 86_400_000 + 4 * 3_600_000 + 59_000, Lang::En), "3 d 4 h");
        assert_eq!(duration(-5, Lang::En), "0 s");
        assert_eq!(countdown(1, Lang::En), "1 s");
        assert_eq!(countdown(59_001, Lang::En), "1 min");
    }
}
