//! What holds for all values of the fields, and how they meet upstream's.

use proptest::prelude::*;

use super::samples::{Recorded, asked, item};
use super::*;
use crate::answer::Refusal;
use crate::bucket::{Fit, Standing};
use crate::quota::TokenBucket;

/// A member of a list: its String, and its parameters in their order.
type Member = (String, Vec<(char, u64)>);

/// Reads a Structured Field List of Strings with Integer parameters of one letter, in canonical form.
fn parsed(list: &str) -> Option<Vec<Member>> {
    let mut rest = list;
    let mut members = Vec::new();
    loop {
        rest = rest.strip_prefix('"')?;
        let mut name = String::new();
        loop {
            let char = rest.chars().next()?;
            rest = &rest[1..];
            match char {
                '"' => break,
                '\\' => {
                    name.push(rest.chars().next().filter(|char| "\"\\".contains(*char))?);
                    rest = &rest[1..];
                }
                ' '..='~' => name.push(char),
                _ => return None,
            }
        }
        let mut parameters = Vec::new();
        while let Some(parameter) = rest.strip_prefix(';') {
            let key = parameter.chars().next().filter(char::is_ascii_lowercase)?;
            let number = parameter[1..].strip_prefix('=')?;
            let digits = number.bytes().take_while(u8::is_ascii_digit).count();
            if !(1..=15).contains(&digits) {
                return None;
            }
            parameters.push((key, number[..digits].parse().ok()?));
            rest = &number[digits..];
        }
        members.push((name, parameters));
        if rest.is_empty() {
            return Some(members);
        }
        rest = rest.strip_prefix(", ")?;
    }
}

fn parameter(member: &Member, key: char) -> Option<u64> {
    member.1.iter().find(|(name, _)| *name == key).map(|(_, number)| *number)
}

