//! What is too much, what is nothing, and how much is told.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::fmt::Write as _;

use limiter::policy::MAX_POLICIES;
use limiter::wire::MAX_CHARGES;
use plugin_config::{
    MAX_BYTES, MAX_CIDRS, MAX_CONDITIONS, MAX_ERRORS, MAX_HEADERS, MAX_HOST_BYTES, MAX_HOSTS, MAX_NAME_BYTES,
    MAX_PLAN_BYTES, MAX_PLANS, MAX_ROUTE_BYTES, MAX_ROUTES, MAX_TEXT_BYTES, MAX_TOKEN_BYTES, MAX_VALUE_BYTES,
    Problem, parse,
};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const WHOLE: &str = include_str!("accepted/whole.json");

fn told(bytes: &[u8]) -> String {
    parse(bytes).unwrap_err().to_string()
}

fn policies(count: usize, rest: &str) -> String {
    let mut list = String::new();
    for index in 0..count {
        let comma = if index > 0 { "," } else { "" };
        write!(list, r#"{comma}{{"name": "p{index}", {rest}}}"#).unwrap();
    }
    format!(r#"{{"companion": {{"cluster": "tidegate"}}, "policies": [{list}]}}"#)
}

#[test]
fn no_bytes_and_blanks_have_a_remedy_of_their_own() {
    let expected =
        "configuration: empty; write an object with \"policies\"; in Istio, under \"pluginConfig\"";
    assert_eq!(told(b""), expected);
    assert_eq!(told(b" \r\n\t"), expected);
}

#[test]
fn a_byte_order_mark_is_called_one() {
    let expected = "configuration: starts with a byte order mark; save it as UTF-8 without a byte order mark";
    assert_eq!(told(b"\xef\xbb\xbf{}"), expected);
    assert_eq!(told(b"\xff\xfe{\0}\0"), expected);
    assert_eq!(told(b"\xfe\xff\0{\0}"), expected);
}

#[test]
fn bytes_that_are_not_utf8_are_not_json() {
    let errors = parse(b"{\"policies\": [\"\xff\"]}").unwrap_err();
    let error = errors.iter().next().unwrap();
    assert!(matches!(error.problem, Problem::NotJson { line: 1, .. }), "{error}");
}

#[test]
fn depth_is_bounded() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(told(deep.as_bytes()).contains("recursion limit exceeded; nest fewer lists and objects"));
    let deep = format!("{{\"a\": {}1{}}}", "[".repeat(126), "]".repeat(126));
    assert!(told(deep.as_bytes()).starts_with("a: [[[["));
}

#[test]
fn size_is_bounded() {
    let mut bytes = WHOLE.as_bytes().to_vec();
    bytes.resize(MAX_BYTES, b' ');
    assert!(parse(&bytes).is_ok());
    bytes.push(b' ');
    assert_eq!(told(&bytes), "configuration: 1048577 bytes are too many; use at most 1048576");
}

#[test]
fn the_number_of_policies_is_bounded() {
    let rest = r#""limit": "blocked""#;
    assert!(parse(policies(MAX_POLICIES, rest).as_bytes()).is_ok());
    let expected = "policies: 65 policies are too many; use at most 64";
    assert_eq!(told(policies(MAX_POLICIES + 1, rest).as_bytes()), expected);
}

#[test]
fn no_more_policies_ask_the_companion_than_one_take_can_charge() {
    let limit = r#""key": ["ip"], "limit": {"token_bucket": {"capacity": 1, "rate": "1/s"}}"#;
    let expected = "policies: 17 policies that ask the companion are too many; use at most 16";
    for sync in ["lease", "exact", "async"] {
        let asks = format!("{limit}, \"sync\": \"{sync}\"");
        assert!(parse(policies(MAX_CHARGES, &asks).as_bytes()).is_ok(), "{sync}");
        assert_eq!(told(policies(MAX_CHARGES + 1, &asks).as_bytes()), expected, "{sync}");
    }
    assert!(parse(policies(MAX_CHARGES + 1, &format!("{limit}, \"sync\": \"local\"")).as_bytes()).is_ok());
    let blocked = r#""limit": "blocked", "sync": "exact""#;
    assert!(parse(policies(MAX_CHARGES + 1, blocked).as_bytes()).is_ok());
    // One limit that counts is enough, be it a plan's.
    let plan = r#""key": ["ip"], "limit": "blocked", "plan": {"from": {"header": "x"}, "limits": {"p": {"token_bucket": {"capacity": 1, "rate": "1/s"}}}}"#;
    assert_eq!(told(policies(MAX_CHARGES + 1, plan).as_bytes()), expected);
}

/// What puts a text into a policy.
type Written = fn(&str) -> String;

/// So many different entries of a list or object.
fn entries(count: usize, mut entry: impl FnMut(usize) -> String) -> String {
    (0..count).map(&mut entry).collect::<Vec<_>>().join(", ")
}

#[test]
fn lists_of_conditions_are_bounded() {
    let told = |conditions: String| {
        let policy = format!(r#"{{"name": "a", "limit": "blocked", "match": {{{conditions}}}}}"#);
        match parse(format!(r#"{{"policies": [{policy}]}}"#).as_bytes()) {
            Ok(_) => String::new(),
            Err(errors) => errors.to_string(),
        }
    };
    let hosts = |count| format!(r#""hosts": [{}]"#, entries(count, |at| format!("\"h{at}.example\"")));
    let routes = |count| format!(r#""routes": [{}]"#, entries(count, |at| format!("\"r{at}\"")));
    let cidrs = |count| format!(r#""cidrs": [{}]"#, entries(count, |at| format!("\"10.0.0.{at}\"")));
    let headers = |count| format!(r#""headers": {{{}}}"#, entries(count, |at| format!("\"x-{at}\": \"1\"")));
    let full = [hosts(MAX_HOSTS), routes(MAX_ROUTES), cidrs(MAX_CIDRS), headers(MAX_CONDITIONS)].join(", ");
    assert_eq!(told(format!(r#"{full}, "except": {{{full}}}"#)), "");
    for (conditions, expected) in [
        (hosts(MAX_HOSTS + 1), "hosts: 33 hosts are too many; use at most 32"),
        (routes(MAX_ROUTES + 1), "routes: 33 routes are too many; use at most 32"),
        (cidrs(MAX_CIDRS + 1), "cidrs: 65 cidrs are too many; use at most 64"),
        (headers(MAX_CONDITIONS + 1), "headers: 17 headers are too many; use at most 16"),
    ] {
        assert_eq!(told(conditions.clone()), format!("policies[0].match.{expected}"));
        let except = format!(r#""except": {{{conditions}}}"#);
        assert_eq!(told(except), format!("policies[0].match.except.{expected}"));
    }
}

#[test]
fn texts_of_a_policy_are_bounded() {
    let told = |rest: String| {
        let policy = format!(r#"{{"name": "a", "key": ["ip"], "limit": "blocked", {rest}}}"#);
        match parse(format!(r#"{{"policies": [{policy}]}}"#).as_bytes()) {
            Ok(_) => String::new(),
            Err(errors) => errors.to_string(),
        }
    };
    let texts: [(usize, &str, Written); 9] = [
        (MAX_HOST_BYTES, "match.hosts[0]", |text| format!(r#""match": {{"hosts": ["{text}"]}}"#)),
        (MAX_ROUTE_BYTES, "match.routes[0]", |text| format!(r#""match": {{"routes": ["{text}"]}}"#)),
        (256, "match.path.regex", |text| format!(r#""match": {{"path": {{"regex": "{text}"}}}}"#)),
        (MAX_VALUE_BYTES, "match.headers.x", |text| format!(r#""match": {{"headers": {{"x": "{text}"}}}}"#)),
        (MAX_TOKEN_BYTES, "cost.header", |text| format!(r#""cost": {{"header": "{text}"}}"#)),
        (MAX_NAME_BYTES, "cost.query", |text| format!(r#""cost": {{"query": "{text}"}}"#)),
        (MAX_TEXT_BYTES, "response.body.text", |text| {
            format!(r#""response": {{"body": {{"text": "{text}"}}}}"#)
        }),
        (MAX_VALUE_BYTES, "response.headers.x", |text| {
            format!(r#""response": {{"headers": {{"x": "{text}"}}}}"#)
        }),
        (MAX_NAME_BYTES, "plan.from.claim[1]", |text| {
            format!(r#""plan": {{"from": {{"claim": ["p", "{text}"]}}, "limits": {{"x": "blocked"}}}}"#)
        }),
    ];
    for (most, path, written) in texts {
        assert_eq!(told(written(&"a".repeat(most))), "", "{path}");
        let error = told(written(&"a".repeat(most + 1)));
        assert!(error.starts_with(&format!("policies[0].{path}: \"aaa")), "{error}");
        assert!(error.contains("is too large; use"), "{error}");
    }
}

#[test]
fn the_numbers_of_plans_and_headers_of_an_answer_are_bounded() {
    let told = |rest: String| {
        let policies =
            format!(r#"{{"policies": [{{"name": "a", "key": ["ip"], "limit": "blocked", {rest}}}]}}"#);
        parse(policies.as_bytes()).err().map(|errors| errors.to_string())
    };
    let plan = |count| {
        let limits = entries(count, |at| format!("\"p{at}\": \"blocked\""));
        format!(r#""plan": {{"from": {{"header": "x"}}, "limits": {{{limits}}}}}"#)
    };
    assert_eq!(told(plan(MAX_PLANS)), None);
    let expected = "policies[0].plan.limits: 65 plans are too many; use at most 64";
    assert_eq!(told(plan(MAX_PLANS + 1)).as_deref(), Some(expected));
    let name = |bytes| {
        format!(r#""plan": {{"from": {{"header": "x"}}, "limits": {{"{}": "blocked"}}}}"#, "a".repeat(bytes))
    };
    assert_eq!(told(name(MAX_PLAN_BYTES)), None);
    assert!(told(name(MAX_PLAN_BYTES + 1)).is_some_and(|error| error.contains("use 1 to 128 bytes")));
    let headers = |count| {
        format!(r#""response": {{"headers": {{{}}}}}"#, entries(count, |at| format!("\"x-{at}\": \"1\"")))
    };
    assert_eq!(told(headers(MAX_HEADERS)), None);
    let expected = "policies[0].response.headers: 17 headers are too many; use at most 16";
    assert_eq!(told(headers(MAX_HEADERS + 1)).as_deref(), Some(expected));
}

#[test]
fn the_number_of_errors_told_is_bounded() {
    let keys: Vec<String> = (0..MAX_ERRORS + 10).map(|index| format!("\"key-{index}\": 0")).collect();
    let errors = parse(format!("{{{}}}", keys.join(", ")).as_bytes()).unwrap_err();
    // One more is that the policies are missing.
    assert_eq!((errors.iter().count(), errors.left_out()), (MAX_ERRORS, 11));
    assert!(errors.to_string().ends_with("\n11 more errors are not shown"));
}

#[test]
fn errors_of_every_part_are_told_at_once() {
    assert_eq!(told(include_bytes!("refused/five.json")), include_str!("refused/five.errors").trim_end());
}
