//! Regular expressions, of which the whole text must be one.

use core::fmt;
use std::borrow::Cow;

use regex_lite::{Regex, RegexBuilder};

use super::Values;

/// A regular expression that takes time linear in the text; the syntax is that of the crate `regex-lite`.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    /// What every text that fits contains; empty where nothing is known.
    required: Vec<u8>,
    regex: Regex,
}

/// The most bytes of an expression.
pub const MAX_PATTERN_BYTES: usize = 256;

/// The most bytes that an expression takes once compiled: `\d{1000}{1000}` is short too.
const MAX_COMPILED_BYTES: usize = 1 << 15;

/// The longest text that is tried. The time that an expression takes grows with both, and a client may send tens of
/// kilobytes.
pub const MAX_TEXT_BYTES: usize = 2048;

/// Why a text is no regular expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError(
    /// What is wrong, in the words of the library.
    pub String,
);

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for PatternError {}

impl Pattern {
    /// Whether a whole text fits. Bytes that are no UTF-8 are taken for a character of their own. A text of more than
    /// [`MAX_TEXT_BYTES`] is not tried: in doubt a limit applies.
    pub fn holds(&self, text: &[u8], values: Values) -> bool {
        if text.len() > MAX_TEXT_BYTES {
            return values == Values::Any;
        }
        let length = self.required.len();
        if length > 0 && !text.windows(length).any(|part| part == self.required) {
            return false;
        }
        match String::from_utf8_lossy(text) {
            Cow::Borrowed(text) => self.regex.is_match(text),
            Cow::Owned(text) => self.regex.is_match(&text),
        }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl core::str::FromStr for Pattern {
    type Err = PatternError;

    /// Compiles an expression of at most [`MAX_PATTERN_BYTES`].
    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text.len() > MAX_PATTERN_BYTES {
            return Err(PatternError(format!("longer than {MAX_PATTERN_BYTES} bytes")));
        }
        let compiled = |text: &str| {
            let regex = RegexBuilder::new(text).size_limit(MAX_COMPILED_BYTES).build();
            regex.map_err(|error| PatternError(error.to_string()))
        };
        // By itself first: `a)|(b` must not become valid by what is put around it.
        compiled(text)?;
        let required = super::literal::required(text).unwrap_or_default().into_bytes();
        Ok(Self { text: text.to_owned(), required, regex: compiled(&format!("^(?:{text})$"))? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(pattern: &str, text: &str) -> bool {
        pattern.parse::<Pattern>().unwrap().holds(text.as_bytes(), Values::All)
    }

    #[test]
    fn the_whole_text_must_fit() {
        assert!(holds("/v[0-9]+/orders", "/v2/orders"));
        assert!(!holds("/v[0-9]+/orders", "/v2/orders/7"));
        assert!(!holds("/v[0-9]+/orders", "/x/v2/orders"));
        assert!(holds("/a|/b", "/b"));
        assert!(!holds("/a|/b", "/bc"));
        assert!(!holds("/a", "/a\n"));
        assert!(!holds("(?m)/a", "/a\n/b"));
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for text in ["(", "a)|(b", "[", "*", "\\d{1000}{1000}{1000}", &"a".repeat(257), "(?x)a # b"] {
            assert!(text.parse::<Pattern>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_text_that_is_too_long_to_be_tried_is_limited_and_not_excepted() {
        let pattern: Pattern = "/a+".parse().unwrap();
        let long = [b"/", vec![b'b'; MAX_TEXT_BYTES].as_slice()].concat();
        assert!(pattern.holds(&long, Values::Any));
        assert!(!pattern.holds(&long, Values::All));
        assert!(!pattern.holds(&long[..MAX_TEXT_BYTES], Values::Any));
    }

    #[test]
    fn bytes_that_are_no_text_do_no_harm() {
        assert!("/.*".parse::<Pattern>().unwrap().holds(b"/\xff\xfe", Values::All));
    }
}
