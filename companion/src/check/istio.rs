//! YAML to JSON as Istio and Envoy Gateway do it: by the rules of Go's YAML, which are those of YAML 1.1.

use super::tree::{Id, Kind, Scalar, Style, Tree};

/// Deeper than the filter reads: what lies below is left out, and the whole is refused for its depth.
const MAX_DEPTH: usize = 200;

/// The value as JSON. It ends early, and is no JSON, where it has more than `most` bytes.
pub(crate) fn to_json(tree: &Tree, id: Id, most: usize) -> String {
    let mut json = String::new();
    write(tree, id, most, MAX_DEPTH, &mut json);
    json
}

fn write(tree: &Tree, id: Id, most: usize, depth: usize, json: &mut String) {
    if json.len() > most {
        return;
    }
    match tree.node(id).map(|node| &node.kind) {
        Some(Kind::Scalar(scalar)) => json.push_str(&value(scalar)),
        Some(Kind::List(items)) if depth > 0 => {
            json.push('[');
            for (index, item) in items.iter().enumerate() {
                json.push_str(if index > 0 { "," } else { "" });
                write(tree, *item, most, depth - 1, json);
            }
            json.push(']');
        }
        Some(Kind::Object(entries)) if depth > 0 => {
            json.push('{');
            for (index, entry) in entries.iter().enumerate() {
                json.push_str(if index > 0 { "," } else { "" });
                json.push_str(&quoted(tree.text(entry.key).unwrap_or_default()));
                json.push(':');
                write(tree, entry.value, most, depth - 1, json);
            }
            json.push('}');
        }
        _ => json.push_str("null"),
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn value(scalar: &Scalar) -> String {
    let text = scalar.text.as_str();
    let bare = || match text {
        "" | "~" | "null" | "Null" | "NULL" => Some("null".to_owned()),
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "y" | "Y" | "on" | "On" | "ON" => {
            Some("true".to_owned())
        }
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "n" | "N" | "off" | "Off" | "OFF" => {
            Some("false".to_owned())
        }
        _ => number(text),
    };
    if scalar.style == Style::Plain { bare() } else { None }.unwrap_or_else(|| quoted(text))
}

/// The number that a bare scalar is, if it is one.
fn number(text: &str) -> Option<String> {
    if !text.starts_with(|char: char| char.is_ascii_digit() || matches!(char, '+' | '-' | '.')) {
        return None;
    }
    let plain = text.replace('_', "");
    let (sign, digits) = match plain.strip_prefix(['+', '-']) {
        Some(digits) => (if plain.starts_with('-') { "-" } else { "" }, digits),
        None => ("", plain.as_str()),
    };
    let (radix, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, digits.get(2..)?),
        Some("0o" | "0O") => (8, digits.get(2..)?),
        Some("0b" | "0B") => (2, digits.get(2..)?),
        Some(start) if start.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            (8, digits)
        }
        _ => (10, digits),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    if let Ok(whole) = u64::from_str_radix(digits, radix) {
        return Some(format!("{sign}{whole}"));
    }
    let is_float =
        digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    let float: f64 = plain.parse().ok().filter(|_| is_float)?;
    serde_json::Number::from_f64(float).map(|number| number.to_string())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::super::yaml;
    use super::*;

    fn json(text: &str) -> String {
        let tree = yaml::read(text).unwrap();
        to_json(&tree, tree.roots[0], 1000)
    }

    #[test]
    fn scalars_are_what_go_takes_them_for() {
        for (text, value) in [
            ("~", "null"),
            ("", "null"),
            ("yes", "true"),
            ("off", "false"),
            ("'on'", "\"on\""),
            ("5", "5"),
            ("+5", "5"),
            ("-5", "-5"),
            ("010", "8"),
            ("0x1F", "31"),
            ("1_000", "1000"),
            ("09", "9.0"),
            ("1.5", "1.5"),
            (".5", "0.5"),
            ("1e3", "1000.0"),
            ("1e999", "\"1e999\""),
            ("100/m", "\"100/m\""),
            ("50ms", "\"50ms\""),
            (".inf", "\".inf\""),
            ("--5", "\"--5\""),
            ("!!str 5", "\"5\""),
            ("\"5\"", "\"5\""),
            ("inf", "\"inf\""),
            ("-", "[null]"),
            ("|\n  5", "\"5\\n\""),
        ] {
            let item = json(&format!("- {text}"));
            let expected = if value == "[null]" { "[[null]]".to_owned() } else { format!("[{value}]") };
            assert_eq!(item, expected, "{text}");
        }
    }

    #[test]
    fn keys_are_texts_and_come_as_often_as_they_are_written() {
        assert_eq!(json("a: 1\na: {1: [x, {}]}\n"), r#"{"a":1,"a":{"1":["x",{}]}}"#);
    }

    #[test]
    fn what_is_huge_by_aliases_ends_early() {
        let mut doubled = "a0: &a0 x\n".to_owned();
        for level in 1..60 {
            writeln!(doubled, "a{level}: &a{level} [*a{0}, *a{0}]", level - 1).unwrap();
        }
        let tree = yaml::read(&doubled).unwrap();
        assert!(to_json(&tree, tree.roots[0], 1000).len() < 5000);
    }
}
