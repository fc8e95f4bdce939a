//! What items tell of buckets, whole ones and shards.

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
    for (terms, closed) in [(Terms::Blocked, Closed::Blocked), (Terms::NoIdentity, Closed::NoIdentity)] {
        assert_eq!(state(Mark { terms, ..refused }), State::Closed(closed));
    }
    assert_eq!(state(refused), State::Violated { remaining: 0, wait_us: Some(7) });
    let spared = mark(Outcome::Spared, 5, Fit::Now);
    assert_eq!(state(spared), State::Passed { remaining: 5, reset_us: 36_000_000 });
    let unprotected = Mark { policy: 0, terms, outcome: Outcome::Unprotected, standing: None };
    assert_eq!(state(unprotected), State::Unknown);
}

/// What a shard that stands like this tells after a request that had this outcome.
fn told(whole: TokenBucket, part: TokenBucket, standing: Standing, outcome: Outcome) -> State {
    let mark = Mark { policy: 0, terms: Terms::Bucket { whole, part }, outcome, standing: Some(standing) };
    let policy = Policy::new("hot", Limit::TokenBucket(whole));
    let item = Item::of(&policy, &mark).unwrap();
    assert_eq!(item.advertised, Advertised::from(&whole), "clients know of no shards");
    item.state
}

#[test]
fn a_shard_that_admits_tells_of_the_whole() {
    let whole = bucket(100, "100/m");
    let (part, _) = whole.shard(8, 1).unwrap();
    let standing = Standing { remaining: 6, fit: Fit::Now, full_us: 30_000_000 };
    let State::Passed { remaining, reset_us } = told(whole, part, standing, Outcome::Admitted) else {
        panic!("it passed")
    };
    assert_eq!((remaining, reset_us), (46, 27_600_000), "6 of 13 are 46 of 100, which 27.6 s bring back");
}

#[test]
fn a_shard_that_refuses_tells_what_it_has_itself() {
    let whole = bucket(100, "100/m");
    let (part, _) = whole.shard(8, 1).unwrap();
    let standing = Standing { remaining: 6, fit: Fit::After(5), full_us: 30_000_000 };
    let expected = State::Violated { remaining: 6, wait_us: Some(5) };
    assert_eq!(told(whole, part, standing, Outcome::Refused), expected, "46 would be enough for a cost of 7");
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

    #[test]
    fn a_shard_tells_no_more_than_the_whole_has_and_no_earlier_than_it_can(
        capacity in 1_u64..50_000, count in 1_u64..100_000, unit in 0_usize..4, shards in 2_u32..=64,
        turn in any::<u64>(), spent in 0_u64..50_000, later_us in 0_u64..90_000_000,
    ) {
        let whole = bucket(capacity, &format!("{count}/{}", ["s", "m", "h", "d"][unit]));
        let Some((part, _)) = whole.shard(shards, turn) else { return Ok(()) };
        let now = START.after_micros(later_us);
        let held = Bucket::full(&part, START).charge(&part, spent.min(part.capacity())).settle(&part, now);
        let standing = held.standing(&part, 1, now);
        let State::Passed { remaining, reset_us } = told(whole, part, standing, Outcome::Admitted) else {
            panic!("it passed")
        };
        prop_assert!(remaining <= capacity);
        prop_assert_eq!(remaining == capacity, standing.remaining == part.capacity());
        prop_assert_eq!(remaining == 0, standing.remaining == 0);
        // Never more than this shard's share of it says, and less than one more of its units.
        let share = u128::from(standing.remaining) * u128::from(capacity);
        prop_assert!(u128::from(remaining) * u128::from(part.capacity()) <= share);
        prop_assert!(u128::from(remaining + 1) * u128::from(part.capacity()) > share);
        let next_us = next_unit_us(&part, &standing);
        prop_assert!(reset_us >= next_us);
        let window_us = Advertised::from(&whole).window_s.unwrap() * 1_000_000;
        prop_assert!(reset_us <= next_us.max(window_us), "{} after {} and {}", reset_us, next_us, window_us);
    }

    #[test]
    fn the_more_a_shard_has_left_the_more_it_tells(
        capacity in 2_u64..5_000, shards in 2_u32..=64, turn in any::<u64>(), left in 0_u64..5_000, more in 0_u64..5_000,
    ) {
        let whole = bucket(capacity, "100/m");
        let Some((part, _)) = whole.shard(shards, turn) else { return Ok(()) };
        // A lease may tell of more than the shard can hold.
        let remaining_of = |remaining| {
            let standing = Standing { remaining, fit: Fit::Now, full_us: 0 };
            match told(whole, part, standing, Outcome::Admitted) {
                State::Passed { remaining, .. } => remaining,
                other => panic!("{other:?}"),
            }
        };
        prop_assert!(remaining_of(left) <= remaining_of(left + more));
        prop_assert_eq!(remaining_of(u64::MAX), capacity);
    }

    #[test]
    fn a_bucket_in_one_piece_tells_of_itself(capacity in 1_u64..5_000, count in 1_u64..5_000, spent in 1_u64..5_000) {
        let quota = bucket(capacity, &format!("{count}/m"));
        let standing = Bucket::full(&quota, START).charge(&quota, spent.min(capacity)).standing(&quota, 1, START);
        prop_assert_eq!(told(quota, quota, standing, Outcome::Admitted), State::passed(&quota, &standing));
        let refused = told(quota, quota, standing, Outcome::Refused);
        prop_assert_eq!(refused, State::violated(&standing));
    }
}
