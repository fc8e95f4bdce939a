//! Paths as policies see them: one spelling for every way to write the same path.

use std::borrow::Cow;

/// The path of a request target in normal form, so that a spelling is not a way round a limit.
///
/// Query and fragment are cut off; percent-encoded unreserved characters are decoded, the digits of other
/// escapes put in upper case, and bytes that no path may hold as they are encoded; a backslash is a slash; dot
/// segments are resolved and slashes merged, in this order, which is Envoy's. (RFC 3986, sections 6.2.2 and
/// 5.2.4; backslashes as in WHATWG URL, section 4.4; merging slashes goes beyond both.) Case and a trailing slash
/// are kept: `/orders`, `/Orders` and `/orders/` are three paths. Any bytes are taken; a target that does not
/// start with a slash, such as `*`, gets no dots resolved.
pub fn normalize(target: &[u8]) -> Cow<'_, [u8]> {
    let end = target.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(target.len());
    let path = target.get(..end).unwrap_or(target);
    if is_normal(path) {
        return Cow::Borrowed(path);
    }
    let decoded = decode_unreserved(path);
    if decoded.first() == Some(&b'/') { Cow::Owned(resolve(&decoded)) } else { Cow::Owned(decoded) }
}

/// True where a path has nothing to decode, resolve or merge. Says no more often than it has to.
fn is_normal(path: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'%' | b'\\');
    path.iter().all(is_plain) && !path.windows(2).any(|pair| matches!(pair, b"//" | b"/."))
}

fn decode_unreserved(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        let (b'%', Some((escape, after))) = (byte, tail.split_at_checked(2)) else {
            push_plain(&mut out, byte);
            continue;
        };
        match escaped_byte(escape) {
            Some(value) if is_unreserved(value) => {
                out.push(value);
                rest = after;
            }
            Some(_) => {
                out.push(b'%');
                out.extend(escape.iter().map(u8::to_ascii_uppercase));
                rest = after;
            }
            None => out.push(byte),
        }
    }
    out
}

/// Appends a byte in the form in which paths hold it.
fn push_plain(out: &mut Vec<u8>, byte: u8) {
    match byte {
        b'\\' => out.push(b'/'),
        b'!'..=b'~' => out.push(byte),
        _ => {
            let digit = |value: u8| if value < 10 { b'0' + value } else { b'A' - 10 + value };
            out.extend([b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

/// A text with all that is percent-encoded decoded.
pub(crate) fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        let escape = tail.split_at_checked(2).filter(|_| byte == b'%');
        match escape.and_then(|(digits, after)| Some((escaped_byte(digits)?, after))) {
            Some((value, after)) => {
                out.push(value);
                rest = after;
            }
            None => out.push(byte),
        }
    }
    out
}

/// The byte that two hexadecimal digits stand for.
fn escaped_byte(digits: &[u8]) -> Option<u8> {
    let [high, low] = digits else { return None };
    let nibble = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    Some(nibble(*high)? << 4 | nibble(*low)?)
}

/// RFC 3986, section 2.3.
pub(crate) fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Resolves dot segments of a path with a leading slash, then drops empty segments.
fn resolve(path: &[u8]) -> Vec<u8> {
    let mut segments: Vec<&[u8]> = Vec::new();
    let mut is_directory = false;
    for segment in path.split(|byte| *byte == b'/').skip(1) {
        is_directory = true;
        match segment {
            b"." => {}
            b".." => drop(segments.pop()),
            _ => {
                segments.push(segment);
                is_directory = false;
            }
        }
    }
    // An empty last segment is what a trailing slash leaves.
    is_directory |= segments.last().is_some_and(|segment| segment.is_empty());
    let mut out = Vec::with_capacity(path.len());
    for segment in segments.iter().filter(|segment| !segment.is_empty()) {
        out.push(b'/');
        out.extend_from_slice(segment);
    }
    if is_directory || out.is_empty() {
        out.push(b'/');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn normal(target: &str) -> String {
        String::from_utf8(normalize(target.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn every_spelling_of_a_path_is_one_path() {
        for spelling in [
            "/orders",
            "//orders",
            "/./orders",
            "/x/../orders",
            "/%6frders",
            "/%6Frders",
            "/orders?",
            "/orders?x=1",
            "/orders#a",
            "/%2e/orders",
            "/x/%2E%2e/orders",
            "/../../orders",
            "/.//orders",
            "/\\orders",
            "\\orders",
            "/x\\..\\orders",
        ] {
            assert_eq!(normal(spelling), "/orders", "{spelling:?}");
        }
    }

    #[test]
    fn different_paths_stay_different() {
        for (target, expected) in [
            ("/orders/", "/orders/"),
            ("/orders//", "/orders/"),
            ("/orders/.", "/orders/"),
            ("/orders/x/..", "/orders/"),
            ("/Orders", "/Orders"),
            ("/a%2fb", "/a%2Fb"),
            ("/a%2Fb", "/a%2Fb"),
            ("/a%5cb", "/a%5Cb"),
            ("/\u{f6}", "/%C3%B6"),
            ("/%c3%b6", "/%C3%B6"),
            ("/a b", "/a%20b"),
            ("/a/b", "/a/b"),
            ("/%", "/%"),
            ("/%zz", "/%zz"),
            ("/%2", "/%2"),
            ("/%2541", "/%2541"),
            ("/...", "/..."),
            ("/.well-known/x", "/.well-known/x"),
            ("/", "/"),
            ("/..", "/"),
            ("*", "*"),
            ("", ""),
        ] {
            assert_eq!(normal(target), expected, "{target:?}");
        }
    }

    proptest! {
        #[test]
        fn normal_form_is_a_fixed_point(target in proptest::collection::vec(
            prop_oneof![Just(b'/'), Just(b'.'), Just(b'%'), Just(b'2'), Just(b'e'), Just(b'?'), any::<u8>()], 0..24)) {
            let once = normalize(&target).into_owned();
            prop_assert_eq!(&normalize(&once).into_owned(), &once);
        }
    }
}
