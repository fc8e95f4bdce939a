//! Claims about what is let through without asking: `async`, shares, and the breaker.
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

use limiter::decision::Outcome::{Admitted, Refused, Unavailable, Unprotected};
use limiter::policy::{Limit, OnFailure, Policy, Sync};
use limiter::quota::TokenBucket;
use limiter::wire::{self, Charge, Report, Take, TakeRequest};
use world::{OPEN, TIMEOUT, World, closed, leased, outcomes, policy};

const MS: Duration = Duration::from_millis(1);
const SHARE: Sync = Sync::Exact(OnFailure::Share);

/// Calls fail one after the other until no request waits any more.
fn break_down(world: &mut World, client: &'static str) {
    for _ in 0..3 {
        world.arrive(client);
        world.fail_first();
    }
}

/// A probe leaves, and is answered.
fn come_back(world: &mut World) {
    world.tick_after(200 * MS);
    world.answer_all();
}

fn limit_of(policy: &Policy) -> TokenBucket {
    let Limit::TokenBucket(quota) = policy.limit else { panic!("a policy without a bucket") };
    quota
}

/// Another proxy tells the store that it is there, and what it has let through.
fn another_proxy(world: &mut World, client: &str, name: &str, tokens: u64) {
    let policy = world.limiter.policies()[0].clone();
    let charge = Charge {
        key: format!("rl:{{{client}}}:{}", policy.name),
        limit: wire::Limit::TokenBucket(limit_of(&policy)),
        cost: 0,
        shadow: false,
        lease: None,
        report: Some(Report { holder: name.to_owned(), from: 0, to: tokens, ttl_us: 10_000_000 }),
    };
    world.store.decide(&TakeRequest { takes: vec![Take { charges: vec![charge] }] }, world.now);
}

/// Of so many requests, how many pass at once.
fn passing(world: &mut World, client: &'static str, requests: usize) -> usize {
    (0..requests)
        .filter(|_| outcomes(&world.arrive(client).1.expect("nobody waits")) == [(0, Admitted)])
        .count()
}

#[test]
fn after_three_failures_in_a_row_no_request_waits() {
    for (sync, outcome) in [(OPEN, Unprotected), (closed(5), Unavailable)] {
        let mut world = World::new(vec![policy("a", 9, sync)]);
        break_down(&mut world, "x");
        assert_eq!(world.limiter.take_opened(), 1);
        for _ in 0..100 {
            let (_, decision) = world.arrive("x");
            assert_eq!(outcomes(&decision.expect("it is decided at once")), [(0, outcome)]);
        }
        assert!(world.calls.is_empty());
    }
}

#[test]
fn what_waits_behind_a_call_when_the_breaker_opens_waits_no_longer() {
    let mut world = World::new(vec![policy("a", 9, closed(5))]);
    for _ in 0..600 {
        world.arrive("x");
    }
    for _ in 0..3 {
        world.fail_first();
    }
    // Only what was asked may still be answered.
    let asked: usize = world.calls.iter().map(|(_, request)| request.takes.len()).sum();
    assert!(asked < 400);
    assert_eq!(world.decided.len(), 600 - asked);
    world.answer_all();
    assert_eq!(world.decided.len(), 600);
}

#[test]
fn a_probe_takes_nothing_and_an_answer_to_it_closes_the_breaker() {
    let mut world = World::new(vec![policy("a", 9, OPEN)]);
    break_down(&mut world, "x");
    for _ in 0..5 {
        world.tick_after(200 * MS);
        assert_eq!(world.calls.len(), 1, "one probe at a time");
        world.fail_first();
        assert!(world.arrive("x").1.is_some());
    }
    come_back(&mut world);
    assert_eq!(world.left("x", 0), 9);
    assert_eq!(outcomes(&world.request("x")), [(0, Admitted)]);
    assert_eq!(world.left("x", 0), 8);
}

