//! Tests of what is answered; its forms are in [`forms`], and the vectors are beside the fields.

mod forms;

use proptest::prelude::*;

use super::*;
use crate::bucket::{Fit, Standing};
use crate::decision::Mark;
use crate::fields::Advertised;
use crate::policy::{Limit, Sync};
use crate::quota::TokenBucket;
use crate::request::Terms;

fn item(name: &str, state: State) -> Item<'_> {
    Item { name, advertised: Advertised { quota: 10, window_s: Some(60) }, state }
}

fn violated(name: &str, wait_us: Option<u64>) -> Item<'_> {
    item(name, State::Violated { remaining: 0, wait_us })
}

fn passed(name: &str) -> Item<'_> {
    item(name, State::Passed { remaining: 0, reset_us: 90_000_000 })
}

fn closed(name: &str, closed: Closed) -> Item<'_> {
    Item { advertised: Advertised::NOTHING, ..item(name, State::Closed(closed)) }
}

fn refused<'a>(items: &[Item<'a>], response: &'a Response, protocol: Protocol) -> LocalReply<'a> {
    Refusal::of(items).unwrap().reply(response, protocol)
}

fn orders(retry_after: Duration) -> Unavailable<'static> {
    Unavailable { policy: "orders", policies: vec!["orders"], retry_after }
}

fn json(reply: &LocalReply) -> serde_json::Value {
    serde_json::from_str(&reply.body).unwrap()
}

fn header<'a>(reply: &'a LocalReply, name: &str) -> Vec<&'a str> {
    reply.headers.iter().filter(|(known, _)| *known == name).map(|(_, value)| value.as_ref()).collect()
}

fn response(body: Body, headers: &[(&str, &str)]) -> Response {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Response { status: 403, body, headers }
}

#[test]
fn the_longest_wait_binds_and_the_first_among_equals() {
    let items = [passed("a"), violated("b", Some(5)), violated("c", Some(9)), violated("d", Some(9))];
    let refusal = Refusal::of(&items).unwrap();
    assert_eq!((refusal.policy, refusal.reason), ("c", Reason::Exceeded { wait_us: 9 }));
    assert_eq!(refusal.policies, ["b", "c", "d"]);
    let items = [violated("a", Some(u64::MAX - 1)), violated("b", None), closed("c", Closed::Blocked)];
    let refusal = Refusal::of(&items).unwrap();
    assert_eq!((refusal.policy, refusal.reason), ("b", Reason::TooCostly));
    assert_eq!(Refusal::of(&[passed("a"), item("b", State::Unknown)]), None);
}

