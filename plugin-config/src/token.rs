//! Names of methods, headers and cookies: tokens of RFC 9110, section 5.6.2.

use crate::error::{Problem, Remedy};
use crate::report::{Report, Reported};
use crate::spot::Spot;

/// The most bytes of a method, or of the name of a header or cookie.
pub const MAX_TOKEN_BYTES: usize = 128;

/// The header that Envoy shows as `:authority`, in whatever spelling it came.
pub(crate) const HOST: &str = "host";

/// Whether a header is one in name only: what it says is compared in normal form elsewhere.
pub(crate) fn is_pseudo_header(name: &str) -> bool {
    name.starts_with(':') || name.eq_ignore_ascii_case(HOST)
}

/// A token; `form` is the remedy for what is not one.
pub(crate) fn read<'a>(
    spot: &Spot<'a>,
    form: &'static str,
    report: &mut Report,
) -> Result<&'a str, Reported> {
    let token = spot.text(form, report)?;
    let (problem, remedy) = match token.len() {
        0 => (Problem::Empty, form),
        1..=MAX_TOKEN_BYTES if token.bytes().all(is_token_byte) => return Ok(token),
        1..=MAX_TOKEN_BYTES => (Problem::BadCharacters, form),
        _ => (Problem::TooLarge, "use 128 bytes or less"),
    };
    Err(spot.refuse(problem, Remedy::Do(remedy), report))
}

/// The name of a header, which is a key: in lower case, as HTTP/2 and Envoy know it. `spot` is its value.
pub(crate) fn key(
    name: &str,
    form: &'static str,
    spot: &Spot<'_>,
    report: &mut Report,
) -> Result<String, Reported> {
    if (1..=MAX_TOKEN_BYTES).contains(&name.len()) && name.bytes().all(is_token_byte) {
        return Ok(name.to_ascii_lowercase());
    }
    Err(spot.refuse(Problem::BadKey, Remedy::Do(form), report))
}

const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}
