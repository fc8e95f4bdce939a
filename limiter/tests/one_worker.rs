//! Claims about the state machine of one worker, from a request's arrival to its decision.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed"
)]

mod world;

use core::time::Duration;

use limiter::calls::{MAX_CALLS, MAX_WAITING};
use limiter::decision::Outcome::{Admitted, Refused, ShadowRefused, Spared, Unavailable, Unprotected};
use limiter::decision::{Outcome, Verdict};
use limiter::policy::{Limit, Policy, Sync};
use limiter::wire::{MAX_BATCH_CHARGES, MAX_BODY_BYTES, MAX_TAKES, TakeReply, Taken};
use proptest::prelude::*;
use world::{OPEN, TIMEOUT, World, closed, outcomes, policy};

#[test]
fn lone_request_leaves_at_once() {
    let mut world = World::new(vec![policy("a", 2, OPEN)]);
    let (request, decision) = world.arrive("x");
    assert_eq!(decision, None);
    assert_eq!(world.calls.len(), 1);
    world.answer_all();
    assert_eq!(world.decided[&request].verdict, Verdict::Admit);
    assert_eq!(world.decided[&request].marks[0].standing.unwrap().remaining, 1);
    assert!(!world.limiter.needs_tick());
}

#[test]
fn requests_that_arrive_while_calls_are_under_way_share_the_next() {
    let mut world = World::new(vec![policy("a", 1_000, OPEN)]);
    for _ in 0..MAX_CALLS + 10 {
        world.arrive("x");
    }
    assert_eq!(world.calls.len(), MAX_CALLS);
    world.answer_first();
    let (_, batch) = world.calls.last().unwrap();
    assert_eq!(batch.takes.len(), 10);
    world.answer_all();
    assert_eq!(world.decided.len(), MAX_CALLS + 10);
    assert_eq!(world.left("x", 0), 1_000 - 10 - MAX_CALLS as u64);
}

#[test]
fn a_call_is_bounded_by_its_takes_its_charges_and_its_bytes() {
    let long: &'static str = Box::leak("k".repeat(96).into_boxed_str());
    for (policies, client) in [(1, "x"), (5, "x"), (16, long)] {
        let names = (0..policies).map(|index| format!("{index:02}-{}", "p".repeat(60)));
        let mut world = World::new(names.map(|name| policy(&name, 9_000, OPEN)).collect());
        for _ in 0..MAX_CALLS + 3 * MAX_TAKES {
            world.arrive(client);
        }
        let mut largest = (0, 0);
        while !world.calls.is_empty() {
            let (_, request) = &world.calls[0];
            let charges: usize = request.takes.iter().map(|take| take.charges.len()).sum();
            assert!(request.takes.len() <= MAX_TAKES && charges <= MAX_BATCH_CHARGES);
            assert!(request.write().len() <= MAX_BODY_BYTES);
            largest = largest.max((request.takes.len(), charges));
            world.answer_first();
        }
        assert_eq!(largest.0, MAX_TAKES.min(MAX_BATCH_CHARGES / policies), "as many as may be share a call");
        assert_eq!(world.decided.len(), MAX_CALLS + 3 * MAX_TAKES);
    }
}

#[test]
fn a_request_that_gave_up_in_the_queue_is_not_asked_for() {
    let mut world = World::new(vec![policy("a", 9_000, OPEN)]);
    for _ in 0..MAX_CALLS {
        world.arrive("x");
    }
    world.arrive("x");
    world.tick_after(TIMEOUT);
    assert_eq!(world.decided.len(), MAX_CALLS + 1);
    while !world.calls.is_empty() {
        let (_, request) = &world.calls[0];
        assert!(request.takes.iter().all(|take| take.charges.len() == 1), "{request:?}");
        world.answer_first();
    }
    assert_eq!(world.left("x", 0), 9_000 - MAX_CALLS as u64);
}

#[test]
fn a_local_policy_alone_asks_nobody() {
    let mut world = World::new(vec![policy("a", 1, Sync::Local)]);
    let (_, decision) = world.arrive("x");
    assert_eq!(outcomes(&decision.unwrap()), [(0, Admitted)]);
    let (_, decision) = world.arrive("x");
    assert_eq!(outcomes(&decision.unwrap()), [(0, Refused)]);
    assert!(world.calls.is_empty() && !world.limiter.needs_tick());
}

#[test]
fn a_local_denial_costs_no_call() {
    let mut world = World::new(vec![policy("exact", 9, OPEN), policy("local", 1, Sync::Local)]);
    world.request("x");
    let (_, decision) = world.arrive("x");
    assert_eq!(outcomes(&decision.unwrap()), [(0, Spared), (1, Refused)]);
    assert!(world.calls.is_empty());
    assert_eq!(world.left("x", 0), 8);
}

