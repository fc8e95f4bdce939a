//! Parameters of a query, as forms write them (WHATWG URL, section 5.1).

use super::values::Told;

/// What a request target's query says under a name, which is given decoded. One spelling for every way to write the same
/// value: percent-encoding is decoded, and a plus is a blank.
pub(super) fn value(target: &[u8], name: &str) -> Told {
    let end = target.iter().position(|byte| *byte == b'#').unwrap_or(target.len());
    let target = target.get(..end).unwrap_or(target);
    let Some(start) = target.iter().position(|byte| *byte == b'?') else { return Told::Absent };
    let pairs = target.get(start + 1..).unwrap_or_default().split(|byte| *byte == b'&');
    Told::of(pairs.filter_map(|pair| {
        let equals = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        let (key, value) = pair.split_at_checked(equals)?;
        (decoded(key) == name.as_bytes()).then(|| decoded(value.get(1..).unwrap_or_default()))
    }))
}

fn decoded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        let escape = tail.split_at_checked(2).filter(|_| byte == b'%');
        match escape.and_then(|(digits, after)| Some((crate::path::escaped_byte(digits)?, after))) {
            Some((value, after)) => {
                out.push(value);
                rest = after;
            }
            None => out.push(if byte == b'+' { b' ' } else { byte }),
        }
    }
    out
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
    fn different_values_are_ambiguous() {
        for target in ["/?k+y=1&k+y=2", "/?k+y=1&k+y=", "/?k+y=&k+y=1"] {
            assert_eq!(told(target), Told::Ambiguous, "{target:?}");
        }
    }
}
