//! Where in a file each character of a text stands that is written there with indents, folds or escapes.

use core::ops::Range;

use super::tree::Style;

/// The places of a text's characters in the file.
#[derive(Debug)]
pub(crate) enum Origin {
    /// The text is a piece of the file that begins here.
    Piece(usize),
    /// Each character's place in the text, and what of the file it is written as.
    Characters(Vec<(usize, Range<usize>)>),
}

impl Origin {
    /// The origin of `text`, which is written as `file[span]`.
    ///
    /// Blanks are folded, dropped and added by YAML's rules for each style. Everything else comes in the same
    /// order in both, which is all that is used here: a blank may be placed beside where it stands, the rest
    /// never is.
    pub(crate) fn new(text: &str, file: &str, span: &Range<usize>, style: Style) -> Self {
        let written = file.get(span.clone()).unwrap_or_default();
        if written == text {
            return Self::Piece(span.start);
        }
        let quote = match style {
            Style::Escaped => Some('"'),
            Style::Quoted => Some('\''),
            Style::Plain | Style::Block => None,
        };
        let mut units = units(written, quote);
        let mut next = units.next();
        let mut characters = Vec::new();
        let mut last = 0..0;
        for (at, char) in text.char_indices() {
            if is_blank(char) {
                if let Some(unit) = &next {
                    last = unit.span.clone();
                    if unit.char == char {
                        next = units.next();
                    }
                }
            } else {
                while next.as_ref().is_some_and(|unit| is_blank(unit.char)) {
                    next = units.next();
                }
                if let Some(unit) = next {
                    last = unit.span;
                }
                next = units.next();
            }
            characters.push((at, span.start + last.start..span.start + last.end));
        }
        Self::Characters(characters)
    }

    /// What of the file `part` of the text is written as.
    pub(crate) fn span(&self, part: &Range<usize>) -> Range<usize> {
        match self {
            Self::Piece(start) => start + part.start..start + part.end,
            Self::Characters(characters) => {
                let place = |at: usize| {
                    let index = characters.partition_point(|(start, _)| *start <= at).saturating_sub(1);
                    characters.get(index).map_or(0..0, |(_, span)| span.clone())
                };
                let start = place(part.start).start;
                let end = if part.is_empty() { start } else { place(part.end - 1).end };
                start..end.max(start)
            }
        }
    }
}

/// A character and what it is written as.
struct Unit {
    char: char,
    span: Range<usize>,
}

const fn is_blank(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\n' | '\r')
}

/// The characters that are written here, without the quotes around them.
fn units(written: &str, quote: Option<char>) -> impl Iterator<Item = Unit> {
    let mut at = quote.map_or(0, char::len_utf8);
    core::iter::from_fn(move || {
        loop {
            let rest = written.get(at..)?;
            let (char, length) = match (quote, rest.chars().next()?) {
                (Some('\''), '\'') => (Some('\''), if rest.starts_with("''") { 2 } else { 1 }),
                (Some('"'), '\\') => escape(rest),
                (_, char) => (Some(char), char.len_utf8()),
            };
            let start = at;
            at += length;
            if let Some(char) = char {
                return Some(Unit { char, span: start..at });
            }
        }
    })
}

/// The character of the escape that `rest` begins with, as far as it matters here, and its length in bytes.
fn escape(rest: &str) -> (Option<char>, usize) {
    let Some(escaped) = rest.chars().nth(1) else { return (Some('\\'), 1) };
    let digits = match escaped {
        'x' => 2,
        'u' => 4,
        'U' => 8,
        'n' => return (Some('\n'), 2),
        'r' => return (Some('\r'), 2),
        't' => return (Some('\t'), 2),
        // The end of a line that goes on in the next.
        '\n' | '\r' => return (None, 2),
        other => return (Some(other), 1 + other.len_utf8()),
    };
    let number = |rest: &str| rest.get(2..2 + digits).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let pair = rest.get(6..).filter(|next| digits == 4 && next.starts_with("\\u")).and_then(number);
    match (number(rest), pair) {
        // Two halves of one character, as in JSON.
        (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => (Some(char::REPLACEMENT_CHARACTER), 12),
        (number, _) => {
            let char = number.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
            (Some(char), (2 + digits).min(rest.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::yaml;
    use super::*;

    /// Every character but blanks stands where the origin says, also in the forms that YAML has for them.
    fn assert_placed(file: &str, escapes: &[(&str, &str)]) {
        let tree = yaml::read(file).unwrap();
        let value = tree.get(tree.roots[0], "v").unwrap();
        let scalar = tree.scalar(value).unwrap();
        let origin = Origin::new(&scalar.text, file, &tree.span(value), scalar.style);
        for (at, char) in scalar.text.char_indices().filter(|(_, char)| !is_blank(*char)) {
            let text = char.to_string();
            let span = origin.span(&(at..at + text.len()));
            let written = &file[span];
            let matches = escapes.contains(&(written, text.as_str()));
            assert!(written == text || matches, "{written:?} is not {char:?} at {at} in {:?}", scalar.text);
        }
    }

    #[test]
    fn each_style_of_yaml_is_followed_to_its_characters() {
        for file in [
            "v: |\n    {\n      \"a\":\n\n        \"b  c\"\n    }\n",
            "v: |\n\n\n  x\n   y\nw: 1",
            "v: |2-\n    \"a\"\n  b",
            "v: >-\n  {\"a\": 1,\n   \"b\":\n\n\n   2}\n\n  c\n",
            "v: {\"é\": 1}\n".replace("{\"é\": 1}", "plain\n  é text\n\n  more").as_str(),
            "v: |\r\n  a\r\n    b\r\n",
            "v: |+\n  'a''b'\n\n\n",
            "v: |\n  'a\n  b'\n",
        ] {
            assert_placed(file, &[]);
        }
        assert_placed("v: 'it''s {\"a\":\n\n    1}   \n  end'\n", &[("''", "'")]);
        let escapes = [
            ("\\\"", "\""),
            ("\\\\", "\\"),
            ("\\u0041", "A"),
            ("\\x42", "B"),
            ("\\U0001f600", "😀"),
            ("\\/", "/"),
            ("\\e", "\u{1b}"),
            ("\\ud83d\\ude00", "😀"),
        ];
        for file in [
            r#"v: "{\n\"a\\b\": \u0041\x42\U0001f600\/\e c}""#,
            "v: \"a \\\n    \\ b\\t  \n\n   c\\n\n  \\\"d\"",
        ] {
            assert_placed(file, &escapes);
        }
    }

    #[test]
    fn a_pair_of_escapes_for_one_character_is_one() {
        let origin = Origin::new("😀x", r#""\ud83d\ude00x""#, &(0..15), Style::Escaped);
        assert_eq!((origin.span(&(0..4)), origin.span(&(4..5))), (1..13, 13..14));
    }
}
