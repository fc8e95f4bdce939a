//! Forms that parts of a policy may have, beside those of `accepted/whole.json`.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic")]

use limiter::matching::{HeaderCondition, HostMatch, PathMatch, Values};
use limiter::policy::{Body, Cost, KeyPart, Limit, MAX_TOLD_COST, OnMissing, Policy, Response, Source, Sync};
use plugin_config::{MAX_SHARDS, parse};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

/// The one policy of a configuration with a companion and more at its top.
fn policy_under(top: &str, json: &str) -> Policy {
    let json = format!(r#"{{{top} "companion": {{"cluster": "tidegate"}}, "policies": [{json}]}}"#);
    let config = parse(json.as_bytes()).unwrap_or_else(|errors| panic!("{json} is refused:\n{errors}"));
    config.policies.first().unwrap().clone()
}

/// A policy with a bucket of 64 and the rest.
fn policy(rest: &str) -> Policy {
    let limit = r#""limit": {"token_bucket": {"capacity": 64, "rate": "64/s"}}"#;
    policy_under("", &format!(r#"{{"name": "a", "key": ["ip"], {limit}, {rest}}}"#))
}

fn blocked(rest: &str) -> Policy {
    policy_under("", &format!(r#"{{"name": "a", "limit": "blocked", {rest}}}"#))
}

#[test]
fn hosts_are_taken_in_the_spelling_that_is_compared() {
    for host in
        ["localhost", "api.example.com", "xn--caf-dma.example", "10.0.0.1", "[2001:db8::1]", "a_b.c", "*.a"]
    {
        let hosts = blocked(&format!(r#""match": {{"hosts": ["{host}"]}}"#)).matcher.conditions.hosts;
        let expected = match host.strip_prefix("*.") {
            Some(domain) => HostMatch::Below(domain.into()),
            None => HostMatch::Exact(host.into()),
        };
        assert_eq!(hosts, [expected]);
    }
}

#[test]
fn wildcards_that_other_tools_have_are_letters_in_an_expression() {
    let path = blocked(r#""match": {"path": {"regex": "/api/\\*"}}"#).matcher.conditions.path;
    assert!(
        path.clone()
            .is_some_and(|path| path.holds(b"/api/*", Values::Any) && !path.holds(b"/api/x", Values::Any)),
        "{path:?}"
    );
    let path = blocked(r#""match": {"path": {"exact": "/a*b"}}"#).matcher.conditions.path;
    assert_eq!(path, Some(PathMatch::Exact("/a*b".into())));
}

#[test]
fn a_header_may_be_empty_and_have_blanks_within() {
    let headers = blocked(r#""match": {"headers": {"x-a": "", "x-b": "a b", "x-c": {"prefix": "a "}}}"#);
    let conditions: Vec<_> =
        headers.matcher.conditions.headers.into_iter().map(|header| header.condition).collect();
    let expected = [
        HeaderCondition::Exact(String::new()),
        HeaderCondition::Exact("a b".into()),
        HeaderCondition::Prefix("a ".into()),
    ];
    assert_eq!(conditions, expected);
}

#[test]
fn an_exception_may_stand_alone() {
    let matcher = blocked(r#""match": {"except": {"path": {"exact": "/healthz"}}}"#).matcher;
    assert_eq!(matcher.conditions, limiter::matching::Conditions::default());
    assert_eq!(matcher.except[0].path, Some(PathMatch::Exact("/healthz".into())));
}

#[test]
fn each_of_several_exceptions_excepts_by_itself() {
    let list = r#"[{"path": {"exact": "/healthz"}}, {"cidrs": ["10.0.0.0/8"], "methods": ["GET"]}]"#;
    let matcher = blocked(&format!(r#""match": {{"except": {list}}}"#)).matcher;
    assert_eq!(matcher.except.len(), 2);
    assert_eq!(matcher.except[0].path, Some(PathMatch::Exact("/healthz".into())));
    assert_eq!(matcher.except[1].methods, ["GET"]);
}

#[test]
fn every_word_of_on_missing_is_read() {
    for (word, on_missing) in
        [("anonymous", OnMissing::Anonymous), ("skip", OnMissing::Skip), ("deny", OnMissing::Deny)]
    {
        assert_eq!(policy(&format!(r#""on_missing": "{word}""#)).on_missing, on_missing);
    }
    assert_eq!(policy(r#""shadow": false"#).on_missing, OnMissing::Anonymous);
}

#[test]
fn cookies_keep_their_case_and_headers_do_not() {
    let key = policy_under(
        "",
        r#"{"name": "a", "key": [{"cookie": "SID"}, {"header": "X-Id"}], "limit": "blocked"}"#,
    )
    .key;
    let expected = [Source::Cookie("SID".into()), Source::Header("x-id".into())];
    assert_eq!(key, expected.map(|source| KeyPart::Identity(vec![source])));
}

#[test]
fn a_plan_alone_may_count() {
    let plan = r#""plan": {"from": {"cookie": "p"}, "limits": {"x": {"token_bucket": {"capacity": 1, "rate": "1/s"}}}}"#;
    for limit in ["unlimited", "blocked"] {
        let policy =
            policy_under("", &format!(r#"{{"name": "a", "key": ["ip"], "limit": "{limit}", {plan}}}"#));
        assert_eq!(policy.sync.word(), "lease", "what counts is shared unless said");
    }
}

#[test]
fn plans_that_count_nothing_need_no_key() {
    let plan = r#""plan": {"from": {"query": "p"}, "limits": {"a b\u0000é": "unlimited", "": "blocked"}}"#;
    let plan = plan.replace(r#""": "blocked""#, r#""x": "blocked""#);
    let policy = blocked(&plan);
    assert_eq!((policy.sync, policy.key.len()), (Sync::Local, 0));
    assert_eq!(policy.plan.unwrap().limit("a b\0é".as_bytes()), Some(("a b\0é", Limit::Unlimited)));
}

#[test]
fn a_cost_may_be_told_within_the_bounds_that_are_given() {
    for (rest, default, max) in [
        ("", 1, MAX_TOLD_COST),
        (r#", "max": 1"#, 1, 1),
        (r#", "default": 64"#, 64, MAX_TOLD_COST),
        (r#", "default": 64, "max": 64.0"#, 64, 64),
    ] {
        let cost = policy(&format!(r#""cost": {{"query": "n"{rest}}}"#)).cost;
        let Cost::Told(told) = cost else { panic!("{cost:?}") };
        assert_eq!((told.default, told.max), (default, max), "{rest}");
    }
}

#[test]
fn shards_may_be_as_many_as_there_are_tokens() {
    for shards in [1, 2, MAX_SHARDS] {
        assert_eq!(policy(&format!(r#""shards": {shards}"#)).shards, shards);
    }
    assert_eq!(blocked(r#""shards": 64"#).shards, 64, "where nothing is counted, nothing is divided");
    assert_eq!(policy(r#""shards": 64, "cost": 1"#).cost, Cost::Fixed(1));
}

#[test]
fn a_policy_refuses_as_it_says_or_else_as_the_top_says() {
    let top = r#""response": {"status": 403, "body": {"text": ""}, "headers": {"X-A": ""}},"#;
    let inherited = policy_under(top, r#"{"name": "a", "limit": "blocked"}"#).response;
    let headers = vec![("x-a".to_owned(), String::new())];
    assert_eq!(inherited, Response { status: 403, body: Body::Text(String::new()), headers });
    let own = policy_under(top, r#"{"name": "a", "limit": "blocked", "response": {}}"#).response;
    assert_eq!(own, Response::default(), "a policy's own replaces the other as a whole");
    for (body, expected) in [("json", Body::Json), ("problem", Body::Problem), ("none", Body::None)] {
        assert_eq!(blocked(&format!(r#""response": {{"body": "{body}"}}"#)).response.body, expected);
    }
}
