//! Which store keys callers may name.

use core::fmt;

use limiter::key::PREFIX;
use limiter::wire::MAX_KEY_BYTES;

/// The most bytes of a policy that go into a log; [`limiter::key`] writes no longer ones, but others may.
const MAX_LOGGED_BYTES: usize = limiter::key::MAX_VALUE_BYTES;

/// Why a key is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// More than [`MAX_KEY_BYTES`] bytes.
    TooLong,
    /// A blank, a control character or something outside ASCII.
    Unprintable,
    /// Not `rl:{IDENTITY}:REST`: keys of others in the same store stay out of reach.
    Form,
    /// Further braces, which would make it doubtful what the hash tag is.
    Braces,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "too long; use {MAX_KEY_BYTES} bytes or less"),
            Self::Unprintable => f.write_str("not printable ASCII without blanks; encode other bytes as %XX"),
            Self::Form => f.write_str("not a store key; use rl:{IDENTITY}:REST with neither part empty"),
            Self::Braces => {
                f.write_str("more than one pair of braces; encode those of values as %7B and %7D")
            }
        }
    }
}

/// Checks that `key` is one of `rl:{IDENTITY}:REST`.
pub(super) fn check(key: &str) -> Result<(), KeyError> {
    if key.len() > MAX_KEY_BYTES {
        return Err(KeyError::TooLong);
    }
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(KeyError::Unprintable);
    }
    let parts = key.strip_prefix(PREFIX).and_then(|rest| rest.split_once("}:"));
    match parts {
        None | Some(("", _) | (_, "")) => Err(KeyError::Form),
        Some((identity, rest)) if identity.contains(['{', '}']) || rest.contains(['{', '}']) => {
            Err(KeyError::Braces)
        }
        Some(_) => Ok(()),
    }
}

/// The policy of a store key that was checked, for logs: neither whose key it is nor its scope, which are the
/// clients' own.
pub fn policy_of(key: &str) -> &str {
    let policy = key.split_once("}:").and_then(|(_, rest)| rest.split(':').next()).unwrap_or_default();
    policy.get(..policy.len().min(MAX_LOGGED_BYTES)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_is_all_that_a_log_learns_of_a_key() {
        assert_eq!(policy_of("rl:{SECRET}:orders:POST:/orders"), "orders");
        assert_eq!(policy_of("rl:{a,h=b}:p%20q"), "p%20q");
        assert_eq!(policy_of(&format!("rl:{{1}}:{}", "p".repeat(2_000))).len(), MAX_LOGGED_BYTES);
        assert_eq!(policy_of("SECRET:POLICY"), "");
    }

    #[test]
    fn keys_of_the_contract_are_taken() {
        for key in ["rl:{42}:orders:POST:/orders", "rl:{*}:p", "rl:{h=a%20b,2001:db8::}:p:%7B"] {
            assert_eq!(check(key), Ok(()), "{key}");
        }
        assert_eq!(check(&format!("rl:{{1}}:{}", "p".repeat(MAX_KEY_BYTES - 7))), Ok(()));
    }

    #[test]
    fn other_keys_are_refused_by_their_fault() {
        assert_eq!(check(&format!("rl:{{1}}:{}", "p".repeat(MAX_KEY_BYTES - 6))), Err(KeyError::TooLong));
        for key in ["rl:{1}:a b", "rl:{1}:a\n", "rl:{é}:p", "rl:{1}:\0", "rl:{1}:\u{7f}"] {
            assert_eq!(check(key), Err(KeyError::Unprintable), "{key:?}");
        }
        for key in ["", "rl:", "session:1", "rl:1:p", "rl:{}:p", "rl:{1}:", "rl:{1}", "rl:{1}p", "xrl:{1}:p"]
        {
            assert_eq!(check(key), Err(KeyError::Form), "{key:?}");
        }
        for key in ["rl:{1}:{2}", "rl:{1}:a}", "rl:{{1}:a", "rl:{1}}:a", "rl:{a}b}:c"] {
            assert_eq!(check(key), Err(KeyError::Braces), "{key:?}");
        }
    }
}
