//! Reading arguments that may be anything.

use super::Outcome;
use crate::field::FieldError;
use serde::de::{DeserializeOwned, IgnoredAny};

/// Arguments are at most this long, in bytes of JSON: a tunnel has kilobytes.
pub const MAX_BYTES: usize = 4 << 20;
/// A history is at most this long; a week of four exits in rounds of 5 seconds has a quarter of it.
pub const MAX_HISTORY_BYTES: usize = 64 << 20;
/// The largest whole number that JavaScript counts to without gaps (2^53 - 1).
const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

/// Reads the object with a function's arguments.
pub fn arguments<T: DeserializeOwned>(json: &str) -> Outcome<T> {
    read(json, MAX_BYTES)
}

/// Reads JSON of at most `most` bytes.
pub fn read<T: DeserializeOwned>(json: &str, most: usize) -> Outcome<T> {
    if json.len() > most {
        let message = format!("{} bytes are too many; at most {most} are read", json.len());
        return Err(FieldError::new("", "too_large", message).with("max", most));
    }
    // First as JSON of any shape: a type may be offended before the text turns out to be malformed.
    serde_json::from_str::<IgnoredAny>(json)
        .map_err(|error| FieldError::new("", "malformed", format!("this is no JSON: {error}")))?;
    let mut deserializer = serde_json::Deserializer::from_str(json);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        FieldError::misfit(&path, &error.into_inner().to_string())
    })
}

/// A time in milliseconds. JavaScript's clocks have fractions, which are cut off.
pub fn time_ms(field: &str, ms: f64) -> Outcome<u64> {
    if !(0.0..=MAX_SAFE).contains(&ms) {
        let message = "must be milliseconds from 0 on, as performance.now() or Date.now() give them";
        return Err(FieldError::new(field, "out_of_range", message).with("min", 0).with("max", MAX_SAFE));
    }
    Ok(ms as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn what_cannot_be_read_is_named() {
        let table = [("", "malformed"), ("{", "malformed"), ("1 2", "malformed"), ("1e999", "out_of_range")];
        for (json, code) in table {
            assert_eq!(read::<Value>(json, 99).unwrap_err().code, code, "{json}");
        }
        assert_eq!(read::<Value>("[1]", 2).unwrap_err().code, "too_large");
        let deep = "[".repeat(100_000);
        assert_eq!(read::<Value>(&deep, 1 << 20).unwrap_err().code, "malformed");
        let error = read::<Vec<u8>>("[1,2,-3]", 99).unwrap_err();
        assert_eq!((error.field.as_str(), error.code.as_str()), ("[2]", "out_of_range"));
        assert_eq!(error.within("list").field, "list[2]");
    }

    #[test]
    fn times() {
        assert_eq!(time_ms("now", 12.9).unwrap(), 12);
        for bad in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(time_ms("now", bad).unwrap_err().code, "out_of_range");
        }
    }
}
