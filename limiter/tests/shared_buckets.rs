//! Claims about clients of different plans that share a bucket.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that panics has failed")]

mod world;

use core::time::Duration;

use limiter::decision::Verdict;
use limiter::policy::{Limit, Plan, Policy, Source, Sync};
use limiter::quota::TokenBucket;
use world::{LEASE, OPEN, World, policy, request_of};

fn bucket(capacity: u64, rate: &str) -> Limit {
    Limit::TokenBucket(TokenBucket::new(capacity, rate.parse().unwrap()).unwrap())
}

/// One bucket for both plans.
fn planned(own: Limit, gold: Limit, sync: Sync) -> Policy {
    let plan =
        Plan { from: vec![Source::Header("x-plan".to_owned())], limits: vec![("gold".to_owned(), gold)] };
    Policy { limit: own, plan: Some(plan), ..policy("p", 1, sync) }
}

fn passes(world: &mut World, is_gold: bool) -> bool {
    let mut request = request_of("x");
    if is_gold {
        request.headers.push(("x-plan".to_owned(), b"gold".to_vec()));
    }
    let (number, decision) = world.arrive_with(&mut request);
    let decision = decision.unwrap_or_else(|| {
        world.answer_all();
        world.decided.remove(&number).expect("the store has answered")
    });
    decision.verdict == Verdict::Admit
}

/// How many requests of the greater plan pass in a minute in which one comes each second, after the bucket is used up.
fn golden_minute(sync: Sync, with_others: bool) -> usize {
    let mut world = World::new(vec![planned(bucket(1, "1/d"), bucket(10, "1/s"), sync)]);
    while passes(&mut world, true) {}
    let mut passed = 0;
    for _ in 0..60 {
        for _ in 0..10 {
            world.tick_after(Duration::from_millis(100));
            world.answer_all();
        }
        if with_others {
            assert!(!passes(&mut world, false), "the lesser plan is used up");
        }
        passed += usize::from(passes(&mut world, true));
    }
    passed
}

#[test]
fn refused_requests_of_a_lesser_plan_take_nothing_from_a_greater_one() {
    for sync in [Sync::Local, OPEN, LEASE, Sync::Async] {
        let (alone, beside_others) = (golden_minute(sync, false), golden_minute(sync, true));
        assert!(beside_others + 2 >= alone, "{sync:?}: {beside_others} of {alone}");
    }
}

/// The most that passes in so many seconds of a client who uses whichever plan lets him.
fn most(sync: Sync, seconds: u32, own: Limit, gold: Limit) -> u64 {
    let mut world = World::new(vec![planned(own, gold, sync)]);
    let mut passed = 0;
    for _ in 0..=seconds {
        for is_gold in [true, false] {
            while passes(&mut world, is_gold) {
                passed += 1;
            }
        }
        for _ in 0..10 {
            world.tick_after(Duration::from_millis(100));
            world.answer_all();
        }
    }
    passed
}

#[test]
fn whoever_changes_plan_gets_no_more_than_the_greater_of_each_part() {
    for sync in [Sync::Local, OPEN, LEASE, Sync::Async] {
        let passed = most(sync, 20, bucket(5, "50/s"), bucket(100, "1/d"));
        assert!(passed <= 100 + 50 * 21, "{sync:?}: {passed}");
    }
}
