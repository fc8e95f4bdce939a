//! Claims about plans, whose limits share a client's bucket, and about shards, which share a limit.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed"
)]
#![allow(dead_code, reason = "the world is shared with other tests")]

mod world;

use core::time::Duration;

use limiter::decision::Verdict;
use limiter::policy::{Limit, OnFailure, Plan, Policy, Source, Sync};
use limiter::quota::TokenBucket;
use limiter::request::Given;
use world::{OPEN, World, policy, request_of};

const SYNCS: [Sync; 4] = [OPEN, Sync::Lease(OnFailure::Open), Sync::Async, Sync::Local];

fn bucket(capacity: u64, rate: &str) -> TokenBucket {
    TokenBucket::new(capacity, rate.parse().unwrap()).unwrap()
}

fn request(plan: &str) -> Given {
    let mut request = request_of("k");
    request.headers.push(("x-plan".to_owned(), plan.as_bytes().to_vec()));
    request
}

/// 20 tokens, and 100 for the plan gold; both come back at `rate`.
fn planned(sync: Sync, rate: &str) -> Policy {
    let limits = vec![("gold".to_owned(), Limit::TokenBucket(bucket(100, rate)))];
    let plan = Some(Plan { from: vec![Source::Header("x-plan".into())], limits });
    Policy { plan, limit: Limit::TokenBucket(bucket(20, rate)), ..policy("p", 20, sync) }
}

fn is_admitted(world: &mut World, plan: &str) -> bool {
    world.request_with(&mut request(plan)).verdict == Verdict::Admit
}

#[test]
fn a_client_that_gets_a_greater_plan_keeps_what_it_has_spent() {
    for sync in SYNCS {
        let mut world = World::new(vec![planned(sync, "1/d")]);
        let small = (0..30).filter(|_| is_admitted(&mut world, "free")).count();
        // A refusal of the smaller limit is believed for a second where the store is asked.
        world.tick_after(Duration::from_secs(2));
        world.answer_all();
        let great = (0..120).filter(|_| is_admitted(&mut world, "gold")).count();
        assert_eq!((small, small + great), (20, 100), "{sync:?}");
        assert!(!is_admitted(&mut world, "free"), "{sync:?}");
    }
}

#[test]
fn changing_plans_with_every_request_gets_no_more_than_the_greatest_gives() {
    for sync in SYNCS {
        let mut world = World::new(vec![planned(sync, "60/m")]);
        let mut admitted = 0;
        for step in 0..2_000_u32 {
            admitted += u32::from(is_admitted(&mut world, if step % 2 == 0 { "gold" } else { "free" }));
            world.tick_after(Duration::from_millis(10));
            world.answer_all();
        }
        // 20 s of a token each.
        println!("{sync:?}: {admitted}");
        assert!((90..=120).contains(&admitted), "{sync:?}: {admitted}");
    }
}

#[test]
fn shards_admit_the_limit_together_and_not_more() {
    for sync in &SYNCS[..3] {
        let limit = Limit::TokenBucket(bucket(100, "8/d"));
        let sharded = Policy { shards: 8, limit, ..policy("p", 100, *sync) };
        let mut world = World::new(vec![sharded]);
        let admitted = (0..1_000).filter(|_| world.request("k").verdict == Verdict::Admit).count();
        // A refusal is believed for a second, in which a lease may hold what is left.
        let least = if matches!(sync, Sync::Lease(_)) { 95 } else { 100 };
        assert!((least..=100).contains(&admitted), "{sync:?}: {admitted}");
    }
}

#[test]
fn what_cannot_be_split_is_counted_whole() {
    for (capacity, rate) in [(100, "1/d"), (7, "8/d")] {
        let limit = Limit::TokenBucket(bucket(capacity, rate));
        let mut world = World::new(vec![Policy { shards: 8, limit, ..policy("p", 100, OPEN) }]);
        let admitted = (0..1_000).filter(|_| world.request("k").verdict == Verdict::Admit).count();
        assert_eq!(admitted as u64, capacity);
    }
}
