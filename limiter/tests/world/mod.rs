//! One worker's limiter with memory for its slots, a store that is the reference model, and a clock that
//! the test moves.
#![allow(dead_code, reason = "each test uses a part of it")]

use core::time::Duration;
use std::collections::BTreeMap;
use std::rc::Rc;

use limiter::authority::Authority;
use limiter::decision::{Decision, Outcome};
use limiter::limiter::{CallId, Effect, Limiter, RequestId, Step};
use limiter::policy::{KeyPart, Limit, OnFailure, Policy, Source, Sync};
use limiter::quota::TokenBucket;
use limiter::request::Given;
use limiter::table::{OwnSlots, Table};
use limiter::time::Instant;
use limiter::wire::{TakeReply, TakeRequest};

pub(crate) const TIMEOUT: Duration = Duration::from_millis(50);

/// A policy over the header `x-key`, with a bucket of `capacity` that does not refill during a test.
pub(crate) fn policy(name: &str, capacity: u64, sync: Sync) -> Policy {
    let limit = Limit::TokenBucket(TokenBucket::new(capacity, "1/d".parse().unwrap()).unwrap());
    let key = vec![KeyPart::Identity(vec![Source::Header("x-key".to_owned())])];
    Policy { key, sync, ..Policy::new(name, limit) }
}

pub(crate) const LEASE: Sync = Sync::Lease(OnFailure::Open);

/// A leased policy of `capacity` tokens that come back at `rate`.
pub(crate) fn leased(name: &str, capacity: u64, rate: &str) -> Policy {
    let quota = TokenBucket::new(capacity, rate.parse().unwrap()).unwrap();
    Policy { limit: Limit::TokenBucket(quota), ..policy(name, capacity, LEASE) }
}

pub(crate) const OPEN: Sync = Sync::Exact(OnFailure::Open);

pub(crate) fn closed(seconds: u64) -> Sync {
    Sync::Exact(OnFailure::Closed { retry_after: Duration::from_secs(seconds) })
}

/// A request of a client.
pub(crate) fn request_of(name: &str) -> Given {
    let headers = vec![("x-key".to_owned(), name.as_bytes().to_vec())];
    Given { method: b"GET".to_vec(), target: b"/".to_vec(), headers, ..Given::default() }
}

pub(crate) struct World {
    pub(crate) limiter: Limiter,
    pub(crate) store: Authority,
    pub(crate) now: Instant,
    /// Calls that the limiter has made and nobody has answered, oldest first.
    pub(crate) calls: Vec<(CallId, TakeRequest)>,
    /// What has become of requests that had to wait.
    pub(crate) decided: BTreeMap<u32, Decision>,
    table: Table,
    slots: OwnSlots,
    last_request: u32,
}

impl World {
    pub(crate) fn new(policies: Vec<Policy>) -> Self {
        let table = Table::new(4_096, [3; 16]);
        Self {
            limiter: Limiter::new(
                Rc::new(policies.try_into().unwrap()),
                table.clone(),
                TIMEOUT,
                "proxy".to_owned(),
            ),
            store: Authority::default(),
            now: Instant::from_micros(1_000_000),
            calls: Vec::new(),
            decided: BTreeMap::new(),
            table,
            slots: OwnSlots::default(),
            last_request: 0,
        }
    }

    /// A client's request arrives: its number, and its decision where there is one at once.
    pub(crate) fn arrive(&mut self, client: &'static str) -> (u32, Option<Decision>) {
        self.arrive_with(&mut request_of(client))
    }

    /// The same for a request that is there already.
    pub(crate) fn arrive_with(&mut self, request: &mut Given) -> (u32, Option<Decision>) {
        self.last_request += 1;
        let mut effects = Vec::new();
        let step = self.limiter.on_request(
            RequestId(self.last_request),
            request,
            &mut self.slots,
            self.now,
            &mut effects,
        );
        self.carry_out(effects);
        let decision = match step {
            Step::Decided(decision) => Some(decision),
            Step::Waits => None,
        };
        (self.last_request, decision)
    }

