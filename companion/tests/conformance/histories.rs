//! Random histories of a store, of which script and model must tell the same.

use limiter::authority::Authority;
use limiter::wire::{Charge, MAX_LEASE_ID, TakeRequest};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use crate::planned::{HOLDERS, IDS, KEYS, Past, Planned, Reported, charges, quotas};
use crate::script::{DAY_US, Script, decide, delivery, give_back, renewal, report, request};

#[derive(Clone, Debug)]
enum Step {
    Forward(u64),
    Back(u64),
    Spoil {
        key: usize,
        value: usize,
    },
    Reset(usize),
    /// Everything is given back under every name, and every holder reports a token more.
    Audit(usize),
    Takes(Vec<Vec<Planned>>),
}

/// What somebody else may have left under a key.
const SPOILT: [&str; 24] = [
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
    "1 1 1 1 a:1:1:2:1",
    "1 1 1 1 a:1:1:1:0",
    "1 1 1 1 a:1:1:1:60000001",
    "1 1 1 1 a:9007199254740992:0:1:1",
    "1 1 1 1 a:1:0:2:1",
    "1 1 1 1 a:1:0:1:0",
    "1 1 1 1 a:1:0:1:60000001",
];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let gap = prop_oneof![0..10_u64, 0..3_000_000_u64, 0..100_000_000_u64, 0..2 * DAY_US, 0..400 * DAY_US];
    let take = vec(charges(), 1..4).prop_map(|mut charges| {
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
            (0..KEYS).prop_map(Step::Audit),
            (0..KEYS).prop_map(Step::Audit),
        ],
    ];
    vec(step, 100..200)
}

/// What two stores answer alike to that holds the same leases, and the same reporters with the same numbers.
fn audit(key: usize, past: &mut Past) -> TakeRequest {
    let (name, quota) = (key.to_string(), past.limits[key]);
    let names = HOLDERS.iter().flat_map(|holder| IDS.map(|id| (holder, id)));
    let returns = names.map(|(holder, id)| renewal(&name, quota, give_back(holder, id, u64::MAX)));
    let reports = HOLDERS.iter().zip(&past.reported[key]).map(|(holder, last)| {
        delivery(&name, quota, report(holder, last.from, (last.to + 1).min(MAX_LEASE_ID)))
    });
    request(returns.chain(reports).map(|charge: Charge| vec![charge]))
}

/// Carries out a history on script and model.
fn compare(history: Vec<Step>, past: &mut Past) -> Result<(), TestCaseError> {
    let (mut script, mut model) = (Script::new(100), Authority::default());
    let keys: Vec<_> = (0..KEYS).map(|key| format!("rl:{{1}}:{key}")).collect();
    let last = (0..KEYS).map(Step::Audit);
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
            Step::Audit(key) => audit(key, past),
            Step::Takes(takes) => {
                request(takes.iter().map(|take| take.iter().map(|plan| plan.carry_out(past)).collect()))
            }
        };
        let expected = decide(&mut model, &request, script.now_us());
        prop_assert_eq!(script.decide(&request).unwrap(), expected, "{:?}", request);
    }
    Ok(())
}

/// So many cases, and failures kept beside the tests.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/conformance.regressions"))),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(300))]

    // At least 30,000 steps a run, of which more than half are batches.
    #[test]
    fn random_histories_give_the_answers_of_the_reference_model(
        history in steps(),
        limits in prop::array::uniform4(0..quotas().len()),
    ) {
        let reported = [[Reported::default(); HOLDERS.len()]; KEYS];
        compare(history, &mut Past { limits: limits.map(|index| quotas()[index]), reported })?;
    }
}
