//! The syntax in which policies are written: `name`, or `name(value, key=value, …)`.

use super::expected::Expected;
use std::fmt;

/// Longer texts are refused: no policy needs it, and the text comes from outside.
const MAX_BYTES: usize = 2000;

/// Why a text is no policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Where, in characters from the start (0 = the first).
    pub at: usize,
    /// What would have been right there.
    pub expected: Expected,
    /// What is there instead; empty at the end of the text.
    pub found: String,
    /// The option beside the text that is meant, if it is one; the place says nothing then.
    pub option: Option<String>,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.option.is_none() {
            write!(f, "at character {}: ", self.at + 1)?;
        }
        write!(f, "expected {}, ", self.expected)?;
        if self.found.is_empty() {
            f.write_str("but the text ends")
        } else {
            write!(f, "found `{}`", self.found)
        }
    }
}

impl std::error::Error for ParseError {}

/// A word with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) at: usize,
    pub(super) text: String,
    /// The option that it belongs to, if it stands beside the text.
    pub(super) option: Option<String>,
}

impl Word {
    pub(super) fn expected(&self, expected: Expected) -> ParseError {
        ParseError { at: self.at, expected, found: self.text.clone(), option: self.option.clone() }
    }
}

/// One argument of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Argument {
    pub(super) key: Option<Word>,
    pub(super) value: Word,
}

impl Argument {
    /// An option that is written beside the text.
    pub(super) fn beside(name: &str, value: &str) -> Self {
        let mut key = String::with_capacity(name.len() + 4);
        for c in name.chars() {
            if c.is_ascii_uppercase() {
                key.push('_');
            }
            key.push(c.to_ascii_lowercase());
        }
        let word = |text: &str| Word { at: 0, text: text.to_owned(), option: Some(name.to_owned()) };
        Self { key: Some(word(&key)), value: word(value) }
    }
}

/// `name(arguments)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) name: Word,
    pub(super) arguments: Vec<Argument>,
}

/// Reads one call and nothing after it.
pub(super) fn call(text: &str) -> Result<Call, ParseError> {
    if text.len() > MAX_BYTES {
        let expected = Expected::Bytes(MAX_BYTES);
        return Err(ParseError { at: 0, expected, found: format!("{} bytes", text.len()), option: None });
    }
    let mut reader = Reader { chars: text.chars().collect(), at: 0 };
    let call = reader.call()?;
    match reader.peek() {
        None => Ok(call),
        Some(_) => Err(reader.wrong(Expected::End)),
    }
}

struct Reader {
    chars: Vec<char>,
    at: usize,
}

impl Reader {
    fn call(&mut self) -> Result<Call, ParseError> {
        let name = self.bare(Expected::Name)?;
        let mut arguments = Vec::new();
        if self.peek() == Some('(') {
            self.at += 1;
            if self.peek() == Some(')') {
                self.at += 1;
                return Ok(Call { name, arguments });
            }
            loop {
                arguments.push(self.argument()?);
                match self.peek() {
                    Some(',') => self.at += 1,
                    Some(')') => break self.at += 1,
                    _ => return Err(self.wrong(Expected::CommaOrEnd)),
                }
            }
        }
        Ok(Call { name, arguments })
    }

    fn argument(&mut self) -> Result<Argument, ParseError> {
        let first = self.value()?;
        if self.peek() != Some('=') {
            return Ok(Argument { key: None, value: first });
        }
        self.at += 1;
        Ok(Argument { key: Some(first), value: self.value()? })
    }

    fn value(&mut self) -> Result<Word, ParseError> {
        if self.peek() != Some('"') {
            return self.bare(Expected::Value);
        }
        let at = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.chars.get(self.at) {
                Some('"') => break self.at += 1,
                Some('\\') if matches!(self.chars.get(self.at + 1), Some('"' | '\\')) => {
                    text.push(self.chars[self.at + 1]);
                    self.at += 2;
                }
                Some(c) => {
                    text.push(*c);
                    self.at += 1;
                }
                None => return Err(self.wrong(Expected::Quote)),
            }
        }
        Ok(Word { at, text, option: None })
    }

    fn bare(&mut self, what: Expected) -> Result<Word, ParseError> {
        self.peek();
        let at = self.at;
        let ends = |c: &char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | '=' | '"');
        let text: String = self.chars[at..].iter().take_while(|c| !ends(c)).collect();
        if text.is_empty() {
            return Err(self.wrong(what));
        }
        self.at += text.chars().count();
        Ok(Word { at, text, option: None })
    }

    /// The next character that is no space.
    fn peek(&mut self) -> Option<char> {
        while self.chars.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
        self.chars.get(self.at).copied()
    }

    fn wrong(&mut self, expected: Expected) -> ParseError {
        let found = self.peek().map(String::from).unwrap_or_default();
        ParseError { at: self.at, expected, found, option: None }
    }
}

/// A value as it is to be written: quoted where a bare one would be read otherwise.
pub(super) fn quoted(text: &str) -> String {
    let bare = |c: char| !c.is_whitespace() && !matches!(c, '(' | ')' | ',' | '=' | '"' | '\\');
    if !text.is_empty() && text.chars().all(bare) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
