//! Claims about leases, as one worker and a store that answers at once see them.
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

use limiter::bucket::Fit;
use limiter::decision::Outcome::{Admitted, Refused, Spared, Unprotected};
use limiter::decision::Verdict;
use limiter::policy::Sync;
use world::{TIMEOUT, World, closed, leased, outcomes, policy};

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_steady_client_far_from_its_limit_waits_a_few_times_and_then_never() {
    // 2,000 requests a second for five seconds.
    let mut world = World::new(vec![leased("a", 10_000, "10000/s")]);
    let (mut waited, mut late_waits, mut calls) = (0, 0, 0);
    for step in 0..10_000 {
        world.tick_after(MS / 2);
        calls += world.calls.len();
        world.answer_all();
        let (request, decision) = world.arrive("x");
        if decision.is_none() {
            waited += 1;
            late_waits += u32::from(step > 1_000);
        }
        calls += world.calls.len();
        world.answer_all();
        let decision = decision.unwrap_or_else(|| world.decided.remove(&request).unwrap());
        assert_eq!(decision.verdict, Verdict::Admit);
    }
    println!("waited {waited}, after the first half second {late_waits}, calls {calls}");
    assert!(waited <= 10 && late_waits == 0);
    assert!(calls <= 5 * 20);
}

#[test]
fn near_the_limit_a_lease_is_exact() {
    let mut world = World::new(vec![leased("a", 10, "1/d")]);
    let verdicts: Vec<Verdict> = (0..14).map(|_| world.request("x").verdict).collect();
    assert_eq!(verdicts.iter().filter(|verdict| **verdict == Verdict::Admit).count(), 10);
    assert!(verdicts[..10].iter().all(|verdict| *verdict == Verdict::Admit));
}

#[test]
fn a_refusal_is_believed_for_a_second_at_most() {
    let mut world = World::new(vec![leased("a", 1, "1/m")]);
    world.request("x");
    assert_eq!(outcomes(&world.request("x")), [(0, Refused)]);
    let mut asked = 0;
    for _ in 0..1_000 {
        world.tick_after(10 * MS);
        let (_, decision) = world.arrive("x");
        asked += world.calls.len();
        world.answer_all();
        if let Some(decision) = decision {
            assert_eq!(decision.verdict, Verdict::Refuse);
            let Fit::After(wait_us) = decision.marks[0].standing.unwrap().fit else { panic!() };
            assert!(wait_us <= 60_000_000);
        }
    }
    assert!((9..=11).contains(&asked), "{asked} calls in ten seconds");
}

#[test]
fn what_becomes_free_is_asked_for_at_once() {
    let mut world = World::new(vec![leased("a", 1, "10/s")]);
    world.request("x");
    assert_eq!(world.request("x").verdict, Verdict::Refuse);
    world.tick_after(99 * MS);
    assert_eq!(world.request("x").verdict, Verdict::Refuse);
    world.tick_after(2 * MS);
    assert_eq!(world.request("x").verdict, Verdict::Admit);
}

#[test]
fn a_client_far_above_its_limit_costs_a_call_a_token() {
    let mut world = World::new(vec![leased("a", 10, "10/s")]);
    let (mut admitted, mut calls) = (0, 0);
    for _ in 0..2_000 {
        world.tick_after(5 * MS);
        let (request, decision) = world.arrive("x");
        calls += world.calls.len();
        world.answer_all();
        let decision = decision.unwrap_or_else(|| world.decided.remove(&request).unwrap());
        admitted += u32::from(decision.verdict == Verdict::Admit);
    }
    println!("{admitted} admitted, {calls} calls in ten seconds");
    assert!((105..=110).contains(&admitted));
    assert!(calls <= admitted as usize + 10);
}

#[test]
fn a_healthy_store_above_the_limit_leaves_nobody_unprotected() {
    // The limit refills a token in each round trip and more, so that the store is never found empty for long.
    for rate in ["500/s", "2000/s", "10000/s"] {
        let capacity = rate.split('/').next().unwrap().parse().unwrap();
        let mut world = World::new(vec![leased("a", capacity, rate)]);
        let mut at_once = Vec::new();
        for step in 0..40_000_u32 {
            world.tick_after(MS / 20);
            at_once.extend(world.arrive("x").1);
            // A round trip of two milliseconds.
            if step % 40 == 0 {
                for _ in 0..world.calls.len() {
                    world.answer_first();
                }
            }
        }
        let decisions = at_once.iter().chain(world.decided.values());
        let count =
            |wanted: Verdict| decisions.clone().filter(|decision| decision.verdict == wanted).count() as u64;
        let unprotected =
            decisions.clone().filter(|decision| outcomes(decision) == [(0, Unprotected)]).count();
        println!(
            "{rate}: {} admitted, {} refused, {unprotected} unprotected",
            count(Verdict::Admit),
            count(Verdict::Refuse)
        );
        assert_eq!(unprotected, 0);
        assert!(count(Verdict::Admit) <= 3 * capacity + capacity / 5);
        assert!(count(Verdict::Admit) >= 29 * capacity / 10);
    }
}

