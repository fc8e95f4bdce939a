//! Questions that no request waits for.

use crate::quota::TokenBucket;
use crate::wire::{LeaseAsk, Report};

/// A question about one key that costs nothing: it renews or returns a lease, delivers a report, or sees whether
/// the store decides at all.
#[derive(Debug)]
pub(crate) struct Errand {
    pub(crate) key: String,
    pub(crate) quota: TokenBucket,
    pub(crate) lease: Option<LeaseAsk>,
    pub(crate) report: Option<Report>,
}
