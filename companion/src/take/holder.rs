//! The names of holders, who lease and report.

use core::fmt;

use limiter::wire::MAX_HOLDER_BYTES;

/// Not 1 to [`MAX_HOLDER_BYTES`] letters and digits: the store writes names bare between numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HolderError;

impl fmt::Display for HolderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a holder's name; use 1 to {MAX_HOLDER_BYTES} ASCII letters and digits")
    }
}

/// Checks that `holder` may be written between the numbers of a state.
pub(super) fn check(holder: &str) -> Result<(), HolderError> {
    let letters_and_digits = holder.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if (1..=MAX_HOLDER_BYTES).contains(&holder.len()) && letters_and_digits {
        Ok(())
    } else {
        Err(HolderError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_digits_are_names_and_nothing_else_is() {
        for holder in ["a", "0", "aZ09", &"h".repeat(MAX_HOLDER_BYTES)] {
            assert_eq!(check(holder), Ok(()), "{holder:?}");
        }
        for holder in ["", "a b", "a:b", "a-b", "é", "a\n", "\0", &"h".repeat(MAX_HOLDER_BYTES + 1)] {
            assert_eq!(check(holder), Err(HolderError), "{holder:?}");
        }
    }
}
