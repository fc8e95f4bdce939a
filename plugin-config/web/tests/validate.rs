//! What a page is told about a configuration.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use plugin_config::MAX_ERRORS;
use serde_json::{Value, json};
use tidegate_web::validate;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

fn told(text: &str) -> Value {
    serde_json::from_str(&validate(text)).unwrap()
}

#[test]
fn a_valid_configuration_has_its_number_of_policies_and_no_errors() {
    let expected = json!({"valid": true, "policies": 6, "errors": [], "left_out": 0});
    assert_eq!(told(include_str!("../../tests/accepted/whole.json")), expected);
}

#[test]
fn every_error_comes_in_parts_and_as_the_line_that_check_prints() {
    let limit = r#""limit": {"token_bucket": {"capacity": 0, "rate": "1/s"}}"#;
    let text = format!(r#"{{"policies": [{{"key": ["ip"], {limit}, "sync": "local"}}]}}"#);
    let told = told(&text);
    let errors = told["errors"].as_array().unwrap();
    let lines: Vec<&str> = errors.iter().map(|error| error["message"].as_str().unwrap()).collect();
    assert_eq!(lines.join("\n"), plugin_config::parse(text.as_bytes()).unwrap_err().to_string());
    assert_eq!((&errors[0]["path"], &errors[0]["value"]), (&json!("policies[0].name"), &json!(null)));
    let expected = json!({
        "path": "policies[0].limit.token_bucket.capacity",
        "value": "0",
        "problem": "is not allowed",
        "remedy": "use 1 or more, or the limit \"blocked\"",
        "message": "policies[0].limit.token_bucket.capacity: 0 is not allowed; use 1 or more, or the limit \"blocked\"",
    });
    assert_eq!(errors[1], expected);
    assert_eq!((&told["valid"], &told["policies"]), (&json!(false), &json!(null)));
}

#[test]
fn errors_beyond_those_that_are_told_at_once_are_counted() {
    let keys: Vec<String> = (0..MAX_ERRORS + 2).map(|number| format!(r#""unknown-{number}": 0"#)).collect();
    let told = told(&format!(r#"{{"policies": [{{"name": "a", "limit": "blocked"}}], {}}}"#, keys.join(",")));
    assert_eq!(told["errors"].as_array().unwrap().len(), MAX_ERRORS);
    assert_eq!(told["left_out"], 2);
}

#[test]
fn a_page_may_hand_over_whatever_was_typed() {
    for text in ["", "{", "é\u{0}\u{202e}", "[1]", "null"] {
        assert_eq!(told(text)["errors"].as_array().unwrap().len(), 1, "{text:?}");
    }
}
