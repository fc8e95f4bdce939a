//! What callers may ask of leases.

use core::fmt;

use limiter::quota::MAX_PARTS;
use limiter::wire::{LeaseAsk, MAX_LEASE_ID, MAX_RETURNS, MAX_TTL_US};

use super::holder::{self, HolderError};

/// The most tokens that may be wanted: more than any bucket holds.
const MAX_WANT: u64 = MAX_PARTS;

/// Why an ask is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseError {
    /// Not a holder's name.
    Holder(HolderError),
    /// A number above [`MAX_LEASE_ID`].
    Id,
    /// More tokens than any bucket holds.
    Want {
        /// How many.
        tokens: u64,
    },
    /// Not 1 to [`MAX_TTL_US`].
    Ttl {
        /// Microseconds.
        ttl_us: u64,
    },
    /// More than [`MAX_RETURNS`] returns.
    Returns {
        /// How many there are.
        count: usize,
    },
    /// A return's number above [`MAX_LEASE_ID`].
    ReturnId {
        /// The return's place.
        index: usize,
    },
    /// The number of a return before it, or of the lease that is wanted: sent again, such a request would give
    /// back what it was granted the first time.
    SameId {
        /// The return's place.
        index: usize,
    },
}

impl fmt::Display for LeaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Holder(error) => write!(f, "holder: {error}"),
            Self::Id => write!(f, "id: too large; use {MAX_LEASE_ID} or less"),
            Self::Want { tokens } => {
                write!(f, "want: {tokens} is more than any limit holds; use {MAX_WANT} or less")
            }
            Self::Ttl { ttl_us } => write!(f, "ttl_us: {ttl_us} is not allowed; use 1 to {MAX_TTL_US}"),
            Self::Returns { count } => {
                write!(f, "returns: {count} are not allowed; use {MAX_RETURNS} or less")
            }
            Self::ReturnId { index } => {
                write!(f, "returns[{index}].id: too large; use {MAX_LEASE_ID} or less")
            }
            Self::SameId { index } => {
                write!(f, "returns[{index}].id: names a lease twice; use different ids in one charge")
            }
        }
    }
}

/// Checks what the types of `ask` do not.
pub(super) fn check(ask: &LeaseAsk) -> Result<(), LeaseError> {
    let LeaseAsk { holder, id, want, ttl_us, returns } = ask;
    holder::check(holder).map_err(LeaseError::Holder)?;
    if *id > MAX_LEASE_ID {
        return Err(LeaseError::Id);
    }
    if *want > MAX_WANT {
        return Err(LeaseError::Want { tokens: *want });
    }
    if !(1..=MAX_TTL_US).contains(ttl_us) {
        return Err(LeaseError::Ttl { ttl_us: *ttl_us });
    }
    if returns.len() > MAX_RETURNS {
        return Err(LeaseError::Returns { count: returns.len() });
    }
    let mut seen: Vec<_> = (*want > 0).then_some(*id).into_iter().collect();
    for (index, back) in returns.iter().enumerate() {
        if back.id > MAX_LEASE_ID {
            return Err(LeaseError::ReturnId { index });
        }
        if seen.contains(&back.id) {
            return Err(LeaseError::SameId { index });
        }
        seen.push(back.id);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use limiter::wire::{MAX_HOLDER_BYTES, Return};

    use super::*;

    fn ask() -> LeaseAsk {
        let returns = vec![Return { id: 1, tokens: u64::MAX }, Return { id: 2, tokens: 0 }];
        LeaseAsk { holder: "aZ09".to_owned(), id: 3, want: 50, ttl_us: 1_000_000, returns }
    }

    fn returns(ids: &[u64]) -> LeaseAsk {
        let returns = ids.iter().map(|id| Return { id: *id, tokens: 1 }).collect();
        LeaseAsk { returns, ..ask() }
    }

    #[test]
    fn asks_up_to_every_bound_are_taken() {
        let widest = LeaseAsk {
            holder: "h".repeat(MAX_HOLDER_BYTES),
            id: MAX_LEASE_ID,
            want: MAX_WANT,
            ttl_us: MAX_TTL_US,
            ..ask()
        };
        let narrowest = LeaseAsk { holder: "h".to_owned(), id: 0, want: 0, ttl_us: 1, returns: vec![] };
        let only_returns = LeaseAsk { want: 0, ..returns(&[3]) };
        let most: Vec<_> = (10..10 + MAX_RETURNS as u64).collect();
        for ask in [ask(), widest, narrowest, only_returns, returns(&most)] {
            assert_eq!(check(&ask), Ok(()), "{ask:?}");
        }
    }

    #[test]
    fn other_asks_are_refused_by_their_fault() {
        let nameless = LeaseAsk { holder: String::new(), ..ask() };
        assert_eq!(check(&nameless), Err(LeaseError::Holder(HolderError)));
        assert_eq!(check(&LeaseAsk { id: 1 << 53, ..ask() }), Err(LeaseError::Id));
        let tokens = MAX_WANT + 1;
        assert_eq!(check(&LeaseAsk { want: tokens, ..ask() }), Err(LeaseError::Want { tokens }));
        for ttl_us in [0, MAX_TTL_US + 1, u64::MAX] {
            assert_eq!(check(&LeaseAsk { ttl_us, ..ask() }), Err(LeaseError::Ttl { ttl_us }));
        }
        let many: Vec<_> = (10..11 + MAX_RETURNS as u64).collect();
        assert_eq!(check(&returns(&many)), Err(LeaseError::Returns { count: many.len() }));
        assert_eq!(check(&returns(&[4, 1 << 53])), Err(LeaseError::ReturnId { index: 1 }));
        assert_eq!(check(&returns(&[4, 4])), Err(LeaseError::SameId { index: 1 }));
        assert_eq!(check(&returns(&[3, 4])), Err(LeaseError::SameId { index: 0 }));
    }
}
