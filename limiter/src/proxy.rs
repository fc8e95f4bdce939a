//! What the workers of a proxy have in common, as leases and tallies reach it.

use crate::lease::Lease;
use crate::quota::TokenBucket;
use crate::table::{Slots, Table};
use crate::tally::Tally;
use crate::time::Instant;

/// What the workers of a proxy share, at one moment.
pub(crate) struct Proxy<'a> {
    pub(crate) table: &'a Table,
    pub(crate) slots: &'a mut dyn Slots,
    pub(crate) now: Instant,
}

impl Proxy<'_> {
    /// Changes what is leased of a key; see [`Table::lease`].
    pub(crate) fn lease<R>(
        &mut self,
        key: &str,
        quota: &TokenBucket,
        apply: impl FnMut(&mut Lease) -> (R, bool),
    ) -> Option<R> {
        self.table.lease(self.slots, key, quota, self.now, apply)
    }

    /// Changes what was let through of a key; see [`Table::tally`].
    pub(crate) fn tally<R>(
        &mut self,
        key: &str,
        quota: &TokenBucket,
        apply: impl FnMut(&mut Tally) -> (R, bool),
    ) -> Option<R> {
        self.table.tally(self.slots, key, quota, self.now, apply)
    }
}