#[test]
fn a_share_is_this_proxys_part_of_what_was_left() {
    let mut world = World::new(vec![policy("a", 90, SHARE)]);
    another_proxy(&mut world, "x", "second", 20);
    another_proxy(&mut world, "x", "third", 10);
    // 60 are left, 1 for this request, and 3 proxies are there.
    assert_eq!(outcomes(&world.request("x")), [(0, Admitted)]);
    assert_eq!(world.left("x", 0), 59);
    let (_, decision) = world.arrive("x");
    assert_eq!(decision, None);
    world.fail_first();
    let first = world.decided.values().next().expect("decided by its share");
    assert_eq!(outcomes(first), [(0, Admitted)]);
    assert_eq!(first.marks[0].standing.unwrap().remaining, 18);
    assert_eq!(1 + passing_while_failing(&mut world), 59 / 3);
}

/// Requests that pass from now on, while every call fails.
fn passing_while_failing(world: &mut World) -> usize {
    for _ in 0..2 {
        world.arrive("x");
        world.fail_first();
    }
    let failing = world.decided.values().skip(1).filter(|one| outcomes(one) == [(0, Admitted)]).count();
    failing + passing(world, "x", 200)
}

#[test]
fn what_a_share_let_through_is_charged_when_the_store_is_back() {
    let mut world = World::new(vec![policy("a", 90, SHARE)]);
    another_proxy(&mut world, "x", "second", 0);
    world.request("x");
    break_down(&mut world, "x");
    assert_eq!(passing(&mut world, "x", 10), 10);
    assert_eq!(world.left("x", 0), 89);
    come_back(&mut world);
    world.tick_after(Duration::from_secs(1));
    world.answer_all();
    // Three requests that failed and ten after them.
    assert_eq!(world.left("x", 0), 89 - 13);
    assert_eq!(outcomes(&world.request("x")), [(0, Admitted)]);
    assert_eq!(world.left("x", 0), 75);
}

#[test]
fn a_share_below_one_request_lets_one_through_and_no_more_until_it_is_paid_back() {
    let mut tight = policy("a", 2, SHARE);
    tight.limit = Limit::TokenBucket(TokenBucket::new(2, "1/s".parse().unwrap()).unwrap());
    let mut world = World::new(vec![tight]);
    for name in ["second", "third", "fourth", "fifth"] {
        another_proxy(&mut world, "x", name, 0);
    }
    world.request("x");
    world.tick_after(Duration::from_secs(9));
    break_down(&mut world, "x");
    assert_eq!(passing(&mut world, "x", 10), 0, "one of the failed ones has passed");
    // A fifth of one token a second.
    world.tick_after(Duration::from_millis(4_900));
    assert_eq!(passing(&mut world, "x", 10), 0);
    world.tick_after(Duration::from_millis(101));
    assert_eq!(passing(&mut world, "x", 10), 1);
}

#[test]
fn leased_tokens_are_spent_before_the_share() {
    let mut one = leased("a", 1_000, "1/d");
    one.sync = Sync::Lease(OnFailure::Share);
    let mut world = World::new(vec![one]);
    for _ in 0..20 {
        world.request("x");
    }
    let taken = 1_000 - world.left("x", 0);
    another_proxy(&mut world, "y", "second", 0);
    break_down(&mut world, "y");
    let passed = passing(&mut world, "x", 3_000) as u64;
    // All that was leased, and all that was left: for this key no other proxy was there.
    let left = 1_000 - taken;
    assert!(passed >= taken - 20 + left / 2 && passed <= taken - 20 + left, "{passed} of {taken} and {left}");
}

