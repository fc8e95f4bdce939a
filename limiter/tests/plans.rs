//! Claims about plans, each of which has a bucket for each client, and about shards, which share a limit.
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
fn every_plan_has_a_bucket_of_its_own() {
    for sync in SYNCS {
        let mut world = World::new(vec![planned(sync, "1/d")]);
        let admitted =
            |world: &mut World, plan, count| (0..count).filter(|_| is_admitted(world, plan)).count();
        assert_eq!(admitted(&mut world, "free", 30), 20, "{sync:?}");
        assert_eq!(admitted(&mut world, "gold", 120), 100, "{sync:?}");
        assert_eq!(admitted(&mut world, "unknown", 1), 0, "{sync:?}: the policy's own limit");
    }
}

#[test]
fn refused_requests_of_a_lesser_plan_take_nothing_from_a_greater_one() {
    for sync in SYNCS {
        let minute = |with_others| {
            let mut world = World::new(vec![planned(sync, "60/m")]);
            for plan in ["free", "gold"] {
                while is_admitted(&mut world, plan) {}
            }
            let mut passed = 0;
            for _ in 0..60 {
                for _ in 0..10 {
                    world.tick_after(Duration::from_millis(100));
                    world.answer_all();
                    if with_others {
                        is_admitted(&mut world, "free");
                    }
                }
                passed += u32::from(is_admitted(&mut world, "gold"));
            }
            passed
        };
        let (alone, beside_others) = (minute(false), minute(true));
        assert!(beside_others + 2 >= alone, "{sync:?}: {beside_others} of {alone}");
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