    /// A request from arrival to decision, with a store that answers at once.
    pub(crate) fn request(&mut self, client: &'static str) -> Decision {
        self.request_with(&mut request_of(client))
    }

    /// The same for a request that is there already.
    pub(crate) fn request_with(&mut self, request: &mut Given) -> Decision {
        let (request, decision) = self.arrive_with(request);
        decision.unwrap_or_else(|| {
            self.answer_all();
            self.decided.remove(&request).expect("the store has answered")
        })
    }

    /// The store answers what it was asked, oldest first, until it is asked no more.
    pub(crate) fn answer_all(&mut self) {
        while !self.calls.is_empty() {
            self.answer_first();
        }
    }

    pub(crate) fn answer_first(&mut self) {
        let (call, request) = self.calls.remove(0);
        let reply = self.store.decide(&request, self.now);
        self.reply(call, reply);
    }

    pub(crate) fn reply(&mut self, call: CallId, reply: TakeReply) {
        let mut effects = Vec::new();
        self.limiter.on_reply(call, reply, &mut self.slots, self.now, &mut effects);
        self.carry_out(effects);
    }

    pub(crate) fn fail(&mut self, call: CallId) {
        let mut effects = Vec::new();
        self.limiter.on_call_failed(call, &mut self.slots, self.now, &mut effects);
        self.carry_out(effects);
    }

    pub(crate) fn fail_first(&mut self) {
        let (call, _) = self.calls.remove(0);
        self.fail(call);
    }

    pub(crate) fn tick_after(&mut self, span: Duration) {
        self.now = self.now.after(span);
        let mut effects = Vec::new();
        self.limiter.on_tick(&mut self.slots, self.now, &mut effects);
        self.carry_out(effects);
    }

    /// The worker's memory is lost, and another one takes its place.
    pub(crate) fn crash(&mut self) {
        self.calls.clear();
        let policies = self.limiter.policies().clone();
        self.limiter = Limiter::new(policies, self.table.clone(), TIMEOUT, "proxy".to_owned());
    }

    /// All that the proxy's table holds is given up.
    pub(crate) fn forget(&mut self) {
        self.slots = OwnSlots::default();
    }

    pub(crate) fn leave(&mut self, request: u32) {
        self.limiter.on_gone(RequestId(request), &mut self.slots, self.now);
    }

    /// Whole tokens that a client has left under a policy, wherever that is counted.
    pub(crate) fn left(&self, client: &str, index: usize) -> u64 {
        let policy = &self.limiter.policies()[index];
        let Limit::TokenBucket(quota) = policy.limit else { panic!("a policy without a bucket") };
        let key = format!("rl:{{{client}}}:{}", policy.name);
        match policy.sync {
            Sync::Local => {
                let mut slots = self.slots.clone();
                self.table.standing(&mut slots, &key, &quota, 1, self.now).remaining
            }
            Sync::Exact(_) | Sync::Lease(_) | Sync::Async => {
                let charge = limiter::wire::Charge {
                    key,
                    limit: limiter::wire::Limit::TokenBucket(quota),
                    cost: 1,
                    shadow: false,
                    lease: None,
                    report: None,
                };
                self.store.standing(&charge, self.now).remaining
            }
        }
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Call { call, body } => {
                    self.calls.push((call, serde_json::from_slice(&body).expect("a request by the rules")));
                }
                Effect::Decide { request, decision } => {
                    let before = self.decided.insert(request.0, decision);
                    assert_eq!(before, None, "a request was decided twice");
                }
            }
        }
    }
}

/// Each policy's part in a decision, by its index.
pub(crate) fn outcomes(decision: &Decision) -> Vec<(usize, Outcome)> {
    decision.marks.iter().map(|mark| (mark.policy, mark.outcome)).collect()
}
