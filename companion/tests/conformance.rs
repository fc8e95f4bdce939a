//! `lua/token_bucket.lua` answers what `limiter::bucket` says, to the microsecond, whatever happens.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a panic is a test's report")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use companion::store::memory::{Clock, Interpreter, Keyspace};
use companion::store::{Refusal, StoreError};
use companion::take;
use limiter::authority::Authority;
use limiter::quota::TokenBucket;
use limiter::time::Instant;
use limiter::wire::{Charge, Limit, Take, TakeRequest, Taken};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

const START_US: u64 = 1_750_000_000_123_456;
const DAY_US: u64 = 86_400_000_000;
const HOUR_US: i64 = 3_600_000_000;

/// The script over memory, with a clock that the test moves.
struct Script {
    keyspace: Arc<Mutex<Keyspace>>,
    interpreter: Interpreter,
    clock: Arc<AtomicU64>,
}

impl Script {
    fn new(max_keys: usize) -> Self {
        let keyspace = Arc::new(Mutex::new(Keyspace::new(max_keys)));
        let clock = Arc::new(AtomicU64::new(START_US));
        let interpreter = Interpreter::new(Arc::clone(&keyspace), Clock::Manual(Arc::clone(&clock))).unwrap();
        Self { keyspace, interpreter, clock }
    }

    fn now_us(&self) -> u64 {
        self.clock.load(Ordering::Relaxed)
    }

    fn set_clock(&self, now_us: u64) {
        self.clock.store(now_us, Ordering::Relaxed);
    }

    fn decide(&mut self, request: &TakeRequest) -> Result<Vec<i64>, StoreError> {
        self.interpreter.run(&take::call(request))
    }

    fn get(&self, key: &str) -> Option<String> {
        let mut keyspace = self.keyspace.lock().unwrap();
        keyspace.get(key.as_bytes()).map(|value| String::from_utf8(value.to_vec()).unwrap())
    }
}

fn quota(capacity: u64, rate: &str) -> TokenBucket {
    TokenBucket::new(capacity, rate.parse().unwrap()).unwrap()
}

fn charge(key: &str, quota: TokenBucket, cost: u64) -> Charge {
    Charge { key: format!("rl:{{1}}:{key}"), limit: Limit::TokenBucket(quota), cost, shadow: false }
}

fn request(takes: impl IntoIterator<Item = Vec<Charge>>) -> TakeRequest {
    TakeRequest { takes: takes.into_iter().map(|charges| Take { charges }).collect() }
}

/// What the reference model answers, in the integers of the script.
fn decide(model: &mut Authority, request: &TakeRequest, now_us: u64) -> Vec<i64> {
    let reply = model.decide(request, Instant::from_micros(now_us));
    let mut integers = Vec::new();
    for (take, taken) in request.takes.iter().zip(reply.takes) {
        let Taken::Decided { admitted, charges } = taken else {
            integers.push(-1);
            integers.extend(vec![0; 3 * take.charges.len()]);
            continue;
        };
        integers.push(i64::from(admitted));
        for charged in charges {
            let whole = |number: u64| i64::try_from(number).unwrap();
            integers.extend([
                whole(charged.remaining),
                charged.wait_us.map_or(-1, whole),
                whole(charged.full_us),
            ]);
        }
    }
    integers
}

