//! Parameters of a query, as forms write them (WHATWG URL, section 5.1).

use super::told::Told;
use crate::path::unescaped;

/// What a request target's query says under a name, which is given decoded. One spelling for every way to write the same
/// value: percent-encoding is decoded, and a plus is a blank.
pub(super) fn value(target: &[u8], name: &str) -> Told {
    let end = target.iter().position(|byte| *byte == b'#').unwrap_or(target.len());
    let target = target.get(..end).unwrap_or(target);
    let Some(start) = target.iter().position(|byte| *byte == b'?') else { return Told::Absent };
    let query = target.get(start + 1..).unwrap_or_default();
    let by_ampersand = query.split(|byte| *byte == b'&').filter_map(|pair| value_of(pair, name));
    if !query.contains(&b';') {
        return Told::of(by_ampersand);
    }
    // Some servers part pairs by semicolons, too: only where both readings say the same there is one.
    let by_either = query.split(|byte| matches!(byte, b'&' | b';')).filter_map(|pair| value_of(pair, name));
    Told::of(by_ampersand.chain(by_either))
}

fn value_of(pair: &[u8], name: &str) -> Option<Vec<u8>> {
    let equals = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
    let (key, value) = pair.split_at_checked(equals)?;
    (decoded(key) == name.as_bytes()).then(|| decoded(value.get(1..).unwrap_or_default()))
}

fn decoded(text: &[u8]) -> Vec<u8> {
    let blanks = |byte: &u8| if *byte == b'+' { b' ' } else { *byte };
    unescaped(&text.iter().map(blanks).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(target: &str) -> Told {
        value(target.as_bytes(), "k y")
    }

    #[test]
    fn every_spelling_of_a_parameter_is_one_value() {
        for target in [
            "/?k+y=a%20b",
            "/?k%20y=a+b",
            "/?x=1&k+y=a+b&y=2",
            "/?%6b+y=%61+b#k+y=c",
            "/?k+y=a+b&k+y=a%20b",
            "/?&&k+y=a+b&",
        ] {
            assert_eq!(told(target), Told::Value(b"a b".to_vec()), "{target:?}");
        }
    }

    #[test]
    fn what_is_not_there_or_empty_is_absent() {
        for target in ["/", "/?", "/?ky=1", "/?k+y", "/?k+y=", "/#?k+y=1", "/?K+y=1"] {
            assert_eq!(told(target), Told::Absent, "{target:?}");
        }
    }

    #[test]
    fn a_semicolon_hides_nothing() {
        assert_eq!(told("/?x=1;k+y=2"), Told::Value(b"2".to_vec()));
        assert_eq!(told("/?x=1;y=2&k+y=3"), Told::Value(b"3".to_vec()));
    }

    #[test]
    fn different_values_are_ambiguous() {
        for target in ["/?k+y=1&k+y=2", "/?k+y=1&k+y=", "/?k+y=&k+y=1", "/?k+y=1;2", "/?k+y=1;k+y=2"] {
            assert_eq!(told(target), Told::Ambiguous, "{target:?}");
        }
    }
}