#[test]
fn leases_that_end_at_different_times_all_go_back() {
    for gap in [1, 7, 20, 50] {
        let mut world = World::new(vec![leased("a", 1_000, "1/d")]);
        for _ in 0..20 {
            world.request("x");
            world.tick_after(gap * MS);
            world.answer_all();
        }
        for _ in 0..1_500 {
            world.tick_after(10 * MS);
            world.answer_all();
        }
        let left = world.left("x", 0);
        println!("requests {gap} ms apart: {left} of 980 left");
        assert!((975..=980).contains(&left));
        assert!(!world.limiter.needs_tick());
    }
}

#[test]
fn requests_for_a_key_wait_for_its_answer_first_come_first_served() {
    let mut world = World::new(vec![leased("a", 3, "1/d")]);
    let requests: Vec<u32> = (0..5).map(|_| world.arrive("x").0).collect();
    assert_eq!(world.calls.len(), 1, "one flight");
    let (other, _) = world.arrive("y");
    assert_eq!(world.calls.len(), 2, "another key has its own");
    world.answer_all();
    let verdict = |request: &u32| world.decided[request].verdict;
    assert_eq!(verdict(&other), Verdict::Admit);
    let verdicts: Vec<Verdict> = requests.iter().map(verdict).collect();
    let (first, last) = verdicts.split_at(3);
    assert!(first.iter().all(|verdict| *verdict == Verdict::Admit), "{verdicts:?}");
    assert!(last.iter().all(|verdict| *verdict == Verdict::Refuse), "{verdicts:?}");
}

#[test]
fn those_who_wait_for_an_answer_share_its_failure_and_their_own_deadline() {
    for by_tick in [false, true] {
        let mut world = World::new(vec![leased("a", 9, "1/d"), policy("local", 9, Sync::Local)]);
        let requests: Vec<u32> = (0..3).map(|_| world.arrive("x").0).collect();
        if by_tick {
            world.tick_after(TIMEOUT);
        } else {
            world.fail_first();
        }
        for request in requests {
            assert_eq!(outcomes(&world.decided[&request]), [(0, Unprotected), (1, Admitted)]);
        }
        assert_eq!(world.left("x", 1), 6);
    }
}

#[test]
fn a_closed_lease_spends_what_it_has_and_then_closes() {
    let closed_lease = limiter::policy::Policy {
        sync: Sync::Lease(limiter::policy::OnFailure::Closed { retry_after: Duration::from_secs(7) }),
        ..leased("a", 1_000, "1000/d")
    };
    let mut world = World::new(vec![closed_lease]);
    for _ in 0..5 {
        world.request("x");
    }
    let mut admitted = 0;
    let refused = loop {
        let (request, decision) = world.arrive("x");
        while !world.calls.is_empty() {
            world.fail_first();
        }
        match decision.or_else(|| world.decided.remove(&request)).unwrap().verdict {
            Verdict::Admit => admitted += 1,
            other => break other,
        }
    };
    assert!(admitted > 0);
    assert_eq!(refused, Verdict::Unavailable { retry_after: Duration::from_secs(7) });
}

#[test]
fn what_is_not_spent_goes_back() {
    let mut world = World::new(vec![leased("a", 1_000, "1/d")]);
    for _ in 0..20 {
        world.request("x");
    }
    // Ten seconds of life, of which the last quarter is for giving back.
    for _ in 0..1_100 {
        world.tick_after(10 * MS);
        world.answer_all();
    }
    // A worker's own slice is lost with its lease.
    let left = world.left("x", 0);
    println!("left {left} of 980");
    assert!((970..=980).contains(&left));
    assert!(!world.limiter.needs_tick());
}

#[test]
fn a_denial_elsewhere_gives_leased_tokens_back() {
    let mut world = World::new(vec![leased("a", 1_000, "1/d"), policy("tight", 8, closed(1))]);
    for _ in 0..8 {
        assert_eq!(world.request("x").verdict, Verdict::Admit);
    }
    let decision = world.request("x");
    assert_eq!(outcomes(&decision), [(0, Spared), (1, Refused)]);
    for _ in 0..1_100 {
        world.tick_after(10 * MS);
        world.answer_all();
    }
    assert!(world.left("x", 0) <= 992);
    assert!(world.left("x", 0) >= 980);
}
