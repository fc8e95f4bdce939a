//! The lines of a file, as people and editors count them.

use core::ops::Range;

/// Where lines begin.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

/// A place in a file, from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let behind = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { text, starts: core::iter::once(0).chain(behind).collect() }
    }

    /// The line in which this byte is: its number, its text without its end, and where it begins.
    pub(crate) fn line(&self, at: usize) -> (usize, &'a str, usize) {
        let number = self.starts.partition_point(|start| *start <= at).max(1);
        let start = self.starts.get(number - 1).copied().unwrap_or_default();
        let end = self.starts.get(number).copied().unwrap_or(self.text.len());
        let line = self.text.get(start..end).unwrap_or_default();
        (number, line.trim_end_matches(['\n', '\r']), start)
    }

    pub(crate) fn position(&self, at: usize) -> Position {
        let (line, _, start) = self.line(at);
        let before = self.text.get(start..at).unwrap_or_default();
        Position { line, column: before.chars().count() + 1 }
    }
}

/// The character in which this byte is.
pub(crate) fn sign(text: &str, at: usize) -> Range<usize> {
    let start = (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let length = text.get(start..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    start..start + length
}

/// The last sign before this byte that is no blank.
pub(crate) fn last_sign(text: &str, at: usize) -> Range<usize> {
    let before = text.get(..at).unwrap_or(text).trim_end();
    let length = before.chars().next_back().map_or(0, char::len_utf8);
    before.len() - length..before.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_begin_with_1_and_columns_are_characters() {
        let lines = Lines::new("é x\r\n\nb");
        assert_eq!(lines.position(0), Position { line: 1, column: 1 });
        assert_eq!(lines.position(3), Position { line: 1, column: 3 });
        assert_eq!(lines.line(3), (1, "é x", 0));
        assert_eq!(lines.line(6), (2, "", 6));
        assert_eq!(lines.position(8), Position { line: 3, column: 2 });
        assert_eq!(Lines::new("").position(0), Position { line: 1, column: 1 });
    }
}
