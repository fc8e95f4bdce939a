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
    /// A policy that lets nothing pass.
    pub const BLOCKED: Self = Self { quota: 0, window_s: None };
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
}

impl State {
    /// The state of a policy that lets nothing pass.
    pub const BLOCKED: Self = Self::Violated { remaining: 0, wait_us: None };

    /// The state of a bucket that let the request pass. `standing` is the one after the charge.
    ///
    /// The reset is the later of two moments: when the next unit comes back, and when a client that
    /// spends what is left evenly over the window has spent it.
    pub fn passed(bucket: &TokenBucket, standing: &Standing) -> Self {
        let Advertised { quota, window_s } = Advertised::from(bucket);
        let remaining = standing.remaining.min(bucket.capacity());
        let window_us = u128::from(window_s.unwrap_or(0)) * 1_000_000;
        let even_us = (u128::from(remaining) * window_us).div_ceil(u128::from(quota.max(1)));
        Self::Passed { remaining, reset_us: next_unit_us(bucket, standing).max(saturated(even_us)) }
    }

    /// The state of the whole, as one of its shards tells it: the others stand about as this one does.
    fn scaled(self, whole: &TokenBucket, part: &TokenBucket) -> Self {
        let scale = |remaining: u64| {
            let scaled = u128::from(remaining) * u128::from(whole.capacity()) / u128::from(part.capacity());
            saturated(scaled)
        };
        match self {
            Self::Unknown => self,
            Self::Passed { remaining, reset_us } => Self::Passed { remaining: scale(remaining), reset_us },
            Self::Violated { remaining, wait_us } => Self::Violated { remaining: scale(remaining), wait_us },
        }
    }

