//! What a page is told about a request.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use serde_json::{Value, json};
use tidegate_web::explain;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const CONFIGURATION: &str = r#"{"policies": [
    {"name": "orders", "match": {"path": {"exact": "/orders"}}, "key": [{"claim": ["payload", "sub"]}], "sync": "local",
     "limit": {"token_bucket": {"capacity": 10, "rate": "10/m"}}},
    {"name": "closed", "match": {"hosts": ["old.example.com"]}, "limit": "blocked"}]}"#;

fn told(configuration: &str, request: &Value) -> Value {
    serde_json::from_str(&explain(configuration, &request.to_string())).unwrap()
}

#[test]
fn a_page_is_told_what_every_policy_makes_of_a_request() {
    let request = json!({"method": "POST", "target": "//orders?x=1", "host": "API.example.com",
        "claims": [{"path": ["payload", "sub"], "value": 42}]});
    let expected = json!({
        "policies": [
            {"policy": "orders", "outcome": "counts", "key": "rl:{42}:orders", "shards": 1,
             "limit": {"capacity": 10, "rate": "10/m"}, "plan": null, "unknown_plan": null, "is_anonymous": false, "cost": 1,
             "sync": "local", "shadow": false},
            {"policy": "closed", "outcome": "unmet", "condition": "hosts", "wanted": "old.example.com",
             "found": "api.example.com"},
        ],
        "answer": {"status": null, "body": "",
            "headers": {"ratelimit": "\"orders\";r=9;t=54", "ratelimit-policy": "\"orders\";q=10;w=60"}},
    });
    assert_eq!(told(CONFIGURATION, &request), expected);
}

#[test]
fn what_is_refused_is_told_with_its_answer() {
    let told = told(CONFIGURATION, &json!({"target": "/", "host": "old.example.com:80"}));
    assert_eq!(told["policies"][1], json!({"policy": "closed", "outcome": "blocks", "plan": null}));
    assert_eq!(told["answer"]["status"], 429);
}

#[test]
fn what_cannot_be_explained_is_an_error() {
    let error = |configuration: &str, request: &Value| {
        told(configuration, request)["error"].as_str().map(str::to_owned).unwrap_or_default()
    };
    assert!(error("{}", &json!({"target": "/"})).contains("policies: missing"));
    assert!(error(CONFIGURATION, &json!({"path": "/"})).contains("unknown field `path`"));
    assert!(error(CONFIGURATION, &json!(7)).starts_with("the request: "));
}
