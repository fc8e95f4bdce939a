//! Values of Envoy's metadata, which arrive without their type.

/// Doubles tell every whole number below this from the next one.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

/// The text of a value; `None` for what is empty, a fraction, a list or an object.
///
/// Envoy hands over a text as it is, a number as the eight bytes of a double, and true and false as one byte. No text
/// holds a control character here: what has one and is no number, is something of several parts.
pub(super) fn text(value: Vec<u8>) -> Option<Vec<u8>> {
    let is_text = core::str::from_utf8(&value).is_ok_and(|text| !text.chars().any(char::is_control));
    if is_text {
        return Some(value).filter(|value| !value.is_empty());
    }
    match value.as_slice() {
        [0] => Some(b"false".to_vec()),
        [1] => Some(b"true".to_vec()),
        bytes => {
            let number = f64::from_le_bytes(bytes.try_into().ok()?);
            // Beyond these bounds doubles stand for several whole numbers, and identities would meet.
            let is_whole = number.fract() == 0.0 && number.abs() < MAX_WHOLE;
            #[expect(clippy::cast_possible_truncation, reason = "it is whole and within the bounds")]
            is_whole.then(|| (number as i64).to_string().into_bytes())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(value: &[u8]) -> Option<String> {
        text(value.to_vec()).map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn values_are_told_as_people_write_them() {
        assert_eq!(told(b"user-42").as_deref(), Some("user-42"));
        assert_eq!(told("Jürgen".as_bytes()).as_deref(), Some("Jürgen"));
        assert_eq!(told(&42.0_f64.to_le_bytes()).as_deref(), Some("42"));
        assert_eq!(told(&9e15_f64.to_le_bytes()).as_deref(), Some("9000000000000000"));
        assert_eq!(told(&0.0_f64.to_le_bytes()).as_deref(), Some("0"));
        assert_eq!(told(&(-7.0_f64).to_le_bytes()).as_deref(), Some("-7"));
        assert_eq!((told(&[1]).as_deref(), told(&[0]).as_deref()), (Some("true"), Some("false")));
    }

    #[test]
    fn what_has_parts_is_no_identity() {
        for number in [1.5, f64::NAN, f64::INFINITY, 1e300, -1e16] {
            assert_eq!(told(&number.to_le_bytes()), None, "{number}");
        }
        for value in [&b""[..], b"\0\0\0\0", b"\x01\0\0\0\x01\0\0\0\x01\0\0\0a\0b\0", b"a\nb"] {
            assert_eq!(told(value), None, "{value:?}");
        }
    }
}
