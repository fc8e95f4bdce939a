//! The same checks find what is wrong on purpose.

use std::collections::BTreeMap;

use limiter::authority::Authority;
use limiter::bucket::Standing;
use limiter::time::Instant;
use limiter::wire::{Charge, LeaseAsk, Limit, Return, Take, TakeReply, TakeRequest};

use crate::checks::{Broken, Violation};
use crate::promises::run;
use crate::schedule::Theme;
use crate::store::Store;
use crate::world::Flaw;

/// The most schedules until a violation must have shown.
const SCHEDULES: u64 = 2_000;

/// What a store gives back for a lease that is returned.
#[derive(Clone, Copy)]
enum Credit {
    /// What the rules say: less by what time has refilled.
    Aged,
    /// That, two times.
    Twice,
}

/// A store that keeps its own books of leases, and so may err in what it gives back.
struct Generous {
    authority: Authority,
    credit: Credit,
    /// Tokens, and when they were granted.
    out: BTreeMap<(String, String, u64), (u64, Instant)>,
}

impl Generous {
    fn store(credit: Credit) -> Box<dyn Store> {
        Box::new(Self { authority: Authority::default(), credit, out: BTreeMap::new() })
    }

    fn give_back(&mut self, charge: &Charge, ask: &LeaseAsk, back: Return, now: Instant) {
        let lease = (charge.key.clone(), ask.holder.clone(), back.id);
        let Some((tokens, granted_at)) = self.out.remove(&lease) else { return };
        let age_us = now.micros_since(granted_at);
        if age_us >= ask.ttl_us {
            return;
        }
        let Limit::TokenBucket(quota) = charge.limit;
        let tokens = tokens.min(back.tokens);
        let refilled = (quota.parts_per_micro() * age_us).div_ceil(quota.parts_per_token());
        let credit = match self.credit {
            Credit::Aged => tokens.saturating_sub(refilled),
            Credit::Twice => 2 * tokens.saturating_sub(refilled),
        };
        // The model has no way to be given tokens back but its own: the key is written anew.
        let Standing { remaining, .. } = self.authority.standing(charge, now);
        let spent = quota.capacity().saturating_sub(remaining.saturating_add(credit));
        self.authority.reset(&charge.key);
        if spent > 0 {
            let charge = Charge { cost: spent, lease: None, report: None, ..charge.clone() };
            self.authority.decide(&TakeRequest { takes: vec![Take { charges: vec![charge] }] }, now);
        }
    }
}

impl Store for Generous {
    fn decide(&mut self, request: &TakeRequest, now: Instant) -> TakeReply {
        let mut takes = Vec::new();
        for take in &request.takes {
            let mut take = take.clone();
            for charge in &mut take.charges {
                let Some(mut ask) = charge.lease.take() else { continue };
                for back in core::mem::take(&mut ask.returns) {
                    self.give_back(charge, &ask, back, now);
                }
                charge.lease = Some(ask);
            }
            let asked = TakeRequest { takes: vec![take] };
            let answer = self.authority.decide(&asked, now).takes.remove(0);
            if let limiter::wire::Taken::Decided { charges, .. } = &answer {
                for (charge, charged) in asked.takes[0].charges.iter().zip(charges) {
                    let Some(ask) = charge.lease.as_ref().filter(|_| charged.granted > 0) else { continue };
                    let lease = (charge.key.clone(), ask.holder.clone(), ask.id);
                    self.out.insert(lease, (charged.granted, now));
                }
            }
            takes.push(answer);
        }
        TakeReply { takes }
    }

    fn full_us(&self, charge: &Charge, now: Instant) -> u64 {
        self.authority.full_us(charge, now)
    }
}

/// A store that does not see that a request has come twice.
#[derive(Default)]
struct Forgetful {
    authority: Authority,
    requests: u64,
}

impl Store for Forgetful {
    fn decide(&mut self, request: &TakeRequest, now: Instant) -> TakeReply {
        self.requests += 1;
        let mut request = request.clone();
        for ask in request
            .takes
            .iter_mut()
            .flat_map(|take| &mut take.charges)
            .filter_map(|charge| charge.lease.as_mut())
        {
            ask.id = self.requests;
        }
        self.authority.decide(&request, now)
    }

    fn full_us(&self, charge: &Charge, now: Instant) -> u64 {
        self.authority.full_us(charge, now)
    }
}

/// A store that does not look at the numbers of what is reported.
#[derive(Default)]
struct Credulous {
    authority: Authority,
    requests: u64,
}

impl Store for Credulous {
    fn decide(&mut self, request: &TakeRequest, now: Instant) -> TakeReply {
        self.requests += 1;
        let mut request = request.clone();
        let charges = request.takes.iter_mut().flat_map(|take| &mut take.charges);
        for report in charges.filter_map(|charge| charge.report.as_mut()) {
            // Of whom it has never heard.
            report.holder = format!("r{}", self.requests);
        }
        self.authority.decide(&request, now)
    }

    fn full_us(&self, charge: &Charge, now: Instant) -> u64 {
        self.authority.full_us(charge, now)
    }
}

/// Runs schedules until a promise is broken; says how, or nothing.
fn search(theme: Theme, flaw: Flaw, broken: &[Broken], store: impl Fn() -> Box<dyn Store>) -> Option<String> {
    (0..SCHEDULES).find_map(|seed| {
        let found: Option<Violation> = run(&theme.plan(seed), store(), flaw);
        found
            .filter(|found| broken.contains(&found.broken))
            .map(|found| format!("seed {seed}: {}", found.what))
    })
}

fn is_caught(theme: Theme, flaw: Flaw, broken: &[Broken], store: impl Fn() -> Box<dyn Store>) {
    println!("{}", search(theme, flaw, broken, store).expect("a violation shows"));
}

fn model() -> Box<dyn Store> {
    Box::new(Authority::default())
}

#[test]
fn a_store_with_books_of_its_own_and_no_error_in_them_is_not_caught() {
    let store = || Generous::store(Credit::Aged);
    assert_eq!(
        search(Theme::Lease, Flaw::None, &[Broken::Formula, Broken::Bound, Broken::Decision], store),
        None
    );
}

#[test]
fn a_give_back_that_is_credited_twice_is_caught() {
    is_caught(Theme::Lease, Flaw::None, &[Broken::Formula], || Generous::store(Credit::Twice));
}

#[test]
fn a_lease_that_is_spent_after_its_end_by_a_slow_clock_is_caught() {
    is_caught(Theme::Lease, Flaw::SlowClock, &[Broken::Formula], model);
}

#[test]
fn a_lease_that_is_spent_after_its_end_by_a_clock_that_stands_still_is_caught() {
    is_caught(Theme::Lease, Flaw::StoppingClock, &[Broken::Formula], model);
}

#[test]
fn an_eviction_that_refills_is_caught() {
    is_caught(Theme::Local, Flaw::Forgetful, &[Broken::Formula], model);
}

#[test]
fn an_answer_that_is_credited_to_another_call_too_is_caught() {
    is_caught(Theme::Lease, Flaw::StrayReply, &[Broken::Books], model);
    is_caught(Theme::Lease, Flaw::StrayReply, &[Broken::Formula], model);
}

#[test]
fn a_request_that_came_twice_and_is_granted_twice_is_caught() {
    is_caught(Theme::Lease, Flaw::None, &[Broken::Books], || Box::new(Forgetful::default()));
}

#[test]
fn a_report_whose_numbers_are_ignored_is_caught() {
    is_caught(Theme::Async, Flaw::None, &[Broken::Books], || Box::new(Credulous::default()));
}
