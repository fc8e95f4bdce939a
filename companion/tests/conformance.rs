//! `lua/token_bucket.lua` answers what `limiter::authority` says, to the microsecond and the token, whatever
//! happens.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a panic is a test's report")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use companion::store::memory::{Clock, Interpreter, Keyspace};
use companion::store::{Refusal, StoreError};
use companion::take;
use limiter::authority::Authority;
use limiter::quota::TokenBucket;
use limiter::time::Instant;
use limiter::wire::{Charge, LeaseAsk, Limit, MAX_LEASES, MAX_TTL_US, Return, Take, TakeRequest, Taken};
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
    let limit = Limit::TokenBucket(quota);
    Charge { key: format!("rl:{{1}}:{key}"), limit, cost, shadow: false, lease: None, report: None }
}

/// Asks for a lease that lasts as long as one may.
fn ask(holder: &str, id: u64, want: u64) -> LeaseAsk {
    LeaseAsk { holder: holder.to_owned(), id, want, ttl_us: MAX_TTL_US, returns: vec![] }
}

/// Gives one lease back and wants no other.
fn give_back(holder: &str, id: u64, tokens: u64) -> LeaseAsk {
    LeaseAsk { returns: vec![Return { id, tokens }], ..ask(holder, id, 0) }
}

/// Asks for a lease and for nothing else.
fn renewal(key: &str, quota: TokenBucket, ask: LeaseAsk) -> Charge {
    Charge { lease: Some(ask), ..charge(key, quota, 0) }
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
            integers.extend(vec![0; 4 * take.charges.len()]);
            continue;
        };
        integers.push(i64::from(admitted));
        for charged in charges {
            let whole = |number: u64| i64::try_from(number).unwrap();
            integers.extend([
                whole(charged.remaining),
                charged.wait_us.map_or(-1, whole),
                whole(charged.full_us),
                whole(charged.granted),
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
    Spoil {
        key: usize,
        value: usize,
    },
    Reset(usize),
    /// Everything is given back under every name, one after the other.
    GiveAllBack(usize),
    Takes(Vec<Vec<Planned>>),
}

#[derive(Clone, Debug)]
struct Planned {
    key: usize,
    edit: bool,
    quota: usize,
    cost: Amount,
    shadow: bool,
    lease: Option<PlannedLease>,
}

#[derive(Clone, Debug)]
struct PlannedLease {
    alone: bool,
    holder: usize,
    id: usize,
    want: Amount,
    ttl_us: u64,
    returns: Vec<(usize, Amount)>,
}

/// An amount of tokens in view of a quota.
#[derive(Clone, Copy, Debug)]
enum Amount {
    Nothing,
    Tokens(u64),
    Share(u64),
    Whole,
    TooMuch(u64),
}

impl Amount {
    fn of(self, quota: &TokenBucket) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Tokens(tokens) => tokens,
            Self::Share(parts) => quota.capacity().div_ceil(parts),
            Self::Whole => quota.capacity(),
            Self::TooMuch(more) => quota.capacity().saturating_add(more),
        }
    }
}

// Few enough for the sweep of one call to see them all, so that a key is gone as soon as it has expired.
const KEYS: usize = 4;

/// Names that begin like each other, and few, so that most come again while they are out.
const HOLDERS: [&str; 4] = ["a", "a1", "A", "b"];
const IDS: [u64; 3] = [1, 11, (1 << 53) - 1];

/// What somebody else may have left under a key.
const SPOILT: [&str; 20] = [
    "garbage",
    "",
    "1 0 1 1",
    "1 2 3",
    "-1 1 1 1",
    "1e3 1 1 1",
    "1 1 1 1 ",
    "1 1 1 1x",
    "1 1 1 1 a",
    "1 1 1 1  a:1:1:1:1",
    "1 1 1 1 a:1:1:1:1 ",
    "1 1 1 1 a:1:1:1:1x b:1:1:1:1",
    "1 1 1 1 a:1:1:1",
    "1 1 1 1 a:1:1:1:1:1",
    "1 1 1 1 a-b:1:1:1:1",
    "1 1 1 1 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1:1:1:1",
    "1 1 1 1 a:9007199254740992:1:1:1",
    "1 1 1 1 a:1:0:1:1",
    "1 1 1 1 a:1:1:2:1",
    "1 1 1 1 a:1:1:1:60000001",
];

