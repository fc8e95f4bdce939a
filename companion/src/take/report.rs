//! What callers may report.

use core::fmt;

use limiter::wire::{MAX_LEASE_ID, MAX_TTL_US, Report};

use super::holder::{self, HolderError};

/// Why a report is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportError {
    /// Not a holder's name.
    Holder(HolderError),
    /// A number above [`MAX_LEASE_ID`].
    From,
    /// A number above [`MAX_LEASE_ID`].
    To,
    /// A report that ends before it begins.
    Order {
        /// Where it begins.
        from: u64,
        /// Where it ends.
        to: u64,
    },
    /// Not 1 to [`MAX_TTL_US`].
    Ttl {
        /// Microseconds.
        ttl_us: u64,
    },
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Holder(error) => write!(f, "holder: {error}"),
            Self::From => write!(f, "from: too large; use {MAX_LEASE_ID} or less"),
            Self::To => write!(f, "to: too large; use {MAX_LEASE_ID} or less"),
            Self::Order { from, to } => {
                write!(f, "to: {to} is less than from; use {from} or more, or a smaller from")
            }
            Self::Ttl { ttl_us } => write!(f, "ttl_us: {ttl_us} is not allowed; use 1 to {MAX_TTL_US}"),
        }
    }
}

/// Checks what the types of `report` do not.
pub(super) fn check(report: &Report) -> Result<(), ReportError> {
    let Report { holder, from, to, ttl_us } = report;
    holder::check(holder).map_err(ReportError::Holder)?;
    if *from > MAX_LEASE_ID {
        return Err(ReportError::From);
    }
    if *to > MAX_LEASE_ID {
        return Err(ReportError::To);
    }
    if to < from {
        return Err(ReportError::Order { from: *from, to: *to });
    }
    if !(1..=MAX_TTL_US).contains(ttl_us) {
        return Err(ReportError::Ttl { ttl_us: *ttl_us });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report { holder: "aZ09".to_owned(), from: 3, to: 8, ttl_us: 1_000_000 }
    }

    #[test]
    fn reports_up_to_every_bound_are_taken() {
        let widest = Report { from: 0, to: MAX_LEASE_ID, ttl_us: MAX_TTL_US, ..report() };
        let first = Report { from: 0, to: 0, ttl_us: 1, ..report() };
        let last = Report { from: MAX_LEASE_ID, to: MAX_LEASE_ID, ..report() };
        for report in [report(), widest, first, last] {
            assert_eq!(check(&report), Ok(()), "{report:?}");
        }
    }

    #[test]
    fn other_reports_are_refused_by_their_fault() {
        let nameless = Report { holder: String::new(), ..report() };
        assert_eq!(check(&nameless), Err(ReportError::Holder(HolderError)));
        assert_eq!(check(&Report { from: 1 << 53, to: u64::MAX, ..report() }), Err(ReportError::From));
        assert_eq!(check(&Report { to: 1 << 53, ..report() }), Err(ReportError::To));
        assert_eq!(check(&Report { to: 2, ..report() }), Err(ReportError::Order { from: 3, to: 2 }));
        for ttl_us in [0, MAX_TTL_US + 1, u64::MAX] {
            assert_eq!(check(&Report { ttl_us, ..report() }), Err(ReportError::Ttl { ttl_us }));
        }
    }
}