/// Common ones, odd ones, and those at the edge of what doubles count.
fn quotas() -> Vec<TokenBucket> {
    vec![
        quota(1, "1/s"),
        quota(5, "2/s"),
        quota(5, "7/s"),
        quota(100, "100/m"),
        quota(100, "100/h"),
        quota(7, "3/s"),
        quota(1_000, "999983/d"),
        quota(52_124, "999983/d"),
        quota(52_124, "86399/d"),
        quota(1, "1/d"),
        quota(1 << 52, "1000000000/s"),
        quota((1 << 52) - 1, "1000000/s"),
        quota(4_503_599_627, "999999937/s"),
        quota(75_059_993, "59/m"),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Forward(u64),
    Back(u64),
    Spoil(usize),
    Reset(usize),
    Takes(Vec<Vec<Planned>>),
}

#[derive(Clone, Copy, Debug)]
struct Planned {
    key: usize,
    edit: bool,
    quota: usize,
    cost: Cost,
    shadow: bool,
}

#[derive(Clone, Copy, Debug)]
enum Cost {
    Tokens(u64),
    Share(u64),
    Whole,
    TooMuch(u64),
}

// Few enough for the sweep of one call to see them all, so that a key is gone as soon as it has expired.
const KEYS: usize = 4;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let gap = prop_oneof![0..10_u64, 0..3_000_000_u64, 0..100_000_000_u64, 0..2 * DAY_US, 0..400 * DAY_US];
    let cost = prop_oneof![
        6 => (1..4_u64).prop_map(Cost::Tokens),
        3 => (1..9_u64).prop_map(Cost::Share),
        2 => Just(Cost::Whole),
        1 => prop_oneof![1..3_u64, (1_u64 << 53)..u64::MAX].prop_map(Cost::TooMuch),
    ];
    let planned = (0..KEYS, prop::bool::weighted(0.1), 0..quotas().len(), cost, prop::bool::weighted(0.2))
        .prop_map(|(key, edit, quota, cost, shadow)| Planned { key, edit, quota, cost, shadow });
    let take = vec(planned, 1..4).prop_map(|mut charges| {
        charges.sort_by_key(|charge| charge.key);
        charges.dedup_by_key(|charge| charge.key);
        charges
    });
    let step = prop_oneof![
        12 => vec(take, 1..4).prop_map(Step::Takes),
        6 => gap.clone().prop_map(Step::Forward),
        2 => gap.prop_map(Step::Back),
        1 => prop_oneof![(0..KEYS).prop_map(Step::Spoil), (0..KEYS).prop_map(Step::Reset)],
    ];
    vec(step, 100..200)
}

/// Carries out a history on script and model.
fn compare(history: Vec<Step>, mut limits: [TokenBucket; KEYS]) -> Result<(), TestCaseError> {
    let (mut script, mut model) = (Script::new(100), Authority::default());
    let keys: Vec<_> = (0..KEYS).map(|key| format!("rl:{{1}}:{key}")).collect();
    for step in history {
        match step {
            Step::Forward(gap_us) => script.set_clock(script.now_us() + gap_us),
            Step::Back(gap_us) => script.set_clock(script.now_us().saturating_sub(gap_us)),
            Step::Spoil(key) => {
                let value: &[u8] =
                    [&b"garbage"[..], b"", b"1 0 1 1", b"1 2 3", b"-1 1 1 1", b"1e3 1 1 1"][key % 6];
                script.keyspace.lock().unwrap().set(keys[key].as_bytes(), value, None).unwrap();
                model.spoil(&keys[key]);
            }
            Step::Reset(key) => {
                script.keyspace.lock().unwrap().remove(keys[key].as_bytes());
                model.reset(&keys[key]);
            }
            Step::Takes(takes) => {
                let planned = |plan: &Planned, limits: &mut [TokenBucket; KEYS]| {
                    if plan.edit {
                        limits[plan.key] = quotas()[plan.quota];
                    }
                    let quota = limits[plan.key];
                    let cost = match plan.cost {
                        Cost::Tokens(tokens) => tokens,
                        Cost::Share(parts) => quota.capacity().div_ceil(parts),
                        Cost::Whole => quota.capacity(),
                        Cost::TooMuch(more) => quota.capacity().saturating_add(more),
                    };
                    Charge {
                        key: keys[plan.key].clone(),
                        limit: Limit::TokenBucket(quota),
                        cost,
                        shadow: plan.shadow,
                    }
                };
                let takes: Vec<_> = takes
                    .iter()
                    .map(|take| take.iter().map(|plan| planned(plan, &mut limits)).collect())
                    .collect();
                let request = request(takes);
                let expected = decide(&mut model, &request, script.now_us());
                prop_assert_eq!(script.decide(&request).unwrap(), expected, "{:?}", request);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/conformance.regressions"))),
        ..ProptestConfig::default()
    })]

    // At least 30,000 steps a run, of which more than half are batches.
    #[test]
    fn random_histories_give_the_answers_of_the_reference_model(
        history in steps(),
        limits in prop::array::uniform4(0..quotas().len()),
    ) {
        compare(history, limits.map(|index| quotas()[index]))?;
    }

    #[test]
    fn an_edit_is_rescaled_without_a_part_too_little(
        from in 0..quotas().len(),
        to in 0..quotas().len(),
        share in 1..1_000_000_u64,
        gap_us in 0..100_000_000_u64,
    ) {
        let (from, to) = (quotas()[from], quotas()[to]);
        let (mut script, mut model) = (Script::new(100), Authority::default());
        for (quota, cost) in [(from, from.capacity().div_ceil(share)), (to, 1), (from, 1), (to, 1)] {
            let request = request([vec![charge("p", quota, cost)]]);
            prop_assert_eq!(script.decide(&request).unwrap(), decide(&mut model, &request, script.now_us()));
            script.set_clock(script.now_us() + gap_us);
        }
    }
}

