//! Reading JSON.
//!
//! `serde_json`'s own parser keeps places for its error messages and tables for exact fractions, several KB of what a first
//! visit loads. The browser has the fractions already, and what is wrong with an answer of the panel concerns nobody on the page.

use serde_json::{Map, Number, Value};

/// Deeper than anything the panel sends; what follows is not read, because it would end at the stack's end.
const DEPTH: usize = 64;

/// The value that a text is, the whole text; `None` = it is no JSON, or too deep.
pub fn parse(text: &str) -> Option<Value> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(DEPTH)?;
    reader.skip_space();
    (reader.at == text.len()).then_some(value)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Option<Value> {
        self.text.as_bytes()[self.at..].starts_with(word.as_bytes()).then(|| {
            self.at += word.len();
            value
        })
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        self.skip_space();
        match self.peek()? {
            b'n' => self.word("null", Value::Null),
            b't' => self.word("true", Value::Bool(true)),
            b'f' => self.word("false", Value::Bool(false)),
            b'"' => self.string().map(Value::String),
            b'[' => {
                let mut items = Vec::new();
                self.items(b']', |reader| {
                    items.push(reader.value(depth)?);
                    Some(())
                })?;
                Some(Value::Array(items))
            }
            b'{' => {
                let mut fields = Map::new();
                self.items(b'}', |reader| {
                    reader.skip_space();
                    let name = reader.string()?;
                    reader.skip_space();
                    (reader.next()? == b':').then_some(())?;
                    fields.insert(name, reader.value(depth)?);
                    Some(())
                })?;
                Some(Value::Object(fields))
            }
            _ => self.number().map(Value::Number),
        }
    }

    /// What stands between brackets, separated by commas.
    fn items(&mut self, end: u8, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.at += 1;
        self.skip_space();
        if self.peek()? == end {
            self.at += 1;
            return Some(());
        }
        loop {
            item(self)?;
            self.skip_space();
            match self.next()? {
                b',' => {}
                byte if byte == end => return Some(()),
                _ => return None,
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        (self.next()? == b'"').then_some(())?;
        let mut said = String::new();
        loop {
            let from = self.at;
            while !matches!(self.peek()?, b'"' | b'\\' | 0..=0x1f) {
                self.at += 1;
            }
            // Cut at ASCII, so between characters.
            said.push_str(self.text.get(from..self.at)?);
            match self.next()? {
                b'"' => return Some(said),
                b'\\' => said.push(self.escaped()?),
                _ => return None,
            }
        }
    }

    fn escaped(&mut self) -> Option<char> {
        Some(match self.next()? {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => {
                let first = self.unit()?;
                if !(0xd800..0xdc00).contains(&first) {
                    return char::from_u32(first);
                }
                let is_pair = self.next()? == b'\\' && self.next()? == b'u';
                let second = self.unit().filter(|second| is_pair && (0xdc00..0xe000).contains(second))?;
                return char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00));
            }
            byte @ (b'"' | b'\\' | b'/') => char::from(byte),
            _ => return None,
        })
    }

    /// Four hexadecimal digits.
    fn unit(&mut self) -> Option<u32> {
        let mut unit = 0;
        for _ in 0..4 {
            unit = unit * 16 + char::from(self.next()?).to_digit(16)?;
        }
        Some(unit)
    }

    fn digits(&mut self) -> Option<()> {
        let from = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > from).then_some(())
    }

    fn number(&mut self) -> Option<Number> {
        let from = self.at;
        if self.peek()? == b'-' {
            self.at += 1;
        }
        let leading_zero = self.peek() == Some(b'0');
        let whole = self.at;
        self.digits()?;
        if leading_zero && self.at > whole + 1 {
            return None;
        }
        let mut is_whole = true;
        if self.peek() == Some(b'.') {
            is_whole = false;
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            is_whole = false;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        let text = &self.text[from..self.at];
        // Zero with a sign is a fraction, as it has one there only.
        if is_whole && text != "-0" {
            if let Ok(number) = text.parse::<u64>() {
                return Some(number.into());
            }
            if let Ok(number) = text.parse::<i64>() {
                return Some(number.into());
            }
        }
        Number::from_f64(fraction(text))
    }
}

#[cfg(target_arch = "wasm32")]
fn fraction(text: &str) -> f64 {
    js_sys::parse_float(text)
}

#[cfg(not(target_arch = "wasm32"))]
fn fraction(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::parse;
    use serde_json::{Value, json};

    /// What the other parser makes of it, down to the last bit of a fraction.
    #[track_caller]
    fn same(text: &str) {
        assert_eq!(parse(text), serde_json::from_str::<Value>(text).ok(), "{text}");
    }

    #[test]
    fn both_parsers_read_the_same() {
        for text in [
            "",
            " ",
            "null",
            " true ",
            "false",
            "nul",
            "nulll",
            "truefalse",
            "[]",
            "[ ]",
            "{}",
            "{ }",
            "[1,2 , 3]",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[1",
            "{\"a\":1}",
            "{\"a\" : {\"b\":[null,true]} , \"c\":\"d\"}",
            "{\"a\":1,}",
            "{a:1}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,\"a\":2}",
            "\"\"",
            "\"x",
            "\"汉字 é 😀\"",
            "\"\\u6c49\\ud83d\\ude00\"",
            "\"\\ud83d\"",
            "\"\\ud83dx\"",
            "\"\\ude00\"",
            "\"\\ud83d\\u0041\"",
            "\"\\u12g4\"",
            "\"\\u12\"",
            "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
            "\"\\x\"",
            "\"\u{1}\"",
            "\"a\nb\"",
            "0",
            "-0",
            "-1",
            "00",
            "01",
            "-",
            "+1",
            "1.",
            ".5",
            "1.5",
            "-0.0",
            "1e3",
            "1E+3",
            "1e-3",
            "1e",
            "1e+",
            "18446744073709551615",
            "18446744073709551616",
            "-9223372036854775808",
            "-9223372036854775809",
            "0.1",
            "123456.789",
            "1e400",
            "5e-324",
            "1 2",
            "[[[[[]]]]]",
            "\"a\" b",
            "\u{feff}1",
        ] {
            same(text);
        }
    }

    #[test]
    fn what_the_panel_sends_is_read_back() {
        let value = json!({ "nodes": [{ "id": 1, "score": 30.6, "loss": 0.125, "name": "a\"b\\c\n", "none": null }] });
        same(&value.to_string());
        same(&format!("{value:#}"));
    }

    #[test]
    fn every_beginning_of_a_text_ends_without_a_panic() {
        let text = r#"{"a":[1.5e-3,"\ud83d\ude00",{"汉":true}],"b":-12}"#;
        for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
            same(&text[..end]);
        }
    }

    #[test]
    fn what_is_too_deep_is_refused() {
        assert!(parse(&format!("{}{}", "[".repeat(60), "]".repeat(60))).is_some());
        assert!(parse(&"[".repeat(100_000)).is_none());
    }
}
