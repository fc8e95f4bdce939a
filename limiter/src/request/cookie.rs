//! Cookies, as browsers send them (RFC 6265, section 4.2).

use super::lines::Lines;
use super::told::Told;
use crate::path::unescaped;

/// What cookies say under a name. Blanks and quotes around a value are not part of it, and percent-encoding is decoded: most
/// servers do so. What some read a backslash for is nobody's.
///
/// Several headers arrive with commas between them, and in one a comma may be part of a value. Where the first ends is
/// known; what a comma ends behind it may be more than that, so it is nobody's.
pub(super) fn value(lines: &Lines, name: &str) -> Told {
    let (first, rest) = lines.first_and_rest();
    let in_first = first.split(|byte| *byte == b';').filter_map(|pair| value_in(pair, name));
    let mut is_cut = false;
    let in_rest = rest.split_inclusive(|byte| matches!(byte, b';' | b',')).filter_map(|pair| {
        let value = value_in(pair.strip_suffix(b";").or(pair.strip_suffix(b",")).unwrap_or(pair), name)?;
        is_cut |= pair.ends_with(b",");
        Some(value)
    });
    match Told::of(in_first.chain(in_rest)) {
        _ if is_cut => Told::Ambiguous,
        Told::Value(value) if value.contains(&b'\\') => Told::Ambiguous,
        told => told,
    }
}

/// The value of a pair with this name.
fn value_in(pair: &[u8], name: &str) -> Option<Vec<u8>> {
    let equals = pair.iter().position(|byte| *byte == b'=')?;
    let (key, value) = pair.split_at_checked(equals)?;
    (key.trim_ascii() == name.as_bytes()).then(|| unescaped(unquoted(value.get(1..).unwrap_or_default())))
}

fn unquoted(value: &[u8]) -> &[u8] {
    let value = value.trim_ascii();
    value.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\"")).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines as they come, each a header of its own.
    fn told(headers: &[&str]) -> Told {
        let mut lines = Lines::new(Some(headers.join(",").into_bytes()));
        if lines.is_doubtful() {
            lines.set_first(headers.first().map(|first| first.as_bytes().to_vec()));
        }
        value(&lines, "sid")
    }

    fn one(value: &str) -> Told {
        Told::Value(value.into())
    }

    #[test]
    fn a_cookie_is_found_among_others() {
        for headers in [
            &["sid=a"][..],
            &["x=1; sid=a; y=2"],
            &["x=1;sid=a"],
            &["sid = a "],
            &["sid=\"a\""],
            &["x=1", "sid=a"],
            &["sid=a; sid=a"],
        ] {
            assert_eq!(told(headers), one("a"), "{headers:?}");
        }
        assert_eq!(told(&["sid=a,b"]), one("a,b"), "one value with a comma");
        assert_eq!(told(&["sid=a=b"]), one("a=b"));
    }

    #[test]
    fn what_is_not_there_or_empty_is_absent() {
        for headers in [&[""][..], &["sid"], &["sid="], &["SID=a"], &["xsid=a"], &["x=sid=a"]] {
            assert_eq!(told(headers), Told::Absent, "{headers:?}");
        }
    }

    #[test]
    fn every_spelling_of_a_value_is_one_value() {
        for headers in [&["sid=ab"][..], &["sid=%61b"], &["sid=\"a%62\""]] {
            assert_eq!(told(headers), one("ab"), "{headers:?}");
        }
        assert_eq!(told(&[r#"sid="\141b""#]), Told::Ambiguous);
    }

    #[test]
    fn different_values_are_ambiguous() {
        for headers in [
            &["sid=a; sid=b"][..],
            &["sid=a", "sid=b"],
            &["sid=a; sid="],
            &["x=1; sid=a", "y=2; sid=b"],
            &["sid=a,b", "sid=a"],
            &["sid=a", "sid=a,b"],
            &["x=1", "sid=a,b", "sid=a"],
        ] {
            assert_eq!(told(headers), Told::Ambiguous, "{headers:?}");
        }
    }
}
