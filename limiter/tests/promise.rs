//! What the store promises of leases, on the reference model alone: the tokens that are spent in any time
//! span T are at most capacity + rate · (T + ttl), whoever holds leases and whenever they come back.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed"
)]

use limiter::authority::Authority;
use limiter::bucket::{Bucket, Fit};
use limiter::quota::TokenBucket;
use limiter::time::Instant;
use limiter::wire::{Charge, Charged, LeaseAsk, Limit, Return, Take, TakeRequest, Taken};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, TestError, TestRunner};

const START: Instant = Instant::from_micros(1_750_000_000_123_456);
const HOLDERS: usize = 3;

/// Decides one charge at a time: whether it was admitted, and how the limit stands.
trait Store {
    fn decide(&mut self, cost: u64, ask: &LeaseAsk, now: Instant) -> (bool, Charged);
}

/// The reference model, with one key.
struct Reference {
    authority: Authority,
    quota: TokenBucket,
}

impl Store for Reference {
    fn decide(&mut self, cost: u64, ask: &LeaseAsk, now: Instant) -> (bool, Charged) {
        let charge = Charge {
            key: "rl:{1}:p".to_owned(),
            limit: Limit::TokenBucket(self.quota),
            cost,
            shadow: false,
            lease: Some(ask.clone()),
            report: None,
        };
        let request = TakeRequest { takes: vec![Take { charges: vec![charge] }] };
        match self.authority.decide(&request, now).takes.remove(0) {
            Taken::Decided { admitted, charges } => (admitted, charges[0]),
            Taken::Failed { error } => panic!("{error}"),
        }
    }
}

/// The same rules once more, to be broken.
struct Retold {
    quota: TokenBucket,
    bucket: Bucket,
    /// Holder, number, tokens, when granted, microseconds to live.
    leases: Vec<(String, u64, u64, Instant, u64)>,
    expires_ms: u64,
    /// True: what is given back is credited whatever time has refilled.
    credits_in_full: bool,
}

impl Retold {
    fn new(quota: TokenBucket, credits_in_full: bool) -> Self {
        let bucket = Bucket::full(&quota, START);
        Self { quota, bucket, leases: vec![], expires_ms: u64::MAX, credits_in_full }
    }

    fn settle(&mut self, now: Instant) {
        if now.as_micros() / 1_000 > self.expires_ms {
            *self = Self::new(self.quota, self.credits_in_full);
        }
        self.bucket = self.bucket.settle(&self.quota, now);
        self.leases.retain(|(.., granted, ttl_us)| now < granted.after_micros(*ttl_us));
    }

    fn take_back(&mut self, holder: &str, back: Return, now: Instant) -> bool {
        let is_it = |(of, id, ..): &(String, u64, u64, Instant, u64)| of == holder && *id == back.id;
        let Some(index) = self.leases.iter().position(is_it) else { return false };
        let (_, _, tokens, granted, _) = self.leases.remove(index);
        let parts = tokens.min(back.tokens) * self.quota.parts_per_token();
        let refilled = now.micros_since(granted) * self.quota.parts_per_micro();
        let credit = if self.credits_in_full { parts } else { parts.saturating_sub(refilled) };
        self.bucket.spent = self.bucket.spent.saturating_sub(credit);
        true
    }

    fn grant(&mut self, ask: &LeaseAsk, left: u64, now: Instant) -> u64 {
        if self.leases.iter().any(|(of, id, ..)| *of == ask.holder && *id == ask.id) {
            return 0;
        }
        let mut holders: Vec<_> = self.leases.iter().map(|(of, ..)| of.clone()).collect();
        holders.push(ask.holder.clone());
        holders.sort();
        holders.dedup();
        let tokens = ask.want.min(left / (2 * holders.len() as u64));
        if tokens > 0 {
            self.bucket = self.bucket.charge(&self.quota, tokens);
            self.leases.push((ask.holder.clone(), ask.id, tokens, now, ask.ttl_us));
        }
        tokens
    }
}