#[test]
fn a_denial_names_every_policy_that_denies() {
    let mut world = World::new(vec![
        policy("one", 1, Sync::Local),
        policy("roomy", 9, Sync::Local),
        policy("two", 1, Sync::Local),
    ]);
    world.request("x");
    assert_eq!(outcomes(&world.request("x")), [(0, Refused), (1, Spared), (2, Refused)]);
    let mut world =
        World::new(vec![policy("one", 1, OPEN), policy("roomy", 9, OPEN), policy("two", 1, OPEN)]);
    world.request("x");
    assert_eq!(outcomes(&world.request("x")), [(0, Refused), (1, Spared), (2, Refused)]);
}

#[test]
fn a_blocked_policy_denies_before_anything_is_taken() {
    let blocked = Policy { limit: Limit::Blocked, ..policy("blocked", 1, Sync::Local) };
    let mut world = World::new(vec![policy("local", 3, Sync::Local), policy("exact", 3, OPEN), blocked]);
    let (_, decision) = world.arrive("x");
    let decision = decision.unwrap();
    assert_eq!(decision.verdict, Verdict::Refuse);
    assert_eq!(outcomes(&decision), [(0, Spared), (1, Spared), (2, Refused)]);
    assert_eq!((world.left("x", 0), world.left("x", 1)), (3, 3));
}

#[test]
fn a_shadow_policy_is_counted_and_never_refuses() {
    for sync in [Sync::Local, OPEN, closed(1)] {
        let shadow = Policy { shadow: true, ..policy("shadow", 1, sync) };
        let mut world = World::new(vec![shadow, policy("real", 3, OPEN)]);
        assert_eq!(outcomes(&world.request("x")), [(0, Admitted), (1, Admitted)]);
        assert_eq!(outcomes(&world.request("x")), [(0, ShadowRefused), (1, Admitted)]);
        assert_eq!(world.request("x").verdict, Verdict::Admit);
        assert_eq!(outcomes(&world.request("x")), [(0, ShadowRefused), (1, Refused)]);
        assert_eq!((world.left("x", 0), world.left("x", 1)), (0, 0));
    }
}

#[test]
fn each_policy_says_what_becomes_of_a_request_when_nobody_answers() {
    let after = |policies: Vec<Policy>| {
        let mut world = World::new(policies);
        let (request, _) = world.arrive("x");
        world.fail_first();
        let decision = world.decided.remove(&request).unwrap();
        let left =
            (0..world.limiter.policies().len()).map(|index| world.left("x", index)).collect::<Vec<_>>();
        (
            decision.verdict,
            outcomes(&decision).into_iter().map(|(_, outcome)| outcome).collect::<Vec<Outcome>>(),
            left,
        )
    };
    let retry = |seconds| Verdict::Unavailable { retry_after: Duration::from_secs(seconds) };
    let local = || policy("local", 5, Sync::Local);
    assert_eq!(
        after(vec![local(), policy("open", 5, OPEN)]),
        (Verdict::Admit, vec![Admitted, Unprotected], vec![4, 5])
    );
    assert_eq!(
        after(vec![local(), policy("open", 5, OPEN), policy("c3", 5, closed(3)), policy("c7", 5, closed(7))]),
        (retry(7), vec![Spared, Spared, Unavailable, Unavailable], vec![5, 5, 5, 5])
    );
    let watched = Policy { shadow: true, ..policy("watched", 5, closed(3)) };
    assert_eq!(after(vec![watched]), (Verdict::Admit, vec![Unprotected], vec![5]));
}

#[test]
fn no_request_waits_longer_than_its_timeout() {
    let mut world = World::new(vec![policy("a", 1_000, closed(1))]);
    let asked: Vec<u32> = (0..MAX_CALLS).map(|_| world.arrive("x").0).collect();
    world.tick_after(TIMEOUT / 2);
    let (queued, _) = world.arrive("x");
    world.tick_after(TIMEOUT / 2);
    assert!(
        asked.iter().all(|request| matches!(world.decided[request].verdict, Verdict::Unavailable { .. }))
    );
    assert!(!world.decided.contains_key(&queued));
    world.tick_after(TIMEOUT / 2);
    assert!(matches!(world.decided[&queued].verdict, Verdict::Unavailable { .. }));
    // The queued one was never asked for, so nothing more is asked when the calls end.
    world.answer_all();
    assert_eq!(world.left("x", 0), 1_000 - MAX_CALLS as u64);
    assert!(!world.limiter.needs_tick());
}

#[test]
fn a_late_or_double_answer_decides_nothing() {
    let mut world = World::new(vec![policy("a", 5, OPEN)]);
    let (request, _) = world.arrive("x");
    let (call, asked) = world.calls.remove(0);
    world.tick_after(TIMEOUT);
    assert_eq!(outcomes(&world.decided[&request]), [(0, Unprotected)]);
    let reply = world.store.decide(&asked, world.now);
    world.reply(call, reply.clone());
    world.reply(call, reply);
    world.fail(call);
    assert_eq!(world.decided.len(), 1);
    assert_eq!(outcomes(&world.request("x")), [(0, Admitted)]);
}