#[test]
fn a_refusal_says_why_and_names_a_time_only_where_waiting_helps() {
    let told = |item: Item<'_>| {
        let reply = refused(&[item], &UNSAID, Protocol::Http);
        let body = json(&reply);
        assert_eq!(body["error"], "rate_limit_exceeded");
        let retry_after = body.get("retry_after").map(|seconds| seconds.as_u64().unwrap().to_string());
        assert_eq!(header(&reply, "retry-after"), retry_after.iter().map(String::as_str).collect::<Vec<_>>());
        (reply.details.clone(), body["message"].as_str().unwrap().to_owned(), retry_after.is_some())
    };
    let expected =
        |details: &str, message: &str, is_timed| (details.to_owned(), message.to_owned(), is_timed);
    assert_eq!(
        told(violated("a", Some(1))),
        expected("tidegate_denied{a}", r#"too many requests for policy "a"; retry after 1 s"#, true)
    );
    assert_eq!(
        told(violated("a", None)),
        expected("tidegate_too_costly{a}", r#"the request costs more than policy "a" ever allows"#, false)
    );
    assert_eq!(
        told(closed("a", Closed::Blocked)),
        expected("tidegate_blocked{a}", r#"policy "a" lets no request pass"#, false)
    );
    let message = r#"the request does not say who it is from, which policy "a" asks for"#;
    assert_eq!(told(closed("a", Closed::NoIdentity)), expected("tidegate_no_identity{a}", message, false));
}

#[test]
fn an_outage_is_503_and_not_a_refusal() {
    let unavailable = orders(Duration::from_millis(4_200));
    let reply = unavailable.clone().reply(&UNSAID, Protocol::Http);
    assert_eq!((reply.status, reply.grpc_status), (503, None));
    assert_eq!(reply.details, "tidegate_unavailable{orders}");
    let body = json(&reply);
    assert_eq!(body["error"], "rate_limiter_unavailable");
    assert_eq!((&body["policy"], &body["retry_after"]), (&"orders".into(), &5.into()));
    let reply = unavailable.reply(&UNSAID, Protocol::Grpc);
    assert_eq!(reply.grpc_status, Some(14));
    assert_eq!(reply.headers[1], ("grpc-retry-pushback-ms", "5000".into()));
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

/// Each policy is told apart by its status.
fn policy(name: &str, status: u16, retry_after_s: u64) -> Policy {
    let retry_after = Duration::from_secs(retry_after_s);
    let sync = Sync::Exact(OnFailure::Closed { retry_after });
    let headers = vec![("x-policy".to_owned(), name.to_owned())];
    let response = Response { status, body: Body::Problem, headers };
    Policy { sync, response, ..Policy::new(name, Limit::TokenBucket(bucket())) }
}

fn mark(policy: usize, outcome: Outcome, fit: Fit) -> Mark {
    let standing = Standing { remaining: 0, fit, full_us: 10_000_000 };
    Mark {
        policy,
        terms: Terms::Bucket { whole: bucket(), part: bucket() },
        outcome,
        standing: Some(standing),
    }
}

#[test]
fn a_decision_is_answered_by_its_verdict_as_the_binding_policy_says() {
    let shadow = Policy { shadow: true, ..policy("s", 404, 1) };
    let policies = [shadow, policy("a", 401, 5), policy("b", 402, 9), policy("c", 403, 9)];
    let told = |verdict, marks| {
        let reply = reply(&Decision { verdict, marks }, &policies, Protocol::Http)?;
        let (named, violated) =
            (header(&reply, "x-policy").concat(), json(&reply)["violated-policies"].clone());
        Some((reply.status, reply.details, named, violated))
    };
    let seen = |status, details: &str, name: &str, violated: &[&str]| {
        Some((status, details.to_owned(), name.to_owned(), serde_json::json!(violated)))
    };
    let unavailable = Verdict::Unavailable { retry_after: Duration::from_secs(9) };
    assert_eq!(told(Verdict::Admit, vec![mark(1, Outcome::Admitted, Fit::Now)]), None);
    let refused = |policy, wait_us| mark(policy, Outcome::Refused, Fit::After(wait_us));
    let watched = mark(0, Outcome::ShadowRefused, Fit::Never);
    let marks = vec![watched, mark(1, Outcome::Spared, Fit::Now), refused(2, 7), refused(3, 8)];
    assert_eq!(told(Verdict::Refuse, marks), seen(403, "tidegate_denied{c}", "c", &["b", "c"]));
    let costly = vec![refused(2, 7), mark(3, Outcome::Refused, Fit::Never)];
    assert_eq!(told(Verdict::Refuse, costly), seen(403, "tidegate_too_costly{c}", "c", &["b", "c"]));
    for (terms, details) in
        [(Terms::Blocked, "tidegate_blocked{b}"), (Terms::NoIdentity, "tidegate_no_identity{b}")]
    {
        let marks = vec![refused(1, 7), Mark { terms, ..refused(2, 7) }];
        assert_eq!(told(Verdict::Refuse, marks), seen(402, details, "b", &["a", "b"]));
    }
    let failed = |policy| Mark { standing: None, ..mark(policy, Outcome::Unavailable, Fit::Now) };
    let marks = vec![failed(1), failed(2), failed(3)];
    assert_eq!(told(unavailable, marks), seen(503, "tidegate_unavailable{b}", "b", &["a", "b", "c"]));
}

#[test]
fn marks_that_explain_nothing_change_no_verdict() {
    let told = |verdict| {
        let reply = reply(&Decision { verdict, marks: Vec::new() }, &[], Protocol::Http).unwrap();
        (reply.status, json(&reply)["error"].as_str().unwrap().to_owned())
    };
    assert_eq!(told(Verdict::Refuse), (429, "rate_limit_exceeded".to_owned()));
    let unavailable = Verdict::Unavailable { retry_after: Duration::from_secs(5) };
    assert_eq!(told(unavailable), (503, "rate_limiter_unavailable".to_owned()));
}

proptest! {
    #[test]
    fn any_name_leaves_json_valid_and_details_without_blanks(name in "\\PC{0,64}|[ -~]{0,64}") {
        let items = [violated(&name, Some(1))];
        let problem = response(Body::Problem, &[]);
        let problem = json(&refused(&items, &problem, Protocol::Http));
        let reply = refused(&items, &UNSAID, Protocol::Http);
        let body = json(&reply);
        prop_assert_eq!(&body["policy"], &problem["violated-policies"][0]);
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
