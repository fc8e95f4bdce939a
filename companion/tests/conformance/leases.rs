//! What the script says of leases.

use limiter::authority::Authority;
use limiter::wire::{Charge, LeaseAsk, MAX_LEASES, Return};

use crate::script::{START_US, Script, ask, both, charge, give_back, quota, renewal, request};

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

#[test]
fn a_lease_that_is_used_up_makes_room_when_nothing_of_it_comes_back() {
    let (mut script, mut model) = (Script::new(100), Authority::default());
    let limit = quota(1_000_000, "1/h");
    for id in 0..MAX_LEASES as u64 {
        both(&mut script, &mut model, renewal("p", limit, ask("a", id, 1)));
    }
    let mut answer = |ask| both(&mut script, &mut model, renewal("p", limit, ask));
    assert_eq!(answer(ask("a", 1_000, 1))[3], 0, "there is no room");
    let left = 1_000_000 - i64::try_from(MAX_LEASES).unwrap();
    let used_up = LeaseAsk { returns: vec![Return { id: 7, tokens: 0 }], ..ask("a", 1_000, 2) };
    let [remaining, _, _, granted, _] = answer(used_up);
    assert_eq!((remaining, granted), (left - 2, 2), "nothing is given back but the place");
    assert_eq!(answer(give_back("a", 7, 1))[0], left - 2, "it is out no longer");
    assert_eq!(answer(ask("a", 1_001, 1))[3], 0, "one place, not more");
}
