//! How values of a configuration are shown in errors: as JSON on one line, short and harmless to a
//! terminal or a log, whatever the configuration holds.

use core::fmt::Write as _;

use crate::node::Node;

/// The most characters of a value that an error shows, before the quotes and brackets that close it.
pub const MAX_SHOWN_CHARS: usize = 64;

/// The value, shortened and with control characters escaped.
pub(crate) fn value(node: &Node) -> String {
    let mut shown = Shown::default();
    shown.node(node);
    shown.text
}

/// The text in quotes, shortened and with control characters escaped.
pub(crate) fn text(text: &str) -> String {
    let mut shown = Shown::default();
    shown.quoted(text);
    shown.text
}

#[derive(Default)]
struct Shown {
    text: String,
    chars: usize,
}

impl Shown {
    const fn is_full(&self) -> bool {
        self.chars >= MAX_SHOWN_CHARS
    }

    fn push(&mut self, piece: &str) {
        self.text.push_str(piece);
        self.chars += piece.len();
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::Null => self.push("null"),
            Node::Flag(true) => self.push("true"),
            Node::Flag(false) => self.push("false"),
            Node::Whole(number) => self.push(&number.to_string()),
            Node::Negative(number) => self.push(&number.to_string()),
            Node::Float(number) => self.float(*number),
            Node::Text(text) => self.quoted(text),
            Node::List(items) => {
                self.push("[");
                for (index, item) in items.iter().enumerate() {
                    if !self.next(index) {
                        break;
                    }
                    self.node(item);
                }
                self.push("]");
            }
            Node::Object(entries) => {
                self.push("{");
                for (index, (key, node)) in entries.iter().enumerate() {
                    if !self.next(index) {
                        break;
                    }
                    self.quoted(key);
                    self.push(": ");
                    self.node(node);
                }
                self.push("}");
            }
        }
    }

    /// Puts a comma where one is due; false: nothing more fits, and a mark of it stands instead.
    fn next(&mut self, index: usize) -> bool {
        if index > 0 {
            self.push(", ");
        }
        if self.is_full() {
            self.push("…");
            return false;
        }
        true
    }

    /// A great number is shown with an exponent, so that it is short.
    fn float(&mut self, number: f64) {
        // What JSON is written with is here anyway, and what the standard library formats with is not.
        let text = serde_json::to_string(&number).unwrap_or_default();
        let text = text.replace("e+", "e");
        self.push(text.strip_suffix(".0").unwrap_or(&text));
    }

    fn quoted(&mut self, text: &str) {
        self.push("\"");
        for char in text.chars() {
            if self.is_full() {
                self.push("…");
                break;
            }
            self.chars += 1;
            // `escape_debug` escapes what is invisible or turns the direction of writing, too.
            if char == '\'' {
                self.text.push(char);
            } else if write!(self.text, "{}", char.escape_debug()).is_err() {
                break;
            }
        }
        self.push("\"");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    fn shown(json: &str) -> String {
        value(&serde_json::from_str(json).unwrap())
    }

    #[test]
    fn a_short_value_is_shown_as_it_was_written() {
        let json = r#"{"a": [1, -2, 0.5, "x'\"é", null], "b": {"c": true}, "d": {}, "e": []}"#;
        assert_eq!(shown(json), json);
        assert_eq!(shown("100.0"), "100");
        assert_eq!(shown("1e300"), "1e300");
        assert_eq!(shown("-0.0"), "-0");
    }

    #[test]
    fn a_long_value_is_shortened() {
        let long = format!("\"{}\"", "é".repeat(1000));
        assert_eq!(shown(&long).chars().count(), MAX_SHOWN_CHARS + 2);
        assert!(shown(&long).ends_with("é…\""));
        let list = format!("[{}1]", "1, ".repeat(1000));
        assert!(shown(&list).len() < MAX_SHOWN_CHARS + 10);
        assert!(shown(&list).ends_with("1, …]"));
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        assert!(shown(&deep).len() < 3 * MAX_SHOWN_CHARS);
    }

    #[test]
    fn what_could_disturb_a_terminal_is_escaped() {
        assert_eq!(shown(r#""\u001b[2J\n\u202e\u0000""#), r#""\u{1b}[2J\n\u{202e}\0""#);
    }
}
