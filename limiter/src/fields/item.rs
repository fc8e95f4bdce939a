//! What a response tells of one policy, whatever its algorithm.

use crate::bucket::{Fit, Standing};
use crate::decision::{Mark, Outcome};
use crate::policy::Policy;
use crate::quota::TokenBucket;
use crate::request::Terms;

/// A limit as clients are told it: so many units in so many seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advertised {
    /// Units in a window.
    pub quota: u64,
    /// Seconds, at least 1; `None` where no time brings a unit back.
    pub window_s: Option<u64>,
}

impl Advertised {
    /// A limit under which nothing passes.
    pub const NOTHING: Self = Self { quota: 0, window_s: None };
}

impl From<&TokenBucket> for Advertised {
    /// The capacity, in the whole seconds that fill it.
    ///
    /// A bucket that fills in under a second is advertised by what comes back in one, for its capacity
    /// would understate it. That is rounded down: a client that is told too much is refused.
    fn from(bucket: &TokenBucket) -> Self {
        let count = u128::from(bucket.rate().count());
        let period_s = u128::from(bucket.rate().period().seconds());
        let fill = u128::from(bucket.capacity()) * period_s;
        if fill < count {
            // At least the capacity: the quotient is above it, and the capacity is whole.
            return Self { quota: saturated(count / period_s), window_s: Some(1) };
        }
        Self { quota: bucket.capacity(), window_s: Some(saturated(fill.div_ceil(count))) }
    }
}

/// How a policy stands after the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The store could not be asked.
    Unknown,
    /// The policy let the request pass, or would have.
    Passed {
        /// Whole units left.
        remaining: u64,
        /// Microseconds, rounded up. For a window: until it ends, or until a unit comes back. For a
        /// bucket: see [`State::passed`].
        reset_us: u64,
    },
    /// The policy refused the request.
    Violated {
        /// Whole units left, which were too few for the cost.
        remaining: u64,
        /// Microseconds until the cost fits, rounded up; `None` where it never does.
        wait_us: Option<u64>,
    },
    /// The policy refused the request without counting it.
    Closed(Closed),
}

/// Why a policy lets none of a client's requests pass, whatever they cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// The client's limit is that.
    Blocked,
    /// The request lacks the identity that the policy insists on.
    NoIdentity,
}

impl State {
    /// The state of a bucket that let the request pass. `standing` is the one after the charge.
    ///
    /// The reset is the later of two moments: when the next unit comes back, and when a client that
    /// spends what is left evenly over the window has spent it.
    pub fn passed(bucket: &TokenBucket, standing: &Standing) -> Self {
        Self::shard_passed(bucket, bucket, standing)
    }

    /// The same of a bucket that is counted in shards, as the one that was charged, `part`, tells it: the others are
    /// taken to stand as it does. It is an estimate; but nothing is told as full or as empty that is not so here, and
    /// the next unit is the shard's own, which may take longer than one of the whole.
    fn shard_passed(whole: &TokenBucket, part: &TokenBucket, standing: &Standing) -> Self {
        let Advertised { quota, window_s } = Advertised::from(whole);
        let of_part = u128::from(standing.remaining.min(part.capacity()));
        // Both capacities are above zero. Rounded down: a client that is told too much is refused.
        let remaining = of_part * u128::from(whole.capacity()) / u128::from(part.capacity());
        let window_us = u128::from(window_s.unwrap_or(0)) * 1_000_000;
        let even_us = (remaining * window_us).div_ceil(u128::from(quota.max(1)));
        let reset_us = next_unit_us(part, standing).max(saturated(even_us));
        Self::Passed { remaining: saturated(remaining), reset_us }
    }

    /// The state of a bucket, or of a shard, that refused the request.
    ///
    /// A shard tells what it has left itself: of the whole there may seem to be enough for the cost.
    pub const fn violated(standing: &Standing) -> Self {
        let wait_us = match standing.fit {
            Fit::Now => Some(0),
            Fit::After(wait_us) => Some(wait_us),
            Fit::Never => None,
        };
        Self::Violated { remaining: standing.remaining, wait_us }
    }
}

/// One policy that applies to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// The policy's name, unique among the items; printable ASCII.
    pub name: &'a str,
    /// Its limit.
    pub advertised: Advertised,
    /// How it stands.
    pub state: State,
}

impl<'a> Item<'a> {
    /// What to tell of a policy after a decision. `None` for a shadow policy, which would have clients heed a limit
    /// that does not bind.
    pub fn of(policy: &'a Policy, mark: &Mark) -> Option<Self> {
        if policy.shadow {
            return None;
        }
        let (advertised, state) = match (&mark.terms, mark.standing) {
            (Terms::Blocked, _) => (Advertised::NOTHING, State::Closed(Closed::Blocked)),
            (Terms::NoIdentity, _) => (Advertised::NOTHING, State::Closed(Closed::NoIdentity)),
            (Terms::Bucket { whole, .. }, None) => (Advertised::from(whole), State::Unknown),
            (Terms::Bucket { whole, part }, Some(standing)) => {
                let state = match mark.outcome {
                    Outcome::Refused => State::violated(&standing),
                    _ => State::shard_passed(whole, part, &standing),
                };
                (Advertised::from(whole), state)
            }
        };
        Some(Self { name: &policy.name, advertised, state })
    }
}

/// Microseconds until one more unit is whole, rounded up; 0 for a full bucket.
///
/// A standing tells when the bucket is full. From there the whole units beyond the next one are counted
/// back. Where a unit does not take whole microseconds the result may be one too late, never too early:
/// a standing has lost the fraction.
fn next_unit_us(bucket: &TokenBucket, standing: &Standing) -> u64 {
    let beyond = bucket.capacity().saturating_sub(standing.remaining).saturating_sub(1);
    let beyond_us = bucket.parts_of(beyond).unwrap_or(0) / bucket.parts_per_micro();
    standing.full_us.saturating_sub(beyond_us)
}

fn saturated(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
