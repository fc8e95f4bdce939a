//! What is too much, what is nothing, and how much is told.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::fmt::Write as _;

use limiter::policy::MAX_POLICIES;
use limiter::wire::MAX_CHARGES;
use plugin_config::{MAX_BYTES, MAX_ERRORS, Problem, parse};
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
