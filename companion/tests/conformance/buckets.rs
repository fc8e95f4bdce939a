//! What the script says of buckets without leases and reports.

use companion::store::{Refusal, StoreError};
use limiter::authority::Authority;
use limiter::wire::Charge;
use proptest::prelude::*;

use crate::planned::quotas;
use crate::script::{DAY_US, HOUR_US, START_US, Script, charge, decide, quota, request};

proptest! {
    #![proptest_config(crate::histories::config(300))]

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
        admitted += script.decide(&batch).unwrap().chunks(6).filter(|take| take[0] == 1).count() as u64;
    }
    assert_eq!(admitted, 100 + (CALLS - 1) * STEP_US / 36_000_000);
}

#[test]
fn a_refused_take_charges_none_of_its_keys_in_any_order() {
    let (wide, narrow) = (charge("wide", quota(10, "1/h"), 1), charge("narrow", quota(1, "1/h"), 1));
    for pair in [vec![wide.clone(), narrow.clone()], vec![narrow.clone(), wide.clone()]] {
        let mut script = Script::new(100);
        let answer = script.decide(&request(vec![pair; 20])).unwrap();
        let admitted: Vec<_> = answer.chunks(11).map(|take| take[0]).collect();
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
    assert_eq!(answer[..11], [1, 0, 0, HOUR_US, 0, 0, 1, 0, HOUR_US, 0, 0]);
    assert_eq!(answer[11..22], [1, 0, HOUR_US, HOUR_US, 0, 0, 0, 0, 2 * HOUR_US, 0, 0]);
    assert_eq!(answer[22..], [0, 0, HOUR_US, HOUR_US, 0, 0, 0, HOUR_US, 2 * HOUR_US, 0, 0]);
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
    assert_eq!(answer[6..17], [-1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(answer[17..19], [1, 3], "the failed take charged nothing");
    assert_eq!(script.get("rl:{1}:spoilt").unwrap(), "what is this");
}

#[test]
fn a_full_store_decides_for_the_keys_it_has_and_refuses_a_batch_with_a_new_one_whole() {
    let mut script = Script::new(1);
    let batch = |keys: &[&str]| request(keys.iter().map(|key| vec![charge(key, quota(5, "1/h"), 1)]));
    script.decide(&batch(&["a"])).unwrap();
    assert_eq!(script.decide(&batch(&["a", "a"])).unwrap()[6..8], [1, 2], "two more of five");
    let before = script.get("rl:{1}:a");
    for keys in [["a", "b"], ["b", "a"]] {
        let error = script.decide(&batch(&keys)).unwrap_err();
        assert!(matches!(error, StoreError::Refused { refusal: Refusal::OutOfMemory, .. }), "{error:?}");
        assert_eq!((script.get("rl:{1}:a"), script.get("rl:{1}:b")), (before.clone(), None));
    }
    script.set_clock(START_US + DAY_US);
    assert_eq!(script.decide(&batch(&["b"])).unwrap()[..2], [1, 4], "the old one has expired");
}