impl Store for Retold {
    fn decide(&mut self, cost: u64, ask: &LeaseAsk, now: Instant) -> (bool, Charged) {
        self.settle(now);
        let returned = ask.returns.iter().filter(|back| self.take_back(&ask.holder, **back, now)).count();
        let fit = self.bucket.standing(&self.quota, cost, now).fit;
        let mut granted = 0;
        if fit == Fit::Now {
            self.bucket = self.bucket.charge(&self.quota, cost);
            let left = self.bucket.standing(&self.quota, 0, now).remaining;
            granted = self.grant(ask, left, now);
        }
        if returned > 0 || (fit == Fit::Now && cost > 0) || granted > 0 {
            let full_us = self.bucket.full_at().micros_since(now);
            self.expires_ms = now.as_micros() / 1_000 + full_us / 1_000 + 1;
            if self.bucket.spent == 0 {
                self.leases.clear();
            }
        }
        let after = self.bucket.standing(&self.quota, cost, now);
        let wait_us = match fit {
            Fit::Now => Some(0),
            Fit::After(wait_us) => Some(wait_us),
            Fit::Never => None,
        };
        let charged =
            Charged { remaining: after.remaining, wait_us, full_us: after.full_us, granted, proxies: 0 };
        (fit == Fit::Now, charged)
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Thousandths of a ttl go by.
    Wait(u64),
    /// A holder asks for a cost and for a lease, in hundredths of the capacity, and gives leases back.
    Ask { holder: usize, cost: u64, want: u64, returns: usize, fate: Fate },
    /// A holder spends hundredths of a lease.
    Spend { holder: usize, lease: usize, share: u64 },
    /// An old question comes again, and nobody waits for its answer.
    Again { question: usize },
    /// Everything that can be spent is spent; leases are given back first or spent themselves.
    Burst { gives_back: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Answered,
    /// Decided twice, answered once.
    Doubled,
    /// Decided, and the answer is lost.
    Unanswered,
}

#[derive(Clone, Copy, Debug)]
struct Limits {
    capacity: u64,
    rate: &'static str,
    /// The ttl is what fills the bucket, divided by this.
    ttl_of_fill: u64,
}

impl Limits {
    fn quota(self) -> TokenBucket {
        TokenBucket::new(self.capacity, self.rate.parse().unwrap()).unwrap()
    }

    fn ttl_us(self) -> u64 {
        let quota = self.quota();
        (quota.micros_for(quota.parts()) / self.ttl_of_fill).max(1)
    }
}

/// Phases in which much is spent, and such in which leases go round and time goes by.
fn schedules() -> impl Strategy<Value = (Limits, Vec<Step>)> {
    let rate = prop::sample::select(vec!["1/s", "7/s", "100/m", "997/h", "86399/d", "1000000/s"]);
    let limits = (1..200_u64, rate, prop_oneof![3 => 2..12_u64, 1 => 1..60_u64])
        .prop_map(|(capacity, rate, ttl_of_fill)| Limits { capacity, rate, ttl_of_fill });
    let fate = prop_oneof![
        8 => Just(Fate::Answered),
        1 => Just(Fate::Doubled),
        1 => Just(Fate::Unanswered),
    ];
    let cost = prop_oneof![4 => Just(0), 2 => 1..10_u64, 1 => 1..100_u64];
    let want = prop_oneof![1 => Just(0), 4 => 1..100_u64];
    let busy = prop_oneof![
        6 => prop_oneof![0..3_u64, 1..300_u64, 1..1_000_u64, 1..5_000_u64].prop_map(Step::Wait),
        8 => (0..HOLDERS, cost, want, 0..3_usize, fate).prop_map(|(holder, cost, want, returns, fate)| {
            Step::Ask { holder, cost, want, returns, fate }
        }),
        3 => (0..HOLDERS, any::<usize>(), 1..=100_u64)
            .prop_map(|(holder, lease, share)| Step::Spend { holder, lease, share }),
        1 => any::<usize>().prop_map(|question| Step::Again { question }),
        1 => any::<bool>().prop_map(|gives_back| Step::Burst { gives_back }),
    ];
    let renewal = (0..HOLDERS, 30..100_u64, prop_oneof![1 => 0..2_usize, 4 => Just(2)]).prop_map(
        |(holder, want, returns)| Step::Ask { holder, cost: 0, want, returns, fate: Fate::Answered },
    );
    let calm = prop_oneof![1 => (1..300_u64).prop_map(Step::Wait), 2 => renewal];
    let phase = prop_oneof![vec(busy, 1..40), vec(calm, 20..80)];
    (limits, vec(phase, 1..5).prop_map(|phases| phases.concat()))
}

/// A lease as its holder knows it.
struct Held {
    id: u64,
    tokens: u64,
    ends: Instant,
}

struct World<'a> {
    store: &'a mut dyn Store,
    quota: TokenBucket,
    ttl_us: u64,
    now: Instant,
    held: [Vec<Held>; HOLDERS],
    next_id: u64,
    questions: Vec<(u64, LeaseAsk)>,
    answers: Vec<(bool, Charged)>,
    spent: Vec<(Instant, u64)>,
}

impl World<'_> {
    fn hundredths(&self, share: u64) -> u64 {
        (self.quota.capacity() * share).div_ceil(100)
    }

