//! What the script says of reports.

use limiter::authority::Authority;
use limiter::quota::MAX_PARTS;
use limiter::wire::{Charge, MAX_LEASE_ID, MAX_REPORTERS, MAX_TTL_US, Report};

use crate::script::{
    HOUR_US, START_US, Script, ask, both, charge, decide, delivery, give_back, quota, renewal, report,
    request,
};

#[test]
fn a_token_is_charged_once_however_often_and_late_its_number_comes() {
    let (mut script, mut model) = (Script::new(100), Authority::default());
    let mut left = |from, to| {
        both(&mut script, &mut model, delivery("p", quota(100, "100/h"), report("a", from, to)))[0]
    };
    assert_eq!(left(0, 10), 90);
    assert_eq!(left(0, 10), 90, "the same report again");
    assert_eq!(left(0, 15), 85, "the next one, whose sender had no answer to the first");
    assert_eq!(left(5, 12), 85, "an older one");
    assert_eq!(left(0, 15), 85, "what that has not made the store forget");
    assert_eq!(left(20, 22), 83, "the sender knows of five more that were charged");
    assert_eq!(left(15, 22), 83, "and those are not made up for");
    assert_eq!(left(22, 22), 83, "nothing");
}

#[test]
fn every_holder_counts_for_itself_and_on_every_key() {
    let (mut script, mut model) = (Script::new(100), Authority::default());
    let mut answer = |key, holder| {
        let charged =
            both(&mut script, &mut model, delivery(key, quota(100, "100/h"), report(holder, 0, 10)));
        (charged[0], charged[4])
    };
    assert_eq!(answer("p", "a"), (90, 1));
    assert_eq!(answer("p", "A"), (80, 2));
    assert_eq!(answer("p", "a1"), (70, 3));
    assert_eq!(answer("q", "a"), (90, 1));
    assert_eq!(answer("p", "a"), (70, 3));
}

#[test]
fn what_does_not_fit_is_owed() {
    let (mut script, mut model) = (Script::new(100), Authority::default());
    let limit = quota(100, "1/s");
    let owed = both(&mut script, &mut model, Charge { cost: 1, ..delivery("p", limit, report("a", 0, 250)) });
    assert_eq!(owed, [0, 151_000_000, 250_000_000, 0, 1]);
    script.set_clock(START_US + 150_999_999);
    assert_eq!(both(&mut script, &mut model, charge("p", limit, 1))[1], 1);
    script.set_clock(START_US + 151_000_000);
    assert_eq!(both(&mut script, &mut model, charge("p", limit, 1))[1], 0);
}

#[test]
fn a_debt_has_a_bound_that_is_met_exactly() {
    for (capacity, rate) in [(1 << 52, "1000000000/s"), (100, "100/h"), (75_059_993, "59/m"), (1, "1/d")] {
        let limit = quota(capacity, rate);
        let bound = MAX_PARTS / limit.parts_per_token();
        for to in [bound - 2, bound - 1, bound, bound + 1, 2 * bound - 1, MAX_LEASE_ID] {
            let (mut script, mut model) = (Script::new(100), Authority::default());
            both(&mut script, &mut model, charge("p", limit, 1));
            both(&mut script, &mut model, delivery("p", limit, report("a", 0, to)));
            let value = script.get("rl:{1}:p").unwrap();
            let spent: u64 = value.split(' ').next().unwrap().parse().unwrap();
            let expected = u128::from(to + 1) * u128::from(limit.parts_per_token());
            assert_eq!(u128::from(spent), expected.min(u128::from(MAX_PARTS)), "{rate} {to}");
            both(&mut script, &mut model, delivery("p", limit, report("b", 0, MAX_LEASE_ID)));
            assert!(script.get("rl:{1}:p").unwrap().starts_with("4503599627370496 "), "{rate} {to}");
        }
    }
}

#[test]
fn a_refused_take_charges_what_it_reports_and_nothing_else() {
    let (mut script, mut model) = (Script::new(100), Authority::default());
    let limit = quota(10, "1/h");
    let reporting = |to| {
        let lease = Some(ask("a", 1, 4));
        Charge { cost: 2, lease, ..delivery("p", limit, report("a", 0, to)) }
    };
    let refused = request([vec![reporting(3), charge("q", limit, 11)]]);
    let answer = script.decide(&refused).unwrap();
    assert_eq!(answer, decide(&mut model, &refused, START_US));
    assert_eq!(answer[..6], [0, 7, 0, 3 * HOUR_US, 0, 1]);
    assert_eq!(script.get("rl:{1}:q"), None);
    // What is reported is charged before the cost is asked for: it was spent before.
    let answer = both(&mut script, &mut model, reporting(9));
    assert_eq!(answer, [1, HOUR_US, 9 * HOUR_US, 0, 1]);
}

#[test]
fn a_holder_with_nothing_to_report_is_written_when_half_its_ttl_has_gone() {
    let (mut script, mut model) = (Script::new(100), Authority::default());
    let limit = quota(10, "1/h");
    let mut value_after = |later_us, report: Report| {
        script.set_clock(START_US + later_us);
        assert_eq!(both(&mut script, &mut model, delivery("p", limit, report))[4], 1);
        script.get("rl:{1}:p").unwrap().split_once(" a:").unwrap().1.to_owned()
    };
    let of_ttl = |ttl_us| Report { ttl_us, ..report("a", 5, 5) };
    let written = |later_us, ttl_us| format!("5:0:{}:{ttl_us}", START_US + later_us);
    assert_eq!(value_after(0, of_ttl(1_001)), written(0, 1_001));
    assert_eq!(value_after(500, of_ttl(1_001)), written(0, 1_001), "it was heard of lately");
    assert_eq!(value_after(501, of_ttl(1_001)), written(501, 1_001));
    assert_eq!(value_after(502, of_ttl(1_002)), written(502, 1_002), "another ttl");
    assert_eq!(value_after(503, Report { ttl_us: 1_002, ..report("a", 4, 4) }), written(502, 1_002));
    let more = Report { ttl_us: 1_002, ..report("a", 5, 6) };
    assert_eq!(value_after(504, more), format!("6:0:{}:1002", START_US + 504), "tokens");
}

