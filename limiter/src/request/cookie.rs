//! Cookies, as browsers send them (RFC 6265, section 4.2).

use super::lines::Lines;
use super::values::Told;

/// What cookies say under a name. Blanks and quotes around a value are not part of it.
pub(super) fn value(lines: &Lines, name: &str) -> Told {
    let Some(joined) = &lines.joined else { return Told::Absent };
    // Several headers arrive with commas between them. In one header a comma may be part of a value.
    let is_separator = |byte: &u8| *byte == b';' || (*byte == b',' && lines.are_several());
    Told::of(joined.split(is_separator).filter_map(|pair| {
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let (key, value) = pair.split_at_checked(equals)?;
        (key.trim_ascii() == name.as_bytes()).then(|| unquoted(value.get(1..).unwrap_or_default()).to_vec())
    }))
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
    fn different_values_are_ambiguous() {
        for headers in
            [&["sid=a; sid=b"][..], &["sid=a", "sid=b"], &["sid=a; sid="], &["x=1; sid=a", "y=2; sid=b"]]
        {
            assert_eq!(told(headers), Told::Ambiguous, "{headers:?}");
        }
    }
}