    fn spend(&mut self, tokens: u64) {
        if tokens > 0 {
            self.spent.push((self.now, tokens));
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Wait(thousandths) => {
                // At most to the very end of a lease and a little further.
                self.now = self.now.after_micros((self.ttl_us * thousandths).div_ceil(1_000));
            }
            Step::Ask { holder, cost, want, returns, fate } => {
                let (cost, want) = (self.hundredths(cost), self.hundredths(want));
                self.ask(holder, cost, want, returns, fate);
            }
            Step::Spend { holder, lease, share } => {
                let now = self.now;
                let mut live: Vec<_> = self.held[holder].iter_mut().filter(|held| now < held.ends).collect();
                let count = live.len().max(1);
                let Some(held) = live.get_mut(lease % count) else { return };
                let tokens = (held.tokens * share).div_ceil(100);
                held.tokens -= tokens;
                self.spend(tokens);
            }
            Step::Again { question } => {
                let question = question % self.questions.len().max(1);
                if let Some((cost, ask)) = self.questions.get(question).cloned() {
                    self.answers.push(self.store.decide(cost, &ask, self.now));
                }
            }
            Step::Burst { gives_back } => self.burst(gives_back),
        }
    }

    fn ask(&mut self, holder: usize, cost: u64, want: u64, returns: usize, fate: Fate) -> Charged {
        self.next_id += 1;
        let back = self.held[holder].drain(..returns.min(self.held[holder].len()));
        let returns = back.map(|held| Return { id: held.id, tokens: held.tokens }).collect();
        let (id, ttl_us) = (self.next_id, self.ttl_us);
        let ask = LeaseAsk { holder: format!("h{holder}"), id, want, ttl_us, returns };
        let answer = self.store.decide(cost, &ask, self.now);
        self.answers.push(answer);
        if fate == Fate::Doubled {
            self.answers.push(self.store.decide(cost, &ask, self.now));
        }
        self.questions.push((cost, ask));
        let (admitted, charged) = answer;
        if fate != Fate::Unanswered {
            if admitted {
                self.spend(cost);
            }
            if charged.granted > 0 {
                let ends = self.now.after_micros(ttl_us);
                self.held[holder].push(Held { id, tokens: charged.granted, ends });
            }
        }
        charged
    }

    fn burst(&mut self, gives_back: bool) {
        for holder in 0..HOLDERS {
            while gives_back && !self.held[holder].is_empty() {
                self.ask(holder, 0, 0, 2, Fate::Answered);
            }
            let held = core::mem::take(&mut self.held[holder]);
            let live = held.iter().filter(|held| self.now < held.ends);
            self.spend(live.map(|held| held.tokens).sum());
            let left = self.ask(holder, 0, 0, 0, Fate::Answered).remaining;
            self.ask(holder, left, 0, 0, Fate::Answered);
        }
    }

    /// The first span of spending, if any, that saw more tokens than are promised.
    fn broken_span(&self) -> Option<String> {
        let quota = &self.quota;
        let parts = |tokens: u64| u128::from(tokens) * u128::from(quota.parts_per_token());
        for (index, (from, _)) in self.spent.iter().enumerate() {
            let mut tokens = 0;
            for (to, more) in &self.spent[index..] {
                tokens += more;
                let span_us = to.micros_since(*from) + self.ttl_us;
                let refill = u128::from(span_us) * u128::from(quota.parts_per_micro());
                if parts(tokens) > parts(quota.capacity()) + refill {
                    let capacity = quota.capacity();
                    return Some(format!("{tokens} tokens of {capacity} in {span_us} µs with the ttl"));
                }
            }
        }
        None
    }
}

/// Carries out a schedule: what the store answered, and a span that breaks the promise.
fn carry_out(
    limits: Limits,
    steps: &[Step],
    store: &mut dyn Store,
) -> (Vec<(bool, Charged)>, Option<String>) {
    let mut world = World {
        store,
        quota: limits.quota(),
        ttl_us: limits.ttl_us(),
        now: START,
        held: [vec![], vec![], vec![]],
        next_id: 0,
        questions: vec![],
        answers: vec![],
        spent: vec![],
    };
    for step in steps {
        world.step(step);
    }
    world.burst(true);
    let broken = world.broken_span();
    (world.answers, broken)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/promise.regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_span_sees_at_most_capacity_and_refill_and_one_ttl((limits, steps) in schedules()) {
        let quota = limits.quota();
        let mut reference = Reference { authority: Authority::default(), quota };
        let (answers, broken) = carry_out(limits, &steps, &mut reference);
        prop_assert_eq!(broken, None);
        // What the next test breaks is the same before it is broken.
        let mut retold = Retold::new(quota, false);
        prop_assert_eq!(carry_out(limits, &steps, &mut retold).0, answers);
    }
}

#[test]
fn credit_for_what_time_has_refilled_would_break_the_promise_and_be_seen() {
    let config = ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, deterministic());
    let outcome = runner.run(&schedules(), |(limits, steps)| {
        let mut broken = Retold::new(limits.quota(), true);
        prop_assert_eq!(carry_out(limits, &steps, &mut broken).1, None);
        Ok(())
    });
    let Err(TestError::Fail(reason, (limits, steps))) = outcome else { panic!("{outcome:?}") };
    println!("{reason}\n{limits:?}\n{steps:?}");
}

fn deterministic() -> proptest::test_runner::TestRng {
    proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha)
}