#[test]
fn a_full_bucket_is_kept_for_its_reporters_and_gone_with_the_last() {
    let (mut script, mut model) = (Script::new(100), Authority::default());
    let limit = quota(10, "3/s");
    let nothing = report("a", MAX_LEASE_ID, MAX_LEASE_ID);
    both(&mut script, &mut model, delivery("p", limit, nothing.clone()));
    let short = Report { ttl_us: 2_000_000, ..report("b", 0, 0) };
    both(&mut script, &mut model, delivery("p", limit, short));
    let reporters = format!("a:9007199254740991:0:{START_US}:60000000 b:0:0:{START_US}:2000000");
    let full = format!("0 1000000 3 {START_US} {reporters}");
    assert_eq!(script.get("rl:{1}:p").unwrap(), full);
    both(&mut script, &mut model, renewal("p", limit, ask("c", 7, 1)));
    let leased = format!("1000000 1000000 3 {START_US} c:7:1:{START_US}:60000000 {reporters}");
    assert_eq!(script.get("rl:{1}:p").unwrap(), leased);
    both(&mut script, &mut model, renewal("p", limit, give_back("c", 7, 1)));
    assert_eq!(script.get("rl:{1}:p").unwrap(), full);
    for (later_us, proxies) in [(1_999_999, 2), (2_000_000, 1)] {
        script.set_clock(START_US + later_us);
        let answer = both(&mut script, &mut model, delivery("p", limit, nothing.clone()));
        assert_eq!((answer[0], answer[4]), (10, proxies), "after {later_us} µs");
    }
    // Neither report has renewed the holder: the key lives through the millisecond after its ttl.
    let last_ms = START_US / 1_000 + MAX_TTL_US / 1_000 + 1;
    for (at_ms, is_there) in [(last_ms, true), (last_ms + 1, false)] {
        script.set_clock(at_ms * 1_000);
        script.decide(&request([vec![charge("other", limit, 1)]])).unwrap();
        assert_eq!(script.get("rl:{1}:p").is_some(), is_there, "{at_ms}");
    }
}

#[test]
fn reporters_outlive_an_edit_and_not_a_healed_clock() {
    let (mut script, mut model) = (Script::new(100), Authority::default());
    let (old, new) = (quota(10, "1/s"), quota(20, "7/s"));
    both(&mut script, &mut model, delivery("p", old, report("a", 0, 5)));
    let edited = both(&mut script, &mut model, delivery("p", new, report("a", 0, 6)));
    assert_eq!((edited[0], edited[4]), (14, 1), "one more than the five before");
    script.set_clock(START_US - 2_000_000);
    let stepped = both(&mut script, &mut model, delivery("p", new, report("b", 0, 1)));
    assert_eq!((stepped[0], stepped[4]), (13, 2), "a clock that was a little ahead");
    script.set_clock(START_US - 2_857_144);
    let healed = both(&mut script, &mut model, delivery("p", new, report("b", 0, 1)));
    assert_eq!((healed[0], healed[4]), (12, 1), "one that was ahead by more than a whole refill");
}

#[test]
fn a_key_remembers_a_bounded_number_of_reporters() {
    let (mut script, mut model) = (Script::new(100), Authority::default());
    let limit = quota(10_000, "1/h");
    let mut answer = |holder: &str, ttl_us| {
        let report = Report { ttl_us, ..report(holder, 0, 10) };
        let charged = both(&mut script, &mut model, delivery("p", limit, report));
        (charged[0], charged[4])
    };
    let most = i64::try_from(MAX_REPORTERS).unwrap();
    for holder in 1..=most {
        assert_eq!(answer(&format!("h{holder}"), MAX_TTL_US), (10_000 - 10 * holder, holder));
    }
    let left = 10_000 - 10 * most;
    assert_eq!(answer("more", MAX_TTL_US), (left - 10, most + 1));
    assert_eq!(answer("more", MAX_TTL_US), (left - 20, most + 1), "charged as it comes");
    assert_eq!(answer("h1", MAX_TTL_US), (left - 20, most), "remembered");
    assert_eq!(answer("h1", 1), (left - 20, most));
    script.set_clock(START_US + 1);
    let mut answer = |holder| both(&mut script, &mut model, delivery("p", limit, report(holder, 0, 10)))[0];
    assert_eq!(answer("more"), left - 30, "where one has ended there is room");
    assert_eq!(answer("more"), left - 30);
}

#[test]
fn a_value_with_more_entries_than_are_kept_is_unreadable() {
    for (tokens, count, verdict) in [(0, 128, 1), (0, 129, -1), (1, 128, 1), (1, 129, -1)] {
        let mut script = Script::new(100);
        let entries = (0..count).map(|id| format!("h{id}:{id}:{tokens}:{START_US}:60000000"));
        let entries = entries.collect::<Vec<_>>().join(" ");
        let value = format!("5000000 1000000 1 {START_US} {entries}");
        script.keyspace.lock().unwrap().set(b"rl:{1}:p", value.as_bytes(), None).unwrap();
        let answer = script.decide(&request([vec![charge("p", quota(10, "1/s"), 1)]])).unwrap();
        assert_eq!(answer[0], verdict, "{count} of {tokens}");
    }
}
