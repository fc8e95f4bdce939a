//! A configuration that cannot work is refused by Envoy and by `tidegate check`, in the same words.

use harness::{Envoy, check, check_lines};
use serde_json::{Value, json};

/// A configuration whose first policy is a valid one with some keys replaced.
fn with(changes: &Value) -> String {
    let mut policy = json!({
        "name": "p",
        "key": ["ip"],
        "limit": { "token_bucket": { "capacity": 5, "rate": "2/s" } },
        "sync": "local",
    });
    let keys = policy.as_object_mut().expect("an object");
    keys.extend(changes.as_object().expect("an object").clone());
    json!({ "policies": [policy] }).to_string()
}

fn bucket(capacity: &Value, rate: &str) -> Value {
    json!({ "limit": { "token_bucket": { "capacity": capacity, "rate": rate } } })
}

/// Both must refuse the configuration, with every one of these lines.
async fn assert_refused(configuration: &str, lines: &[&str]) {
    let (code, told) = check_lines(configuration.as_bytes());
    assert_eq!(code, Some(1), "{configuration}\n{told:?}");
    assert_eq!(told, lines, "{configuration}");
    let printed = Envoy::builder().filter_text(configuration).expect_refused().await;
    for line in lines {
        assert!(printed.contains(line), "Envoy does not say {line:?}:\n{printed}");
    }
}

#[tokio::test]
async fn each_kind_of_error_is_refused_with_path_value_and_remedy() {
    let cases = [
        (
            with(&json!({ "limt": 1 })),
            "policies[0].limt: 1 stands under an unknown key; did you mean \"limit\"?",
        ),
        (
            with(&bucket(&json!(0), "2/s")),
            "policies[0].limit.token_bucket.capacity: 0 is not allowed; use 1 or more, or the limit \"blocked\"",
        ),
        (
            with(&bucket(&json!(-5), "2/s")),
            "policies[0].limit.token_bucket.capacity: -5 is negative; use 1 or more",
        ),
        (
            with(&bucket(&json!(5), "2/x")),
            "policies[0].limit.token_bucket.rate: \"2/x\" is not a rate; use a whole number, a slash and one of s, m, h, d, as in \"2/s\" or \"100/m\"",
        ),
        (
            with(&json!({ "key": [] })),
            "policies[0].key: [] is empty; use a list such as [\"ip\"] or [{\"header\": \"x-api-key\"}, \"method\"]",
        ),
        (
            with(&json!({ "name": "per\tip" })),
            "policies[0].name: \"per\\tip\" has characters that cannot stand here; use a name of 1 to 64 printable ASCII characters, such as \"per-ip\"",
        ),
        (
            with(&json!({ "shards": 8 })),
            "policies[0].shards: 8 has no effect here; remove it, or use another \"sync\" than \"local\": a bucket in the proxy has no hot slot",
        ),
        (
            with(&json!({ "on_failure": "share" })),
            "policies[0].on_failure: \"share\" has no effect here; remove it, or use \"sync\": \"lease\" or \"exact\": only the companion can fail",
        ),
    ];
    for (configuration, line) in cases {
        assert_refused(&configuration, &[line]).await;
    }
}

#[tokio::test]
async fn what_is_no_configuration_at_all_is_refused() {
    for configuration in ["", "not JSON", "[]", "{\"policies\": [}"] {
        let (code, told) = check_lines(configuration.as_bytes());
        assert_eq!((code, told.len()), (Some(1), 1), "{configuration}: {told:?}");
        assert_refused(configuration, &[&told[0]]).await;
    }
}

#[tokio::test]
async fn all_errors_of_a_file_are_told_at_once() {
    let configuration = json!({
        "companion": { "cluster": "tidegate", "timeout": "0ms" },
        "headers": ["draft-11", "draft-12"],
        "policies": [
            { "name": "a", "key": ["ip"], "sync": "local", "shards": 8,
              "limit": { "token_bucket": { "capacity": 0, "rate": "2/x" } } },
            { "name": "a", "key": [{ "claim": ["payload"] }], "sync": "exact",
              "limit": { "fixed_window": { "quota": 1, "window": "1m" } } },
        ],
    });
    let (code, told) = check_lines(configuration.to_string().as_bytes());
    assert_eq!(code, Some(1));
    println!("{told:#?}");
    for path in [
        "companion.timeout: ",
        "headers[1]: ",
        "policies[0].shards: ",
        "policies[0].limit.token_bucket.capacity: ",
        "policies[0].limit.token_bucket.rate: ",
        "policies[1].name: ",
        "policies[1].key[0].claim: ",
        "policies[1].limit.fixed_window: ",
    ] {
        assert_eq!(told.iter().filter(|line| line.starts_with(path)).count(), 1, "{path}\n{told:?}");
    }
    let lines: Vec<&str> = told.iter().map(String::as_str).collect();
    assert_refused(&configuration.to_string(), &lines).await;
}

#[tokio::test]
async fn a_valid_configuration_is_taken_by_both() {
    let configuration = with(&json!({}));
    let (code, printed) = check(configuration.as_bytes());
    assert_eq!(code, Some(0), "{printed}");
    let envoy = Envoy::builder().filter_text(&configuration).start().await;
    assert_eq!(envoy.get("/").await.header("ratelimit-policy").as_deref(), Some("\"p\";q=5;w=3"));
}

#[test]
fn the_readme_shows_a_valid_configuration() {
    let readme = include_str!("../../README.md");
    let start = readme.find("```json\n{\n  \"companion\"").expect("a configuration in the README");
    let block = readme[start..].trim_start_matches("```json\n").split("```").next().expect("an end");
    let (code, printed) = check(block.as_bytes());
    assert_eq!(code, Some(0), "{printed}");
}