#[test]
fn async_never_waits_and_tells_the_store_once() {
    let mut world = World::new(vec![policy("a", 90, Sync::Async)]);
    for _ in 0..30 {
        let (_, decision) = world.arrive("x");
        assert_eq!(outcomes(&decision.expect("it never waits")), [(0, Admitted)]);
    }
    assert_eq!(world.calls.len(), 1, "a new key is asked about at once, and once");
    world.answer_all();
    world.tick_after(Duration::from_secs(1));
    assert_eq!(world.calls.len(), 1);
    // The report comes twice.
    let again = world.calls[0].1.clone();
    world.store.decide(&again, world.now);
    world.answer_all();
    assert_eq!(world.left("x", 0), 60);
    world.tick_after(Duration::from_secs(1));
    assert!(world.calls.is_empty(), "there is nothing more to tell");
}

#[test]
fn a_report_that_is_lost_is_covered_by_the_next() {
    let mut world = World::new(vec![policy("a", 90, Sync::Async)]);
    passing(&mut world, "x", 1);
    world.answer_all();
    passing(&mut world, "x", 5);
    world.tick_after(Duration::from_secs(1));
    world.fail_first();
    passing(&mut world, "x", 4);
    world.tick_after(Duration::from_secs(1));
    world.answer_all();
    let charge = Charge {
        key: "rl:{x}:a".to_owned(),
        limit: wire::Limit::TokenBucket(limit_of(&world.limiter.policies()[0])),
        cost: 1,
        shadow: false,
        lease: None,
        report: None,
    };
    assert_eq!(world.store.standing(&charge, world.now).remaining, 80);
}

#[test]
fn async_hears_of_what_others_let_through() {
    let mut world = World::new(vec![policy("a", 90, Sync::Async)]);
    passing(&mut world, "x", 10);
    another_proxy(&mut world, "x", "second", 70);
    world.answer_all();
    assert_eq!(passing(&mut world, "x", 20), 10);
    // What the other one lets through beyond the limit has to come back first.
    another_proxy(&mut world, "x", "second", 100);
    world.tick_after(Duration::from_secs(1));
    world.answer_all();
    assert_eq!(passing(&mut world, "x", 20), 0);
}

#[test]
fn async_uses_its_share_once_the_store_is_silent_for_longer_than_the_timeout() {
    let mut world = World::new(vec![policy("a", 90, Sync::Async)]);
    another_proxy(&mut world, "x", "second", 0);
    passing(&mut world, "x", 1);
    world.answer_all();
    world.tick_after(Duration::from_secs(1));
    assert_eq!(passing(&mut world, "x", 9), 9);
    world.tick_after(TIMEOUT + MS);
    // 80 are left, for two.
    assert_eq!(passing(&mut world, "x", 200), 40);
}

#[test]
fn a_request_that_another_policy_denies_is_not_reported() {
    let mut world = World::new(vec![policy("a", 90, Sync::Async), policy("b", 1, OPEN)]);
    world.request("x");
    for _ in 0..10 {
        assert_eq!(outcomes(&world.request("x"))[1], (1, Refused));
    }
    world.tick_after(Duration::from_secs(1));
    world.answer_all();
    assert_eq!(world.left("x", 0), 89);
}

#[test]
fn what_the_limit_itself_lets_through_in_an_outage_is_not_taken_from_it_again() {
    for (sync, mates) in [(SHARE, 0), (SHARE, 1), (Sync::Async, 0), (Sync::Async, 1)] {
        let mut limited = policy("a", 10, sync);
        limited.limit = Limit::TokenBucket(TokenBucket::new(10, "1/s".parse().unwrap()).unwrap());
        let mut world = World::new(vec![limited]);
        for name in ["second"].iter().take(mates) {
            another_proxy(&mut world, "x", name, 0);
        }
        world.request("x");
        world.answer_all();
        break_down_by_reports(&mut world);
        // A hundred seconds at more than the limit.
        let mut passed = 0;
        for _ in 0..200 {
            passed += passing(&mut world, "x", 1);
            world.now = world.now.after(500 * MS);
        }
        let share = 100 / (1 + mates);
        assert!((share..=share + 10).contains(&passed), "{passed} of {share} with {sync:?}");
        come_back(&mut world);
        for _ in 0..3 {
            world.tick_after(Duration::from_secs(1));
            world.answer_all();
        }
        // The bucket is as if the store had counted all of it: empty but for what came back since.
        let left = world.left("x", 0);
        assert!((2..=10).contains(&left), "{left} left with {sync:?} and {mates} more");
    }
}