    /// The state of a bucket that refused the request.
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
            (Terms::Blocked | Terms::NoIdentity, _) => (Advertised::BLOCKED, State::BLOCKED),
            (Terms::Bucket { whole, .. }, None) => (Advertised::from(whole), State::Unknown),
            (Terms::Bucket { whole, part }, Some(standing)) => {
                let state = match mark.outcome {
                    Outcome::Refused => State::violated(&standing),
                    _ => State::passed(part, &standing),
                };
                (Advertised::from(whole), state.scaled(whole, part))
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
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bucket::Bucket;
    use crate::policy::Limit;
    use crate::time::Instant;

    const START: Instant = Instant::from_micros(1_000_000_000);

    fn bucket(capacity: u64, rate: &str) -> TokenBucket {
        TokenBucket::new(capacity, rate.parse().unwrap()).unwrap()
    }

    fn advertised(capacity: u64, rate: &str) -> (u64, Option<u64>) {
        let Advertised { quota, window_s } = Advertised::from(&bucket(capacity, rate));
        (quota, window_s)
    }

    #[test]
    fn a_bucket_is_advertised_with_the_seconds_that_fill_it() {
        assert_eq!(advertised(100, "100/h"), (100, Some(3600)));
        assert_eq!(advertised(10, "3/s"), (10, Some(4)));
        assert_eq!(advertised(5, "5/s"), (5, Some(1)));
        assert_eq!(advertised(1, "1/d"), (1, Some(86_400)));
    }

    #[test]
    fn a_bucket_that_fills_in_under_a_second_is_advertised_per_second() {
        assert_eq!(advertised(5, "100/s"), (100, Some(1)));
        assert_eq!(advertised(1, "100/m"), (1, Some(1)));
        assert_eq!(advertised(2, "200/m"), (3, Some(1)));
        assert_eq!(advertised(1, "3601/h"), (1, Some(1)));
        assert_eq!(advertised(1, "3600/h"), (1, Some(1)));
        assert_eq!(advertised(1, "3599/h"), (1, Some(2)));
    }

    #[test]
    fn a_full_bucket_has_no_next_unit() {
        let quota = bucket(10, "3/s");
        let standing = Bucket::full(&quota, START).standing(&quota, 1, START);
        assert_eq!(next_unit_us(&quota, &standing), 0);
    }

    #[test]
    fn the_next_unit_is_waited_for_where_nothing_is_left_to_spend() {
        let quota = bucket(10, "10/m");
        let empty = Bucket::full(&quota, START).charge(&quota, 10);
        let now = START.after_micros(3_999_999);
        let standing = empty.settle(&quota, now).standing(&quota, 1, now);
        assert_eq!(State::passed(&quota, &standing), State::Passed { remaining: 0, reset_us: 2_000_001 });
    }

    #[test]
    fn only_what_binds_is_told() {
        let limit = bucket(10, "10/m");
        let policy = |shadow| Policy { shadow, ..Policy::new("api", Limit::TokenBucket(limit)) };
        let terms = Terms::Bucket { whole: limit, part: limit };
        let mark = |outcome, remaining, fit| {
            let standing = Standing { remaining, fit, full_us: 60_000_000 };
            Mark { policy: 0, terms, outcome, standing: Some(standing) }
        };
        let refused = mark(Outcome::Refused, 0, Fit::After(7));
        assert_eq!(Item::of(&policy(true), &refused), None);
        let state = |mark: Mark| Item::of(&policy(false), &mark).unwrap().state;
        for terms in [Terms::Blocked, Terms::NoIdentity] {
            assert_eq!(state(Mark { terms, ..refused }), State::BLOCKED);
        }
        assert_eq!(state(refused), State::Violated { remaining: 0, wait_us: Some(7) });
        let spared = mark(Outcome::Spared, 5, Fit::Now);
        assert_eq!(state(spared), State::Passed { remaining: 5, reset_us: 36_000_000 });
        let unprotected = Mark { policy: 0, terms, outcome: Outcome::Unprotected, standing: None };
        assert_eq!(state(unprotected), State::Unknown);
    }

    #[test]
    fn a_shard_tells_of_the_whole() {
        let whole = bucket(100, "100/m");
        let (part, _) = whole.shard(8, 1).unwrap();
        let standing = Standing { remaining: 6, fit: Fit::Now, full_us: 30_000_000 };
        let mark = Mark {
            policy: 0,
            terms: Terms::Bucket { whole, part },
            outcome: Outcome::Admitted,
            standing: Some(standing),
        };
        let policy = Policy::new("hot", Limit::TokenBucket(whole));
        let item = Item::of(&policy, &mark).unwrap();
        assert_eq!(item.advertised, Advertised { quota: 100, window_s: Some(60) });
        let State::Passed { remaining, .. } = item.state else { panic!("it passed") };
        assert_eq!(remaining, 46, "6 of 13 are 46 of 100");
    }

    proptest! {
        #[test]
        fn the_next_unit_is_never_early_and_at_most_a_microsecond_late(
            capacity in 1_u64..10_000, count in 1_u64..5_000, spent in 0_u64..10_000, later_us in 0_u64..90_000_000,
        ) {
            let quota = bucket(capacity, &format!("{count}/m"));
            let now = START.after_micros(later_us);
            let state = Bucket::full(&quota, START).charge(&quota, spent.min(capacity)).settle(&quota, now);
            let standing = state.standing(&quota, 1, now);
            let claimed = next_unit_us(&quota, &standing);
            if standing.remaining == capacity {
                prop_assert_eq!(claimed, 0);
            } else {
                let Fit::After(exact) = state.standing(&quota, standing.remaining + 1, now).fit else {
                    panic!("one more than what is left fits");
                };
                prop_assert!(claimed == exact || claimed == exact + 1, "{} for {}", claimed, exact);
            }
        }

        #[test]
        fn a_bucket_never_holds_more_than_is_advertised(capacity in 1_u64..50_000, count in 1_u64..1_000_000, unit in 0_usize..4) {
            let quota = bucket(capacity, &format!("{count}/{}", ["s", "m", "h", "d"][unit]));
            let advertised = Advertised::from(&quota);
            prop_assert!(advertised.quota >= capacity);
            prop_assert!(advertised.window_s.is_some_and(|window_s| window_s >= 1));
        }
    }
}
