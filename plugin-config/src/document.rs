//! From the bytes to a tree, or to the one error that keeps them from being one.

use crate::error::{Error, Problem, Remedy};
use crate::node::Node;
use crate::place::Path;
use crate::report::Errors;

/// The most bytes of a configuration.
pub const MAX_BYTES: usize = 1 << 20;

/// UTF-8, UTF-16 with the high byte last, and first.
const BYTE_ORDER_MARKS: [&[u8]; 3] = [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"];

/// The quotes that word processors and chats make of straight ones.
const TYPESET_QUOTES: [&str; 7] =
    ["\u{201c}", "\u{201d}", "\u{201e}", "\u{2018}", "\u{2019}", "\u{ab}", "\u{bb}"];

/// Reads the bytes as JSON.
pub(crate) fn read(bytes: &[u8]) -> Result<Node, Errors> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        // Istio's empty `pluginConfig` arrives like this.
        let remedy = "write an object with \"policies\"; in Istio, under \"pluginConfig\"";
        return Err(error(None, Problem::Blank, Remedy::Do(remedy)).into());
    }
    if bytes.len() > MAX_BYTES {
        let value = format!("{} bytes", bytes.len());
        return Err(error(Some(value), Problem::TooMany, Remedy::AtMost(MAX_BYTES as u64)).into());
    }
    if BYTE_ORDER_MARKS.iter().any(|mark| bytes.starts_with(mark)) {
        let remedy = Remedy::Do("save it as UTF-8 without a byte order mark");
        return Err(error(None, Problem::ByteOrderMark, remedy).into());
    }
    serde_json::from_slice(bytes)
        .map_err(|cause| Errors::from(if is_message(bytes) { message() } else { not_json(&cause, bytes) }))
}

/// True for bytes that are no JSON and look like a protobuf message: Envoy hands over any other message than a
/// string as its bytes. The first byte of a `Struct` is JSON's line feed; what follows its first key is 0x12.
fn is_message(bytes: &[u8]) -> bool {
    match bytes.first() {
        Some(b'\n') => bytes.contains(&0x12),
        Some(first) => *first < b' ' && !first.is_ascii_whitespace(),
        None => false,
    }
}

fn message() -> Error {
    error(None, Problem::Message, Remedy::Do("in Envoy, give it as a google.protobuf.StringValue"))
}

fn error(value: Option<String>, problem: Problem, remedy: Remedy) -> Error {
    Error { path: Path::default(), value, problem, remedy }
}

fn not_json(cause: &serde_json::Error, bytes: &[u8]) -> Error {
    let (line, column) = (cause.line(), cause.column());
    let mut reason = cause.to_string();
    // The place is told in the house's words.
    if let Some(at) = reason.rfind(" at line ") {
        reason.truncate(at);
    }
    let from = from(bytes, line, column);
    // The kinds of syntax errors are told apart by their text only.
    let remedy = if cause.is_eof() {
        "close every string, list and object"
    } else if reason.starts_with("number out of range") {
        "use a smaller number"
    } else if reason.starts_with("recursion limit") {
        "nest fewer lists and objects"
    } else if reason.starts_with("trailing characters") {
        "remove what follows the object"
    } else if reason.starts_with("trailing comma") {
        "remove the comma before it"
    } else if reason.starts_with("invalid escape") {
        "write a backslash twice, as in \"\\\\d\""
    } else if begins_a_comment(from) {
        "remove the comment; JSON has none"
    } else if from.starts_with(b"'") || TYPESET_QUOTES.iter().any(|quote| from.starts_with(quote.as_bytes()))
    {
        "write straight double quotes, as in \"name\""
    } else if reason.starts_with("key must be a string") {
        "put keys in straight double quotes"
    } else {
        "look for a comma, quote or bracket too many or too few"
    };
    error(None, Problem::NotJson { line, column, reason }, Remedy::Do(remedy))
}

/// The bytes from this place on.
fn from(bytes: &[u8], line: usize, column: usize) -> &[u8] {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let start: usize = lines.take(line.saturating_sub(1)).map(<[u8]>::len).sum();
    bytes.get(start + column.saturating_sub(1)..).unwrap_or_default()
}

fn begins_a_comment(bytes: &[u8]) -> bool {
    [b"//".as_slice(), b"/*", b"#"].iter().any(|sign| bytes.starts_with(sign))
}