#[test]
fn an_odd_rate_loses_nothing_over_a_million_takes() {
    // A token each 36 s, asked for without pause in steps that never meet a whole token.
    const STEP_US: u64 = 7_777_777;
    const CALLS: u64 = 8_000;
    let batch = request(vec![vec![charge("p", quota(100, "100/h"), 1)]; 128]);
    let mut script = Script::new(100);
    let mut admitted = 0;
    for step in 0..CALLS {
        script.set_clock(START_US + step * STEP_US);
        admitted += script.decide(&batch).unwrap().chunks(4).filter(|take| take[0] == 1).count() as u64;
    }
    assert_eq!(admitted, 100 + (CALLS - 1) * STEP_US / 36_000_000);
}

#[test]
fn a_refused_take_charges_none_of_its_keys_in_any_order() {
    let (wide, narrow) = (charge("wide", quota(10, "1/h"), 1), charge("narrow", quota(1, "1/h"), 1));
    for pair in [vec![wide.clone(), narrow.clone()], vec![narrow.clone(), wide.clone()]] {
        let mut script = Script::new(100);
        let answer = script.decide(&request(vec![pair; 20])).unwrap();
        let admitted: Vec<_> = answer.chunks(7).map(|take| take[0]).collect();
        assert_eq!(admitted.iter().sum::<i64>(), 1, "one token, twenty takes");
        assert_eq!(admitted[0], 1);
        let left = script.decide(&request([vec![Charge { cost: 11, ..wide.clone() }]])).unwrap();
        assert_eq!(left[..3], [0, 9, -1]);
    }
}

#[test]
fn a_shadow_is_charged_where_it_fits_and_never_refuses() {
    let shadow = Charge { shadow: true, ..charge("shadow", quota(1, "1/h"), 1) };
    let pair = vec![shadow, charge("enforced", quota(2, "1/h"), 1)];
    let answer = Script::new(100).decide(&request(vec![pair; 3])).unwrap();
    assert_eq!(answer[..7], [1, 0, 0, HOUR_US, 1, 0, HOUR_US]);
    assert_eq!(answer[7..14], [1, 0, HOUR_US, HOUR_US, 0, 0, 2 * HOUR_US]);
    assert_eq!(answer[14..], [0, 0, HOUR_US, HOUR_US, 0, HOUR_US, 2 * HOUR_US]);
}

#[test]
fn a_state_is_written_in_whole_numbers_and_gone_when_the_bucket_is_full() {
    let mut script = Script::new(100);
    script.decide(&request([vec![charge("p", quota(10, "3/s"), 1)]])).unwrap();
    assert_eq!(script.get("rl:{1}:p").unwrap(), format!("1000000 1000000 3 {START_US}"));
    // Full after 333,334 µs: the key lives through the 334th millisecond.
    script.set_clock((START_US / 1000 + 334) * 1000 + 999);
    script.decide(&request([vec![charge("other", quota(10, "3/s"), 1)]])).unwrap();
    assert!(script.get("rl:{1}:p").is_some());
    script.set_clock((START_US / 1000 + 335) * 1000);
    script.decide(&request([vec![charge("other", quota(10, "3/s"), 1)]])).unwrap();
    assert_eq!(script.get("rl:{1}:p"), None);
}

#[test]
fn an_unreadable_state_fails_its_take_and_no_other() {
    let mut script = Script::new(100);
    script.keyspace.lock().unwrap().set(b"rl:{1}:spoilt", b"what is this", None).unwrap();
    let good = charge("good", quota(5, "1/h"), 1);
    let pair = vec![good.clone(), charge("spoilt", quota(5, "1/h"), 1)];
    let answer = script.decide(&request([vec![good.clone()], pair, vec![good]])).unwrap();
    assert_eq!(answer[4..11], [-1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(answer[11..13], [1, 3], "the failed take charged nothing");
    assert_eq!(script.get("rl:{1}:spoilt").unwrap(), "what is this");
}

#[test]
fn a_full_store_refuses_the_whole_batch_before_it_writes() {
    let mut script = Script::new(1);
    script.decide(&request([vec![charge("a", quota(5, "1/h"), 1)]])).unwrap();
    let batch = request(["a", "b"].map(|key| vec![charge(key, quota(5, "1/h"), 1)]));
    let error = script.decide(&batch).unwrap_err();
    assert!(matches!(error, StoreError::Refused { refusal: Refusal::OutOfMemory, .. }), "{error:?}");
    assert_eq!(script.get("rl:{1}:b"), None);
}