fn written(
    families: &[Family],
    items: &[Item<'_>],
    verdict: Verdict,
    theirs: &[(&'static str, &[u8])],
) -> Recorded {
    let mut headers = Recorded::default();
    for (name, value) in theirs {
        headers.set(name, value);
    }
    headers.calls = 0;
    write(families, items, verdict, None, &mut headers);
    headers
}

const DELTA: Family = Family::XRateLimit { reset: Reset::Delta };

fn nine_of_ten() -> Item<'static> {
    item("api", 10, 60, State::Passed { remaining: 9, reset_us: 54_000_000 })
}

#[test]
fn a_field_that_upstream_did_not_send_costs_one_lookup_and_one_write() {
    let calls = |families: &[Family]| written(families, &[nine_of_ten()], Verdict::Admit, &[]).calls;
    assert_eq!(calls(&[Family::Draft11]), 4);
    assert_eq!(calls(&[Family::Draft06]), 6);
    // One lookup tells of all three.
    assert_eq!(calls(&[DELTA]), 4);
    assert_eq!(calls(&[]), 0);
}

#[test]
fn each_family_writes_its_own_fields() {
    let seen = |families: &[Family]| {
        written(families, &[nine_of_ten(), item("b", 0, 1, State::Unknown)], Verdict::Admit, &[])
    };
    let draft_06 = seen(&[Family::Draft06]);
    assert_eq!(draft_06.text("ratelimit-policy"), Some("10;w=60, 0;w=1"));
    assert_eq!(draft_06.triple("ratelimit").as_deref(), Some("10/9/54"));
    assert_eq!(draft_06.fields.len(), 4);
    let x = seen(&[DELTA]);
    assert_eq!(x.triple("x-ratelimit").as_deref(), Some("10/9/54"));
    assert_eq!(x.fields.len(), 3);
    let both = seen(&[Family::Draft06, Family::Draft11]);
    assert_eq!(both.text("ratelimit-policy"), Some(r#""api";q=10;w=60, "b";q=0;w=1"#));
    assert_eq!(both.fields.len(), 5);
}

#[test]
fn a_blocked_policy_has_neither_window_nor_reset() {
    let blocked =
        Item { name: "banned", advertised: Advertised::NOTHING, state: State::Closed(Closed::Blocked) };
    let seen = written(&[Family::Draft11, DELTA], &[blocked], Verdict::Refuse, &[]);
    assert_eq!(seen.text("ratelimit-policy"), Some(r#""banned";q=0"#));
    assert_eq!(seen.text("ratelimit"), Some(r#""banned";r=0"#));
    assert_eq!(seen.triple("x-ratelimit").as_deref(), Some("0/0/-"));
}

#[test]
fn an_epoch_without_a_clock_is_left_out() {
    let seen = written(&[Family::XRateLimit { reset: Reset::Epoch }], &[nine_of_ten()], Verdict::Admit, &[]);
    assert_eq!(seen.triple("x-ratelimit").as_deref(), Some("10/9/-"));
}

#[test]
fn a_name_that_upstream_uses_is_changed_in_both_fields() {
    let theirs: &[(_, &[u8])] = &[("ratelimit-policy", br#""api";q=5;w=1"#)];
    let seen = written(&[Family::Draft11], &[nine_of_ten()], Verdict::Admit, theirs);
    assert_eq!(seen.text("ratelimit-policy"), Some(r#""api";q=5;w=1, "api-2";q=10;w=60"#));
    assert_eq!(seen.text("ratelimit"), Some(r#""api-2";r=9;t=54"#));
}

#[test]
fn an_older_family_tells_of_the_more_restrictive_side() {
    let seen = |remaining: &'static [u8], verdict| {
        let theirs: &[(_, &[u8])] = &[
            ("x-ratelimit-limit", b"50"),
            ("x-ratelimit-remaining", remaining),
            ("x-ratelimit-reset", b"7"),
        ];
        written(&[DELTA], &[nine_of_ten()], verdict, theirs)
    };
    assert_eq!(seen(b"10", Verdict::Admit).triple("x-ratelimit").as_deref(), Some("10/9/54"));
    assert_eq!(seen(b"9", Verdict::Admit).triple("x-ratelimit").as_deref(), Some("50/9/7"));
    assert_eq!(seen(b"3", Verdict::Admit).triple("x-ratelimit").as_deref(), Some("50/3/7"));
    assert_eq!(seen(b"?", Verdict::Admit).triple("x-ratelimit").as_deref(), Some("50/?/7"));
    assert_eq!(seen(b"\xff", Verdict::Admit).fields["x-ratelimit-remaining"], b"\xff");
    assert_eq!(
        seen(b"3", Verdict::Unavailable { retry_after: Duration::from_secs(5) })
            .triple("x-ratelimit")
            .as_deref(),
        Some("50/3/7")
    );
}

#[test]
fn upstreams_reset_does_not_stand_beside_our_refusal_for_ever() {
    let (refused, verdict) = asked("ops", 10, "10/m", 0, 0, 20);
    let theirs: &[(_, &[u8])] = &[("x-ratelimit-remaining", b"1"), ("x-ratelimit-reset", b"7")];
    let seen = written(&[DELTA], &[refused], verdict, theirs);
    assert_eq!(seen.triple("x-ratelimit").as_deref(), Some("10/10/-"));
}

#[test]
fn redirects_carry_no_fields() {
    assert!([300, 302, 399].into_iter().all(is_redirect));
    assert!(![200, 201, 299, 400, 429, 503].into_iter().any(is_redirect));
}

proptest! {
    #[test]
    fn nothing_of_upstreams_list_is_lost(theirs in proptest::collection::vec(any::<u8>(), 0..9_000)) {
        let seen = written(&[Family::Draft11], &[nine_of_ten()], Verdict::Admit, &[("ratelimit", &theirs)]);
        let value = &seen.fields["ratelimit"];
        prop_assert!(value.starts_with(&theirs) || theirs.trim_ascii().is_empty());
        prop_assert!(value.ends_with(b";r=9;t=54"));
    }

    #[test]
    fn both_lists_are_structured_fields_with_values_in_range(
        name in "[ -~]{1,64}", capacity in 1_u64..1_000_000, count in 1_u64..1_000_000, unit in 0_usize..4,
        spent in 0_u64..1_000_000, ago_us in 0_u64..100_000_000_000, cost in 1_u64..2_000,
    ) {
        let rate = format!("{count}/{}", ["s", "m", "h", "d"][unit]);
        // What no store can count exactly is refused before a request is.
        prop_assume!(TokenBucket::new(capacity, rate.parse().unwrap()).is_ok());
        let (ours, verdict) = asked(&name, capacity, &rate, spent.min(capacity), ago_us, cost);
        let seen = written(&[Family::Draft11], &[ours, item("z", u64::MAX, u64::MAX, ours.state)], verdict, &[]);
        let policies = parsed(seen.text("ratelimit-policy").unwrap()).unwrap();
        let states = parsed(seen.text("ratelimit").unwrap()).unwrap();
        prop_assert_eq!(policies.len(), 2);
        for (policy, state) in policies.iter().zip(&states) {
            prop_assert_eq!(&policy.0, &state.0);
            prop_assert!(parameter(state, 'r') <= parameter(policy, 'q'));
            prop_assert!(parameter(policy, 'w') >= Some(1));
        }
        prop_assert_eq!(&states[0].0, &name);
        if verdict == Verdict::Refuse {
            let retry_after_s = Refusal::of(&[ours]).unwrap().retry_after_s();
            prop_assert_eq!(retry_after_s, parameter(&states[0], 't'));
            prop_assert!(retry_after_s.is_none_or(|seconds| seconds >= 1));
        } else {
            // An admitted request is never told a time after the bucket's own fill.
            prop_assert!(parameter(&states[0], 't') <= parameter(&policies[0], 'w'));
            prop_assert!(parameter(&states[0], 't') >= Some(1));
        }
    }

    #[test]
    fn a_longer_wait_is_never_told_as_a_shorter_one(wait_us in any::<u64>(), more_us in any::<u64>()) {
        let told = |wait_us| {
            let refused = item("a", 10, 60, State::Violated { remaining: 0, wait_us: Some(wait_us) });
            let seen = written(&[Family::Draft11], &[refused], Verdict::Refuse, &[]);
            let states = parsed(seen.text("ratelimit").unwrap()).unwrap();
            (parameter(&states[0], 't').unwrap(), Refusal::of(&[refused]).unwrap().retry_after_s().unwrap())
        };
        let (shorter, longer) = (told(wait_us), told(wait_us.saturating_add(more_us)));
        prop_assert!(shorter.0 <= longer.0 && shorter.1 <= longer.1);
        prop_assert!(shorter.0 <= shorter.1);
    }

    #[test]
    fn any_values_are_written_without_a_panic(
        quota in any::<u64>(), window_s in any::<Option<u64>>(), remaining in any::<u64>(),
        full_us in any::<u64>(), now in any::<u64>(), theirs in proptest::collection::vec(any::<u8>(), 0..50),
    ) {
        let bucket = TokenBucket::new(quota % 1_000 + 1, "7/m".parse().unwrap()).unwrap();
        let state = State::passed(&bucket, &Standing { remaining, fit: Fit::Now, full_us });
        let items = [Item { name: "a", advertised: Advertised { quota, window_s }, state }];
        let mut headers = Recorded::default();
        headers.set("x-ratelimit-remaining", &theirs);
        let families = [Family::Draft11, Family::Draft06, Family::XRateLimit { reset: Reset::Epoch }];
        write(&families, &items, Verdict::Admit, Some(Duration::from_secs(now)), &mut headers);
        prop_assert!(parsed(headers.text("ratelimit").unwrap()).is_some());
        prop_assert!(parsed(headers.text("ratelimit-policy").unwrap()).is_some());
    }
}