#[test]
fn an_answer_that_does_not_fit_the_question_is_a_failure() {
    let decided = |charges| Taken::Decided { admitted: true, charges };
    let charged =
        limiter::wire::Charged { remaining: 1, wait_us: Some(0), full_us: 0, granted: 0, proxies: 0 };
    for takes in [
        vec![],
        vec![decided(vec![charged]), decided(vec![charged])],
        vec![decided(vec![])],
        vec![decided(vec![charged, charged])],
        vec![Taken::Failed { error: "unreadable".to_owned() }],
        vec![decided(vec![limiter::wire::Charged { wait_us: Some(9), ..charged }])],
        vec![Taken::Decided { admitted: false, charges: vec![charged] }],
    ] {
        let mut world = World::new(vec![policy("a", 5, OPEN)]);
        let (request, _) = world.arrive("x");
        let (call, _) = world.calls.remove(0);
        world.reply(call, TakeReply { takes });
        assert_eq!(outcomes(&world.decided[&request]), [(0, Unprotected)]);
    }
}

#[test]
fn a_client_that_leaves_before_it_was_asked_for_is_charged_nothing() {
    let mut world = World::new(vec![policy("local", 90, Sync::Local), policy("exact", 90, OPEN)]);
    for _ in 0..MAX_CALLS {
        world.arrive("x");
    }
    let (queued, _) = world.arrive("x");
    world.leave(queued);
    world.answer_all();
    let charged = 90 - MAX_CALLS as u64;
    assert_eq!((world.left("x", 0), world.left("x", 1)), (charged, charged));
    assert!(!world.decided.contains_key(&queued));
}

#[test]
fn a_client_that_leaves_while_it_is_asked_for_is_charged_everywhere_or_nowhere() {
    for capacity in [1, 2] {
        let mut world = World::new(vec![policy("local", 9, Sync::Local), policy("exact", capacity, OPEN)]);
        world.request("x");
        let (request, _) = world.arrive("x");
        world.leave(request);
        world.answer_all();
        assert!(!world.decided.contains_key(&request));
        assert_eq!(9 - world.left("x", 0), capacity - world.left("x", 1));
    }
}

#[test]
fn waiting_requests_are_bounded_and_the_next_is_a_failure() {
    let mut world = World::new(vec![policy("a", 1, OPEN)]);
    for _ in 0..MAX_WAITING {
        assert_eq!(world.arrive("x").1, None);
    }
    let (_, decision) = world.arrive("x");
    assert_eq!(outcomes(&decision.unwrap()), [(0, Unprotected)]);
    world.tick_after(TIMEOUT);
    assert_eq!(world.decided.len(), MAX_WAITING);
}

#[test]
fn calls_that_nobody_ends_do_not_block_the_way_for_ever() {
    let mut world = World::new(vec![policy("a", 50, OPEN)]);
    for _ in 0..MAX_CALLS {
        world.arrive("x");
    }
    world.calls.clear();
    world.tick_after(TIMEOUT);
    world.tick_after(Duration::from_secs(2));
    // So many failures have opened the breaker, and a probe finds out that the store decides.
    world.tick_after(Duration::from_secs(1));
    world.answer_all();
    assert_eq!(outcomes(&world.request("x")), [(0, Admitted)]);
}

/// Up to five policies, each local or exact, enforced or watched, roomy or tight.
fn policies() -> impl Strategy<Value = Vec<Policy>> {
    let one = (1_u64..4, any::<bool>(), proptest::bool::weighted(0.2));
    proptest::collection::vec(one, 1..6).prop_map(|drawn| {
        let make = |(index, (capacity, is_local, shadow)): (usize, (u64, bool, bool))| {
            let sync = if is_local { Sync::Local } else { OPEN };
            Policy { shadow, ..policy(&format!("p{index}"), capacity, sync) }
        };
        drawn.into_iter().enumerate().map(make).collect()
    })
}

proptest! {
    #[test]
    fn a_request_is_charged_on_all_policies_or_on_none(policies in policies(), requests in 1_usize..8) {
        let count = policies.len();
        let mut world = World::new(policies);
        for _ in 0..requests {
            let before: Vec<u64> = (0..count).map(|index| world.left("x", index)).collect();
            let decision = world.request("x");
            prop_assert_eq!(decision.marks.len(), count);
            let denied = (0..count).any(|index| before[index] == 0 && !world.limiter.policies()[index].shadow);
            prop_assert_eq!(decision.verdict == Verdict::Refuse, denied);
            for mark in &decision.marks {
                let charged = before[mark.policy] - world.left("x", mark.policy);
                prop_assert_eq!(charged, u64::from(mark.outcome == Admitted), "{:?}", decision);
                prop_assert!(decision.verdict == Verdict::Admit || mark.outcome != Admitted);
            }
        }
    }
}