/// Calls fail until no request waits, whoever makes them.
fn break_down_by_reports(world: &mut World) {
    for _ in 0..3 {
        world.tick_after(Duration::from_secs(2));
        world.arrive("x");
        while !world.calls.is_empty() {
            world.fail_first();
        }
    }
}

#[test]
fn a_share_beside_leases_is_of_what_renewals_have_left() {
    let mut one = leased("a", 1_000, "1/d");
    one.sync = Sync::Lease(OnFailure::Share);
    let mut world = World::new(vec![one]);
    for _ in 0..900 {
        world.request("x");
        world.tick_after(5 * MS);
        world.answer_all();
    }
    assert!(world.left("x", 0) < 100);
    break_down(&mut world, "y");
    assert_eq!(900 + passing(&mut world, "x", 3_000), 1_000);
}

#[test]
fn thousands_of_keys_that_are_due_at_once_are_all_reported_and_none_falls_back_to_a_share() {
    let mut world = World::new(vec![policy("a", 90, Sync::Async)]);
    let clients: Vec<&'static str> =
        (0..3_000).map(|client| &*Box::leak(format!("c{client}").into_boxed_str())).collect();
    for client in &clients {
        another_proxy(&mut world, client, "second", 0);
        world.arrive(client);
        world.answer_all();
    }
    for client in &clients {
        world.arrive(client);
    }
    world.tick_after(Duration::from_secs(1));
    for _ in 0..12 {
        assert!(world.calls.len() <= 4);
        world.answer_all();
        // Longer than anything but a report that has not left may take.
        world.tick_after(TIMEOUT + MS);
    }
    world.answer_all();
    for client in clients {
        assert_eq!(world.left(client, 0), 88);
        // Two proxies are there: were this one to use its share, it would see half of it.
        let (_, decision) = world.arrive(client);
        assert_eq!(decision.unwrap().marks[0].standing.unwrap().remaining, 87);
    }
}

#[test]
fn what_a_worker_held_when_it_died_comes_back_though_the_client_goes_on() {
    let mut counted = leased("a", 20, "10/s");
    counted.sync = Sync::Async;
    let asked = leased("b", 1_000, "1000/s");
    let mut world = World::new(vec![counted, Policy { sync: closed(1), ..asked }]);
    world.request("x");
    for _ in 0..15 {
        assert_eq!(world.arrive("x").1, None);
    }
    world.crash();
    for _ in 0..100 {
        world.request("x");
        world.tick_after(Duration::from_millis(200));
        world.answer_all();
    }
    world.tick_after(500 * MS);
    world.answer_all();
    assert_eq!(world.request("x").marks[0].standing.unwrap().remaining, 19);
}

#[test]
fn what_is_counted_after_a_tally_was_given_up_is_charged_too() {
    let mut world = World::new(vec![policy("a", 90, Sync::Async)]);
    for _ in 0..2 {
        assert_eq!(passing(&mut world, "x", 5), 5);
        world.answer_all();
        world.tick_after(Duration::from_secs(1));
        world.answer_all();
        world.forget();
    }
    assert_eq!(world.left("x", 0), 80);
}

#[test]
fn a_key_that_nothing_is_known_of_is_shared_by_as_many_as_another_key_has_shown() {
    for sync in [SHARE, Sync::Async] {
        let mut world = World::new(vec![policy("a", 90, sync)]);
        for name in ["second", "third"] {
            another_proxy(&mut world, "x", name, 0);
        }
        world.request("x");
        world.answer_all();
        break_down_by_reports(&mut world);
        assert_eq!(passing(&mut world, "y", 200), 30, "{sync:?}");
    }
}
