//! What would have been right where a text is no policy.

use std::fmt;

/// What a reader of policies wanted to see. English by [`fmt::Display`]; other languages go by [`Expected::code`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The name of a policy, where there is nothing that could be one.
    Name,
    /// A name that is known.
    KnownName,
    /// A value.
    Value,
    /// Nothing more.
    End,
    /// `,` or `)`.
    CommaOrEnd,
    /// The quote that ends a value.
    Quote,
    /// A shorter text.
    Bytes(usize),
    /// A duration.
    Duration,
    /// Milliseconds.
    Millis,
    /// An interval that is not zero.
    AboveZero,
    /// An idle timeout that is not below the interval, which is written here.
    IdleTimeout(String),
    /// An address of a page.
    Url,
    /// A number between two others, both possible.
    Number(u32, u32),
    /// The number of a member.
    Member,
    /// One of these words.
    Words(&'static [&'static str]),
    /// An option that the policy of this name has, written once.
    OptionOf(String),
    /// No further value without a key for the policy of this name.
    NoValue(String),
}

impl Expected {
    /// Stable; the page translates by it.
    pub const fn code(&self) -> &'static str {
        match self {
            Expected::Name => "name",
            Expected::KnownName => "known_name",
            Expected::Value => "value",
            Expected::End => "end",
            Expected::CommaOrEnd => "comma",
            Expected::Quote => "quote",
            Expected::Bytes(_) => "bytes",
            Expected::Duration => "duration",
            Expected::Millis => "millis",
            Expected::AboveZero => "above_zero",
            Expected::IdleTimeout(_) => "idle_timeout",
            Expected::Url => "url",
            Expected::Number(..) => "number",
            Expected::Member => "member",
            Expected::Words(_) => "words",
            Expected::OptionOf(_) => "option",
            Expected::NoValue(_) => "no_value",
        }
    }

    /// The value that belongs to the code, the same in every language; empty if there is none.
    pub fn detail(&self) -> String {
        match self {
            Expected::Bytes(max) => max.to_string(),
            Expected::IdleTimeout(text) | Expected::OptionOf(text) | Expected::NoValue(text) => text.clone(),
            Expected::Number(min, max) => format!("{min}–{max}"),
            Expected::Words(words) => words.join(" / "),
            _ => String::new(),
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Expected::Name => "a strategy's name",
            Expected::KnownName => {
                "one of fifo, round, rand, hash, parallel, lowestlatency, best, selector, urltest, fixed, min, \
                 min_avg10, min_moving_avg, fixed_fallback"
            }
            Expected::Value => "a value",
            Expected::End => "the end of the text",
            Expected::CommaOrEnd => "`,` or `)`",
            Expected::Quote => "`\"` at the end of the quoted value",
            Expected::Bytes(max) => return write!(f, "at most {max} bytes"),
            Expected::Duration => "a duration of at most 30 days such as 500ms, 3s, 2m or 1h",
            Expected::Millis => "milliseconds such as 50 or 50ms, at most 30 days",
            Expected::AboveZero => "an interval above 0",
            Expected::IdleTimeout(interval) => {
                return write!(f, "an idle timeout not below the interval of {interval}");
            }
            Expected::Url => "a URL that starts with http:// or https://",
            Expected::Number(min, max) => return write!(f, "a number from {min} to {max}"),
            Expected::Member => "the member's number (0 = the first)",
            Expected::Words(words) => return write!(f, "one of {}", words.join(", ")),
            Expected::OptionOf(name) => return write!(f, "an option that `{name}` has, once"),
            Expected::NoValue(name) => {
                return write!(f, "no further value for `{name}`; options are written key=value");
            }
        })
    }
}
