//! Tests of the answers' own; the vectors are beside the fields.

use proptest::prelude::*;

use super::*;
use crate::bucket::{Fit, Standing};
use crate::decision::Mark;
use crate::fields::Advertised;
use crate::policy::Limit;
use crate::quota::TokenBucket;
use crate::request::Terms;

fn violated(name: &str, wait_us: Option<u64>) -> Item<'_> {
    let advertised = Advertised { quota: 10, window_s: Some(60) };
    Item { name, advertised, state: State::Violated { remaining: 0, wait_us } }
}

fn passed(name: &str) -> Item<'_> {
    Item { state: State::Passed { remaining: 0, reset_us: 90_000_000 }, ..violated(name, None) }
}

fn json(reply: &LocalReply) -> serde_json::Value {
    serde_json::from_str(&reply.body).unwrap()
}

#[test]
fn the_longest_wait_binds_and_the_first_among_equals() {
    let items = [passed("a"), violated("b", Some(5)), violated("c", Some(9)), violated("d", Some(9))];
    assert_eq!(Refusal::of(&items).unwrap().policy, "c");
    let items = [violated("a", Some(u64::MAX - 1)), violated("b", None), violated("c", None)];
    let refusal = Refusal::of(&items).unwrap();
    assert_eq!((refusal.policy, refusal.wait_us), ("b", None));
    assert_eq!(Refusal::of(&[passed("a")]), None);
}

#[test]
fn a_refusal_over_http_is_429_with_json() {
    let reply = Refusal::of(&[violated("per key", Some(44_000_001))]).unwrap().reply(Protocol::Http);
    assert_eq!(
        reply,
        LocalReply {
            status: 429,
            headers: vec![("retry-after", "45".to_owned()), ("content-type", "application/json".to_owned())],
            body: concat!(
                r#"{"error":"rate_limit_exceeded","message":"too many requests for policy \"per key\"; "#,
                r#"retry after 45 s","policy":"per key","retry_after":45}"#
            )
            .to_owned(),
            grpc_status: None,
            details: "tidegate_denied{per_key}".to_owned(),
        }
    );
}

#[test]
fn a_refusal_for_ever_names_no_time() {
    let costly = Refusal::of(&[violated("ops", None)]).unwrap().reply(Protocol::Http);
    let blocked = Item { name: "banned", advertised: Advertised::BLOCKED, state: State::BLOCKED };
    let blocked = Refusal::of(&[blocked]).unwrap().reply(Protocol::Http);
    for reply in [&costly, &blocked] {
        assert_eq!(reply.headers, [("content-type", "application/json".to_owned())]);
        assert_eq!(json(reply).get("retry_after"), None);
    }
    assert_eq!(json(&costly)["message"], r#"the request costs more than policy "ops" ever allows"#);
    assert_eq!(json(&blocked)["message"], r#"policy "banned" lets no request pass"#);
}

#[test]
fn an_outage_is_503_and_not_a_refusal() {
    let unavailable = Unavailable { policy: "orders", retry_after: Duration::from_millis(4_200) };
    let reply = unavailable.reply(Protocol::Http);
    assert_eq!((reply.status, reply.grpc_status), (503, None));
    assert_eq!(reply.details, "tidegate_unavailable{orders}");
    let body = json(&reply);
    assert_eq!(body["error"], "rate_limiter_unavailable");
    assert_eq!((&body["policy"], &body["retry_after"]), (&"orders".into(), &5.into()));
    let reply = unavailable.reply(Protocol::Grpc);
    assert_eq!(reply.grpc_status, Some(14));
    assert_eq!(reply.headers[1], ("grpc-retry-pushback-ms", "5000".to_owned()));
}

#[test]
fn grpc_is_what_envoy_takes_for_it() {
    for grpc in ["application/grpc", "application/grpc+proto", "application/grpc+json"] {
        assert_eq!(Protocol::of(Some(grpc.as_bytes())), Protocol::Grpc, "{grpc}");
    }
    for http in [&b"application/grpc-web"[..], b"application/json", b"", b"\xff"] {
        assert_eq!(Protocol::of(Some(http)), Protocol::Http, "{http:?}");
    }
    assert_eq!(Protocol::of(None), Protocol::Http);
}

fn bucket() -> TokenBucket {
    TokenBucket::new(10, "1/s".parse().unwrap()).unwrap()
}

fn policy(name: &str) -> Policy {
    Policy::new(name, Limit::TokenBucket(bucket()))
}

#[test]
fn a_decision_is_answered_by_its_verdict() {
    let policies = [policy("a"), policy("b")];
    let standing = Standing { remaining: 0, fit: Fit::After(3_000_000), full_us: 10_000_000 };
    let terms = Terms::Bucket { whole: bucket(), part: bucket() };
    let marks = |outcome| {
        let spared = Mark { policy: 0, terms, outcome: Outcome::Spared, standing: Some(standing) };
        vec![spared, Mark { policy: 1, terms, outcome, standing: Some(standing) }]
    };
    let told = |verdict, marks| {
        let reply = reply(&Decision { verdict, marks }, &policies, Protocol::Http)?;
        Some((reply.status, reply.details))
    };
    let unavailable = Verdict::Unavailable { retry_after: Duration::from_secs(5) };
    assert_eq!(told(Verdict::Admit, marks(Outcome::Admitted)), None);
    let refused = (429, "tidegate_denied{b}".to_owned());
    assert_eq!(told(Verdict::Refuse, marks(Outcome::Refused)), Some(refused));
    let failed = (503, "tidegate_unavailable{b}".to_owned());
    assert_eq!(told(unavailable, marks(Outcome::Unavailable)), Some(failed));
    // Marks that explain nothing change no verdict.
    assert_eq!(told(Verdict::Refuse, Vec::new()).unwrap().0, 429);
    assert_eq!(told(unavailable, Vec::new()).unwrap().0, 503);
}

proptest! {
    #[test]
    fn any_name_leaves_json_valid_and_details_without_blanks(name in "\\PC{0,64}|[ -~]{0,64}") {
        let reply = Refusal::of(&[violated(&name, Some(1))]).unwrap().reply(Protocol::Http);
        let body = json(&reply);
        if name.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            prop_assert_eq!(&body["policy"], name.as_str());
        }
        prop_assert!(reply.details.bytes().all(|byte| byte.is_ascii_graphic()));
    }

    #[test]
    fn retry_after_covers_every_wait_and_is_at_least_a_second(waits in proptest::collection::vec(any::<u64>(), 1..5)) {
        let items: Vec<_> = waits.iter().map(|wait_us| violated("a", Some(*wait_us))).collect();
        let retry_after_s = Refusal::of(&items).unwrap().retry_after_s().unwrap();
        prop_assert!(retry_after_s >= 1);
        prop_assert!(waits.iter().all(|wait_us| u128::from(retry_after_s) * 1_000_000 >= u128::from(*wait_us)));
        prop_assert!(waits.iter().any(|wait_us| u128::from(retry_after_s.max(2) - 1) * 1_000_000 < u128::from((*wait_us).max(1_000_001))));
    }
}
