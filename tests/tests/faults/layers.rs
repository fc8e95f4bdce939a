//! Local policies while the companion is away: they go on enforcing, and a request that is answered 503
//! costs nothing on them.

use harness::{Answer, CompanionAt, Envoy, FakeAnswer, FakeCompanion};
use serde_json::{Value, json};

use crate::expected::{TIMEOUT, exact};

const LOCAL_CAPACITY: usize = 3;

/// The policy `local` applies to all paths under `/l`, at two of them together with one that fails.
fn config() -> Value {
    let local = json!({
        "name": "local",
        "match": { "path": { "prefix": "/l" } },
        "key": [{ "header": "x-api-key" }],
        "limit": { "token_bucket": { "capacity": LOCAL_CAPACITY, "rate": "1/d" } },
        "sync": "local",
    });
    json!({
        "companion": { "cluster": "tidegate", "timeout": format!("{}ms", TIMEOUT.as_millis()) },
        "policies": [
            exact("open", "/l/open", &json!("open")),
            local,
            exact("closed", "/l/closed", &json!({ "closed": { "retry_after": "5s" } })),
        ],
    })
}

async fn get(envoy: &Envoy, path: &str, key: &str) -> Answer {
    envoy.send("GET", path, &[("x-api-key", key)]).await
}

fn assert_refused(answer: &Answer) {
    assert_eq!(answer.status, 429, "{answer:?}");
    assert_eq!(answer.json()["policy"], "local");
}

/// Fails the test unless a client's local bucket is full.
async fn assert_full(envoy: &Envoy, key: &str) {
    for left in (0..LOCAL_CAPACITY).rev() {
        let answer = get(envoy, "/l/alone", key).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let field = answer.header("ratelimit").unwrap_or_default();
        assert!(field.starts_with(&format!("\"local\";r={left};")), "{field}");
    }
    assert_refused(&get(envoy, "/l/alone", key).await);
}

/// What must hold however the companion fails.
async fn assert_enforces(envoy: &Envoy) {
    // Closed: each of more requests than there are tokens is a failure, and gives its token back.
    for _ in 0..LOCAL_CAPACITY * 2 {
        let answer = get(envoy, "/l/closed", "closed").await;
        assert_eq!((answer.status, answer.header("ratelimit")), (503, None), "{answer:?}");
        assert_eq!(answer.json()["policy"], "closed");
    }
    assert_full(envoy, "closed").await;
    // What this proxy refuses is a refusal, whether the companion could be asked or not.
    assert_refused(&get(envoy, "/l/closed", "closed").await);

    // Open: the local policy counts what it lets through, and shows it.
    for left in (0..LOCAL_CAPACITY).rev() {
        let answer = get(envoy, "/l/open", "open").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let field = answer.header("ratelimit").unwrap_or_default();
        assert!(field.starts_with(&format!("\"local\";r={left};")) && !field.contains("open"), "{field}");
        let policies = answer.header("ratelimit-policy").unwrap_or_default();
        assert!(policies.starts_with("\"open\";") && policies.contains(", \"local\";"), "{policies}");
    }
    assert_refused(&get(envoy, "/l/open", "open").await);

    // At the same time: as many wait as there are tokens, and their tokens are there again afterwards.
    let answers = envoy.get_at_once("/l/closed", &[("x-api-key", "many")], 30).await;
    let count = |status| answers.iter().filter(|timed| timed.answer.status == status).count();
    println!("30 at once: {} answered 503, {} answered 429", count(503), count(429));
    assert_eq!(count(503) + count(429), 30);
    assert_full(envoy, "many").await;

    let counter = async |name: &str| envoy.counter(&format!("wasmcustom.tidegate.policy.{name}")).await;
    assert_eq!(counter("open.unprotected").await, LOCAL_CAPACITY as u64);
    assert_eq!(counter("closed.unavailable").await, (LOCAL_CAPACITY * 2 + count(503)) as u64);
    envoy.assert_no_vm_crash().await;
}

#[tokio::test]
async fn local_policies_enforce_while_calls_cannot_be_made() {
    let envoy = Envoy::builder().filter(&config()).companion(CompanionAt::NoCluster).start().await;
    assert_enforces(&envoy).await;
}

#[tokio::test]
async fn local_policies_enforce_while_calls_wait_in_vain() {
    let fake = FakeCompanion::start(|_| FakeAnswer::silence()).await;
    let envoy = Envoy::builder().filter(&config()).companion(fake.addr()).http1_to_companion().start().await;
    assert_enforces(&envoy).await;
}
