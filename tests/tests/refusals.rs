//! How a refusal looks from outside: its body, what access logs say of it, and what leaves no trace.

use std::time::Duration;

use harness::{Answer, Companion, CompanionAt, Envoy, plugin, refusing_addr, until};
use serde_json::{Value, json};

/// A policy for the paths that begin with its name; blanks are not in paths.
fn policy(name: &str, limit: &Value, sync: &str) -> Value {
    let mut policy = json!({
        "name": name,
        "match": { "path": { "prefix": format!("/{}", name.replace(' ', "-")) } },
        "key": ["ip"],
        "limit": limit,
        "sync": sync,
    });
    if sync == "exact" {
        policy["on_failure"] = json!({ "closed": { "retry_after": "5s" } });
    }
    policy
}

fn one_a_minute() -> Value {
    json!({ "token_bucket": { "capacity": 1, "rate": "1/m" } })
}

/// Waits until the access log has as many lines as there were requests.
async fn access_log(envoy: &Envoy, lines: usize) -> Vec<String> {
    until("the access log", Duration::from_secs(10), async || {
        Some(envoy.access_log()).filter(|log| log.len() >= lines)
    })
    .await
}

#[tokio::test]
async fn the_access_log_names_the_policy() {
    let companion = Companion::builder("memory").store_timeout("5s").start().await;
    let policies = json!([
        policy("per-ip", &one_a_minute(), "local"),
        policy("orders", &one_a_minute(), "exact"),
        policy("two words", &one_a_minute(), "local"),
        policy("blocked", &json!("blocked"), "local"),
    ]);
    let envoy = Envoy::builder().filter(&plugin(policies)).companion(companion.addr()).start().await;
    for path in ["/per-ip", "/per-ip", "/orders", "/orders", "/two-words", "/two-words", "/blocked"] {
        envoy.get(path).await;
    }
    let log = access_log(&envoy, 7).await;
    println!("{log:#?}");
    let expected = [
        "200 direct_response",
        "429 tidegate_denied{per-ip}",
        "200 direct_response",
        "429 tidegate_denied{orders}",
        "200 direct_response",
        "429 tidegate_denied{two_words}",
        "429 tidegate_blocked{blocked}",
    ];
    assert_eq!(log, expected);
}

#[tokio::test]
async fn the_access_log_tells_a_failure_from_a_refusal() {
    let policies = json!([policy("orders", &one_a_minute(), "exact")]);
    let envoy = Envoy::builder().filter(&plugin(policies)).companion(refusing_addr()).start().await;
    envoy.get("/orders").await;
    let log = access_log(&envoy, 1).await;
    println!("{log:?}");
    assert_eq!(log, ["503 tidegate_unavailable{orders}"]);
}

#[tokio::test]
async fn a_refusal_says_in_json_which_policy_and_how_long() {
    let mut quoted = policy("a\"b\\c", &one_a_minute(), "local");
    quoted["match"] = json!({ "path": { "exact": "/quoted" } });
    let policies = json!([quoted, policy("blocked", &json!("blocked"), "local")]);
    let envoy = Envoy::builder().filter(&plugin(policies)).companion(CompanionAt::NoEndpoint).start().await;

    assert_eq!(envoy.get("/quoted").await.status, 200);
    let answer = envoy.get("/quoted").await;
    println!("{} {}", answer.status, answer.text());
    let retry_after = answer.header("retry-after").expect("Retry-After");
    let expected = json!({
        "error": "rate_limit_exceeded",
        "message": format!("too many requests for policy \"a\"b\\c\"; retry after {retry_after} s"),
        "policy": "a\"b\\c",
        "retry_after": retry_after.parse::<u64>().expect("whole seconds"),
    });
    assert_eq!((answer.status, answer.json()), (429, expected));
    assert_eq!(answer.header("content-type").as_deref(), Some("application/json"));

    let answer = envoy.get("/blocked").await;
    println!("{} {}", answer.status, answer.text());
    let expected = json!({
        "error": "rate_limit_exceeded",
        "message": "policy \"blocked\" lets no request pass",
        "policy": "blocked",
    });
    assert_eq!((answer.status, answer.json()), (429, expected));
    assert_eq!(answer.header("retry-after"), None, "waiting does not help");
}

fn fields(answer: &Answer) -> Vec<&str> {
    let mut names: Vec<&str> = answer.headers.iter().map(|(name, _)| name.as_str()).collect();
    names.retain(|name| name.contains("ratelimit") || *name == "retry-after");
    names
}

#[tokio::test]
async fn a_shadow_policy_is_counted_and_never_shown() {
    let companion = Companion::builder("memory").store_timeout("5s").start().await;
    for sync in ["local", "exact"] {
        let mut shadow = policy("watched", &one_a_minute(), sync);
        shadow["shadow"] = json!(true);
        let mut blocked = policy("barred", &json!("blocked"), sync);
        blocked["shadow"] = json!(true);
        blocked["match"] = shadow["match"].clone();
        let mut configuration = plugin(json!([shadow, blocked]));
        configuration["headers"] = json!(["draft-11", "x-ratelimit"]);
        let envoy = Envoy::builder().filter(&configuration).companion(companion.addr()).start().await;
        for _ in 0..3 {
            let answer = envoy.get("/watched").await;
            assert_eq!((answer.status, fields(&answer)), (200, vec![]), "{sync}");
        }
        let mut counters = Vec::new();
        for name in ["watched.admitted", "watched.shadow_refused", "watched.refused", "barred.shadow_refused"]
        {
            counters.push((name, envoy.counter(&format!("wasmcustom.tidegate.policy.{name}")).await));
        }
        println!("{sync}: three requests through, no field; {counters:?}");
        let values: Vec<u64> = counters.iter().map(|(_, value)| *value).collect();
        assert_eq!(values, [1, 2, 0, 3], "{sync}");
        assert_eq!(access_log(&envoy, 3).await, ["200 direct_response"; 3], "{sync}");
    }
}
