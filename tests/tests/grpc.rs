//! gRPC callers are refused in their own terms: a status that is not taken for an outage, and how long to
//! wait in milliseconds.

use harness::{Answer, Companion, CompanionAt, Envoy, plugin, refusing_addr};
use serde_json::{Value, json};

const RESOURCE_EXHAUSTED: &str = "8";
const UNAVAILABLE: &str = "14";

fn policies() -> Value {
    let one = json!({ "token_bucket": { "capacity": 1, "rate": "1/m" } });
    let policy = |name: &str, limit: &Value| {
        json!({
            "name": name,
            "match": { "path": { "prefix": format!("/{name}") } },
            "key": ["ip"],
            "limit": limit,
            "sync": "local",
        })
    };
    let mut exact = policy("exact", &one);
    exact["sync"] = json!("exact");
    exact["on_failure"] = json!({ "closed": { "retry_after": "5s" } });
    json!([policy("local", &one), exact, policy("blocked", &json!("blocked"))])
}

async fn call(envoy: &Envoy, path: &str, content_type: &str) -> Answer {
    envoy.send("POST", path, &[("content-type", content_type), ("te", "trailers")]).await
}

/// Status, gRPC status, pushback and Retry-After; a field of several lines shows a comma.
fn told(answer: &Answer) -> (u16, Option<String>, Option<String>, Option<String>) {
    let [grpc, pushback, retry_after] =
        ["grpc-status", "grpc-retry-pushback-ms", "retry-after"].map(|name| answer.header(name));
    (answer.status, grpc, pushback, retry_after)
}

#[tokio::test]
async fn a_refusal_is_resource_exhausted_with_pushback() {
    let companion = Companion::builder("memory").store_timeout("5s").start().await;
    let envoy = Envoy::builder().filter(&plugin(policies())).companion(companion.addr()).start().await;
    for content_type in ["application/grpc", "application/grpc+proto"] {
        for path in ["/local", "/exact"] {
            // The second content type finds the bucket empty already.
            call(&envoy, path, content_type).await;
            let answer = call(&envoy, path, content_type).await;
            let (status, grpc, pushback, retry_after) = told(&answer);
            let message = answer.header("grpc-message").expect("a message for people");
            println!("{path}, {content_type}: {:?}, {message:?}", told(&answer));
            assert_eq!((status, grpc.as_deref()), (200, Some(RESOURCE_EXHAUSTED)), "{path}");
            let pushback_ms: u64 = pushback.expect("pushback").parse().expect("milliseconds");
            let retry_after_s: u64 = retry_after.expect("Retry-After").parse().expect("seconds");
            assert!((1..=60_000).contains(&pushback_ms), "{pushback_ms}");
            assert_eq!(retry_after_s, pushback_ms.div_ceil(1_000), "one wait, rounded up twice");
            assert_eq!(answer.text(), "", "{path}: a gRPC answer has its text in the header");
            let name = path.trim_start_matches('/');
            assert!(message.contains(name), "{message:?} names {name}");
            assert_eq!(answer.remaining(name), Some(0), "{path}: the fields are told here too");
        }
    }
}

#[tokio::test]
async fn what_never_fits_is_not_to_be_retried() {
    let envoy = Envoy::builder().filter(&plugin(policies())).companion(CompanionAt::NoEndpoint).start().await;
    let answer = call(&envoy, "/blocked", "application/grpc").await;
    println!("{:?}", told(&answer));
    assert_eq!(told(&answer), (200, Some(RESOURCE_EXHAUSTED.to_owned()), Some("-1".to_owned()), None));
}

#[tokio::test]
async fn an_outage_is_unavailable_and_not_a_refusal() {
    let envoy = Envoy::builder().filter(&plugin(policies())).companion(refusing_addr()).start().await;
    let answer = call(&envoy, "/exact", "application/grpc").await;
    println!("{:?}", told(&answer));
    let expected = (200, Some(UNAVAILABLE.to_owned()), Some("5000".to_owned()), Some("5".to_owned()));
    assert_eq!(told(&answer), expected);
    assert_eq!(answer.header("ratelimit"), None, "the state is unknown");
}

#[tokio::test]
async fn grpc_web_is_answered_as_plain_http() {
    let envoy = Envoy::builder().filter(&plugin(policies())).companion(CompanionAt::NoEndpoint).start().await;
    let answer = call(&envoy, "/blocked", "application/grpc-web+proto").await;
    println!("{:?}", told(&answer));
    assert_eq!(told(&answer), (429, None, None, None));
}
