//! Texts in blocks of YAML that end before they are complete, because a line is indented less.

use core::fmt;
use core::ops::Range;

use serde::de::IgnoredAny;

use super::lines::Lines;

/// A text in a block of lines.
#[derive(Debug)]
pub(crate) struct Block {
    /// The key under which it stands.
    pub(crate) key: Option<String>,
    pub(crate) text: String,
    /// Where, in bytes of the file.
    pub(crate) span: Range<usize>,
}

/// A configuration whose block ended early.
#[derive(Debug)]
pub(crate) struct Ended {
    key: String,
    /// The first line of its text.
    first: usize,
    /// The line that is not its own any more.
    next: usize,
}

impl Ended {
    /// What is to be said of the last block before an error at the byte `at`. Certain it is only of an object in
    /// JSON: one that has no end goes on in what comes behind, and one that begins there is what the block lacks.
    pub(crate) fn new(file: &str, block: &Block, at: usize) -> Option<Self> {
        let lines = Lines::new(file);
        let own = file.get(block.span.clone())?;
        let behind = file.get(block.span.end..)?;
        let says_something = |line: &&str| !matches!(line.trim().as_bytes().first(), None | Some(b'#'));
        let line = behind.split_inclusive('\n').find(says_something)?;
        let next = block.span.end + (line.as_ptr().addr() - behind.as_ptr().addr());
        let text = block.text.trim();
        let (is_open, first) = if text.is_empty() {
            (line.trim().starts_with('{'), next)
        } else {
            (is_unfinished(text), block.span.start + (own.len() - own.trim_start().len()))
        };
        if !is_open || at < next {
            return None;
        }
        Some(Self { key: block.key.clone()?, first: lines.line(first).0, next: lines.line(next).0 })
    }
}

/// Whether a text is the beginning of an object, and nothing but its end is missing.
fn is_unfinished(text: &str) -> bool {
    text.starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_err_and(|error| error.is_eof())
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, first, next } = self;
        if first == next {
            return write!(
                f,
                "indent line {next} and those behind it more than {key:?}, of whose text they are"
            );
        }
        write!(
            f,
            "indent line {next} like line {first}: the text under {key:?} that begins there ends where a line is \
             indented less"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::yaml;

    fn told(text: &str) -> Option<String> {
        yaml::read(text).unwrap_err().ended.map(|ended| ended.to_string())
    }

    #[test]
    fn an_object_that_goes_on_further_left_is_told_with_both_lines() {
        let remedy = "indent line 5 like line 2: the text under \"value\" that begins there ends where a line is \
                      indented less";
        assert_eq!(
            told("value: |\n    {\n      \"a\": [\n\n  { }\n    ]\n    }\nb: 1\n").as_deref(),
            Some(remedy)
        );
        assert_eq!(told("value: >-\n    {\n     \"a\":\n\n \"b\": 1\n    }\n").as_deref(), Some(remedy));
    }

    #[test]
    fn a_text_that_is_not_indented_at_all_is_told_with_its_first_line() {
        let remedy = "indent line 3 and those behind it more than \"value\", of whose text they are";
        assert_eq!(told("a:\n  value: |\n  {\n  }\n").as_deref(), Some(remedy));
    }

    #[test]
    fn of_what_may_be_complete_nothing_is_told() {
        for text in [
            // Complete, and something else is wrong behind it.
            "value: |\n  {}\nb: [\n",
            "value: |\n  {}\n- c\n",
            // No object, and no beginning of one.
            "value: |\n  words [\n }\n",
            "value: |\n  {\"a\": b\n }\n",
            "value: |\n}\n",
            // Before the block.
            "a: ]\nvalue: |\n  {\n",
        ] {
            assert_eq!(told(text), None, "{text}");
        }
    }
}