fn leases() -> impl Strategy<Value = PlannedLease> {
    let want = prop_oneof![
        1 => Just(Amount::Nothing),
        2 => (1..9_u64).prop_map(Amount::Tokens),
        3 => (1..9_u64).prop_map(Amount::Share),
    ];
    let tokens = prop_oneof![
        1 => (0..9_u64).prop_map(Amount::Tokens),
        1 => (1..9_u64).prop_map(Amount::Share),
        2 => prop_oneof![Just(1_u64), Just(u64::MAX)].prop_map(Amount::TooMuch),
    ];
    let ttl_us =
        prop_oneof![1 => 1..10_u64, 2 => 1..3_000_000_u64, 4 => 1..=MAX_TTL_US, 2 => Just(MAX_TTL_US)];
    let returns = vec((0..IDS.len(), tokens), 0..4);
    let alone = prop::bool::weighted(0.4);
    (alone, 0..HOLDERS.len(), 0..IDS.len(), want, ttl_us, returns).prop_map(
        |(alone, holder, id, want, ttl_us, mut returns)| {
            returns.sort_by_key(|(id, _)| *id);
            returns.dedup_by_key(|(id, _)| *id);
            PlannedLease { alone, holder, id, want, ttl_us, returns }
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let gap = prop_oneof![0..10_u64, 0..3_000_000_u64, 0..100_000_000_u64, 0..2 * DAY_US, 0..400 * DAY_US];
    let cost = prop_oneof![
        6 => (1..4_u64).prop_map(Amount::Tokens),
        3 => (1..9_u64).prop_map(Amount::Share),
        2 => Just(Amount::Whole),
        1 => prop_oneof![1..3_u64, (1_u64 << 53)..u64::MAX].prop_map(Amount::TooMuch),
    ];
    let (edit, shadow) = (prop::bool::weighted(0.1), prop::bool::weighted(0.2));
    let lease = prop::option::weighted(0.7, leases());
    let planned = (0..KEYS, edit, 0..quotas().len(), cost, shadow, lease).prop_map(
        |(key, edit, quota, cost, shadow, lease)| Planned { key, edit, quota, cost, shadow, lease },
    );
    let take = vec(planned, 1..4).prop_map(|mut charges| {
        charges.sort_by_key(|charge| charge.key);
        charges.dedup_by_key(|charge| charge.key);
        charges
    });
    let step = prop_oneof![
        12 => vec(take, 1..4).prop_map(Step::Takes),
        6 => gap.clone().prop_map(Step::Forward),
        2 => gap.prop_map(Step::Back),
        1 => prop_oneof![
            (0..KEYS, 0..SPOILT.len()).prop_map(|(key, value)| Step::Spoil { key, value }),
            (0..KEYS).prop_map(Step::Reset),
            (0..KEYS).prop_map(Step::Reset),
            (0..KEYS).prop_map(Step::GiveAllBack),
            (0..KEYS).prop_map(Step::GiveAllBack),
        ],
    ];
    vec(step, 100..200)
}

/// The charge that is planned, in view of the limits as they are; an edit changes them.
fn carry_out(plan: &Planned, limits: &mut [TokenBucket; KEYS]) -> Charge {
    if plan.edit {
        limits[plan.key] = quotas()[plan.quota];
    }
    let quota = limits[plan.key];
    let cost = match &plan.lease {
        Some(lease) if lease.alone => 0,
        _ => plan.cost.of(&quota),
    };
    let lease = plan.lease.as_ref().map(|lease| LeaseAsk {
        holder: HOLDERS[lease.holder].to_owned(),
        id: IDS[lease.id],
        want: lease.want.of(&quota),
        ttl_us: lease.ttl_us,
        returns: lease
            .returns
            .iter()
            .map(|(id, tokens)| Return { id: IDS[*id], tokens: tokens.of(&quota) })
            .collect(),
    });
    Charge { shadow: plan.shadow, lease, ..charge(&plan.key.to_string(), quota, cost) }
}

/// Gives everything back under every name: what two stores answer alike holds the same leases.
fn give_all_back(key: usize, quota: TokenBucket) -> TakeRequest {
    let names = HOLDERS.iter().flat_map(|holder| IDS.map(|id| (holder, id)));
    request(names.map(|(holder, id)| vec![renewal(&key.to_string(), quota, give_back(holder, id, u64::MAX))]))
}

/// Carries out a history on script and model.
fn compare(history: Vec<Step>, mut limits: [TokenBucket; KEYS]) -> Result<(), TestCaseError> {
    let (mut script, mut model) = (Script::new(100), Authority::default());
    let keys: Vec<_> = (0..KEYS).map(|key| format!("rl:{{1}}:{key}")).collect();
    let last = (0..KEYS).map(Step::GiveAllBack);
    for step in history.into_iter().chain(last) {
        let request = match step {
            Step::Forward(gap_us) => {
                script.set_clock(script.now_us() + gap_us);
                continue;
            }
            Step::Back(gap_us) => {
                script.set_clock(script.now_us().saturating_sub(gap_us));
                continue;
            }
            Step::Spoil { key, value } => {
                let value = SPOILT[value].as_bytes();
                script.keyspace.lock().unwrap().set(keys[key].as_bytes(), value, None).unwrap();
                model.spoil(&keys[key]);
                continue;
            }
            Step::Reset(key) => {
                script.keyspace.lock().unwrap().remove(keys[key].as_bytes());
                model.reset(&keys[key]);
                continue;
            }
            Step::GiveAllBack(key) => give_all_back(key, limits[key]),
            Step::Takes(takes) => request(
                takes.iter().map(|take| take.iter().map(|plan| carry_out(plan, &mut limits)).collect()),
            ),
        };
        let expected = decide(&mut model, &request, script.now_us());
        prop_assert_eq!(script.decide(&request).unwrap(), expected, "{:?}", request);
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
        admitted += script.decide(&batch).unwrap().chunks(5).filter(|take| take[0] == 1).count() as u64;
    }
    assert_eq!(admitted, 100 + (CALLS - 1) * STEP_US / 36_000_000);
}

#[test]
fn a_refused_take_charges_none_of_its_keys_in_any_order() {
    let (wide, narrow) = (charge("wide", quota(10, "1/h"), 1), charge("narrow", quota(1, "1/h"), 1));
    for pair in [vec![wide.clone(), narrow.clone()], vec![narrow.clone(), wide.clone()]] {
        let mut script = Script::new(100);
        let answer = script.decide(&request(vec![pair; 20])).unwrap();
        let admitted: Vec<_> = answer.chunks(9).map(|take| take[0]).collect();
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
    assert_eq!(answer[..9], [1, 0, 0, HOUR_US, 0, 1, 0, HOUR_US, 0]);
    assert_eq!(answer[9..18], [1, 0, HOUR_US, HOUR_US, 0, 0, 0, 2 * HOUR_US, 0]);
    assert_eq!(answer[18..], [0, 0, HOUR_US, HOUR_US, 0, 0, HOUR_US, 2 * HOUR_US, 0]);
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
    assert_eq!(answer[5..14], [-1, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(answer[14..16], [1, 3], "the failed take charged nothing");
    assert_eq!(script.get("rl:{1}:spoilt").unwrap(), "what is this");
}

#[test]
fn a_full_store_decides_for_the_keys_it_has_and_refuses_a_batch_with_a_new_one_whole() {
    let mut script = Script::new(1);
    let batch = |keys: &[&str]| request(keys.iter().map(|key| vec![charge(key, quota(5, "1/h"), 1)]));
    script.decide(&batch(&["a"])).unwrap();
    assert_eq!(script.decide(&batch(&["a", "a"])).unwrap()[5..7], [1, 2], "two more of five");
    let before = script.get("rl:{1}:a");
    for keys in [["a", "b"], ["b", "a"]] {
        let error = script.decide(&batch(&keys)).unwrap_err();
        assert!(matches!(error, StoreError::Refused { refusal: Refusal::OutOfMemory, .. }), "{error:?}");
        assert_eq!((script.get("rl:{1}:a"), script.get("rl:{1}:b")), (before.clone(), None));
    }
    script.set_clock(START_US + DAY_US);
    assert_eq!(script.decide(&batch(&["b"])).unwrap()[..2], [1, 4], "the old one has expired");
}

/// What the script and the model answer to one charge without its verdict, which must be the same.
fn both(script: &mut Script, model: &mut Authority, charge: Charge) -> [i64; 4] {
    let request = request([vec![charge]]);
    let answer = script.decide(&request).unwrap();
    assert_eq!(answer, decide(model, &request, script.now_us()), "{request:?}");
    answer[1..].try_into().unwrap()
}

#[test]
fn a_lease_is_granted_once_and_given_back_once() {
    let (mut script, mut model) = (Script::new(100), Authority::default());
    let mut answer = |ask| both(&mut script, &mut model, renewal("p", quota(100, "100/h"), ask));
    assert_eq!(answer(ask("a", 1, 1_000))[3], 50, "half of what is left");
    assert_eq!(answer(ask("a", 1, 1_000))[3], 0, "the same request again");
    assert_eq!(answer(ask("b", 1, 1_000))[3], 12, "half of a half where another holds some");
    assert_eq!(answer(give_back("b", 7, 9))[0], 38, "an unknown one");
    assert_eq!(answer(give_back("b", 1, 99))[0], 50, "not more than was granted");
    assert_eq!(answer(give_back("b", 1, 99))[0], 50, "given back before");
    assert_eq!(answer(give_back("a", 1, 20))[0], 70, "what was not spent");
}

#[test]
fn what_time_has_refilled_is_not_given_back() {
    let (mut script, mut model) = (Script::new(100), Authority::default());
    let limit = quota(100, "1/s");
    both(&mut script, &mut model, renewal("p", limit, ask("a", 1, 1_000)));
    script.set_clock(START_US + 20_000_000);
    let spent = both(&mut script, &mut model, charge("p", limit, 70));
    assert_eq!(spent[0], 0, "70 of 50 left and 20 refilled");
    let back = both(&mut script, &mut model, renewal("p", limit, give_back("a", 1, 50)));
    assert_eq!(back[0], 30);
}

#[test]
fn a_lease_that_has_ended_gives_nothing_back() {
    let limit = quota(100, "100/h");
    for (later_us, left) in [(999, 100), (1_000, 50)] {
        let (mut script, mut model) = (Script::new(100), Authority::default());
        let lease = LeaseAsk { ttl_us: 1_000, ..ask("a", 1, 50) };
        both(&mut script, &mut model, renewal("p", limit, lease));
        script.set_clock(START_US + later_us);
        let back = both(&mut script, &mut model, renewal("p", limit, give_back("a", 1, 50)));
        assert_eq!(back[0], left, "after {later_us} µs");
    }
}

#[test]
fn a_key_keeps_a_bounded_number_of_leases() {
    let (mut script, mut model) = (Script::new(100), Authority::default());
    let limit = quota(1 << 30, "1/s");
    let mut granted = |id| both(&mut script, &mut model, renewal("p", limit, ask("a", id, 1)))[3];
    assert_eq!((0..MAX_LEASES as u64 + 2).map(&mut granted).sum::<i64>(), 128);
    let back = LeaseAsk { want: 1, ..give_back("a", 5, 1) };
    let charge = renewal("p", limit, LeaseAsk { id: 1_000, ..back });
    assert_eq!(both(&mut script, &mut model, charge)[3], 1, "where one has come back there is room");
}

#[test]
fn leases_are_written_after_the_bucket_and_a_full_bucket_is_gone_with_them() {
    let mut script = Script::new(100);
    let limit = quota(10, "3/s");
    let renew = |ask| request([vec![renewal("p", limit, ask)]]);
    script.decide(&renew(ask("a", 7, 2))).unwrap();
    script.decide(&renew(ask("b", (1 << 53) - 1, 1))).unwrap();
    let value = format!(
        "3000000 1000000 3 {START_US} a:7:2:{START_US}:60000000 b:9007199254740991:1:{START_US}:60000000"
    );
    assert_eq!(script.get("rl:{1}:p").unwrap(), value);
    script.decide(&renew(give_back("a", 7, 2))).unwrap();
    let value = format!("1000000 1000000 3 {START_US} b:9007199254740991:1:{START_US}:60000000");
    assert_eq!(script.get("rl:{1}:p").unwrap(), value);
    script.decide(&renew(give_back("b", (1 << 53) - 1, 1))).unwrap();
    assert_eq!(script.get("rl:{1}:p"), None);
}

#[test]
fn a_refused_take_gives_back_and_an_ask_that_changes_nothing_writes_nothing() {
    let mut script = Script::new(100);
    let limit = quota(10, "1/h");
    script.decide(&request([vec![renewal("p", limit, ask("a", 1, 5))]])).unwrap();
    let before = script.get("rl:{1}:p");
    script.set_clock(START_US + 1_000);
    script.decide(&request([vec![renewal("p", limit, give_back("a", 2, 5))]])).unwrap();
    script.decide(&request([vec![renewal("other", limit, give_back("a", 1, 5))]])).unwrap();
    assert_eq!((script.get("rl:{1}:p"), script.get("rl:{1}:other")), (before, None));
    let refused = Charge { cost: 11, ..renewal("p", limit, give_back("a", 1, 4)) };
    assert_eq!(script.decide(&request([vec![refused]])).unwrap()[..3], [0, 9, -1]);
}
