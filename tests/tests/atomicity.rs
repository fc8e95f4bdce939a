//! One token goes to one taker, however many come at the same moment.

use std::sync::Arc;

use harness::{Companion, Envoy, Store, StoreKind, plugin};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

const TAKERS: usize = 20;

/// One token; the next one comes tomorrow.
fn one_token() -> Value {
    json!({ "token_bucket": { "capacity": 1, "rate": "1/d" } })
}

fn take(key: &str) -> Value {
    json!({ "charges": [{ "key": key, "limit": one_token() }] })
}

async fn companion(kind: StoreKind) -> (Store, Companion) {
    let store = Store::start(kind).await;
    let companion = Companion::builder(&store.url()).store_timeout("5s").start().await;
    (store, companion)
}

/// Counts the takes that were admitted; one that was not decided fails the test.
fn admitted(status: u16, reply: &Value) -> usize {
    assert_eq!(status, 200, "{reply}");
    let takes = reply["takes"].as_array().expect("a reply has takes");
    takes.iter().filter(|taken| taken["admitted"].as_bool().expect("a take is decided")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_token_is_admitted_once_in_a_thousand_rounds_on_every_store() {
    const ROUNDS: usize = 1_000;
    for kind in Store::all() {
        let (_store, companion) = companion(kind).await;
        let companion = Arc::new(companion);
        let begun = Instant::now();
        for round in 0..ROUNDS {
            let mut takers = JoinSet::new();
            for _ in 0..TAKERS {
                let companion = Arc::clone(&companion);
                let batch = json!({ "takes": [take(&format!("rl:{{round-{round}}}:one"))] });
                takers.spawn(async move {
                    let (status, reply) = companion.take(&batch).await;
                    admitted(status, &reply)
                });
            }
            let admitted: usize = takers.join_all().await.into_iter().sum();
            assert_eq!(admitted, 1, "{kind:?}: of {TAKERS} takers in round {round}");
        }
        println!("{kind:?}: {ROUNDS} rounds of {TAKERS} takers, 1 admitted in each; {:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn one_token_is_admitted_once_within_a_batch() {
    for kind in Store::all() {
        let (_store, companion) = companion(kind).await;
        let takes: Vec<Value> = (0..TAKERS).map(|_| take("rl:{batch}:one")).collect();
        let (status, reply) = companion.take(&json!({ "takes": takes })).await;
        println!("{kind:?}: {} of the {TAKERS} takes of a batch admitted", admitted(status, &reply));
        assert_eq!(admitted(status, &reply), 1, "{kind:?}");
        assert_eq!(reply["takes"][0]["admitted"], true, "{kind:?}: takes are decided in their order");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_token_is_admitted_once_through_envoy() {
    const ROUNDS: usize = 20;
    for kind in Store::all() {
        let (_store, companion) = companion(kind).await;
        let policy = json!({
            "name": "one",
            "key": [{ "header": "x-api-key" }],
            "limit": one_token(),
            "sync": "exact",
            "on_failure": { "closed": { "retry_after": "1s" } },
        });
        let builder =
            Envoy::builder().filter(&plugin(json!([policy]))).companion(companion.addr()).workers(2);
        let envoy = Arc::new(builder.start().await);
        for round in 0..ROUNDS {
            let mut clients = JoinSet::new();
            for _ in 0..TAKERS {
                let envoy = Arc::clone(&envoy);
                let key = format!("round-{round}");
                // Each comes over a connection of its own, which falls to either worker.
                clients.spawn(async move {
                    envoy.send("GET", "/", &[("x-api-key", &key), ("connection", "close")]).await.status
                });
            }
            let mut statuses = clients.join_all().await;
            statuses.sort_unstable();
            let mut expected = vec![429; TAKERS];
            expected[0] = 200;
            assert_eq!(statuses, expected, "{kind:?}: round {round}");
        }
        let stats = envoy.stats().await;
        let by_worker: Vec<u64> = stats
            .into_iter()
            .filter(|(name, _)| name.contains(".worker_") && name.ends_with(".downstream_cx_total"))
            .filter(|(name, _)| name.starts_with("listener.") && !name.starts_with("listener.admin"))
            .map(|(_, connections)| connections)
            .collect();
        let callouts = envoy.counter("wasmcustom.tidegate.callouts").await;
        println!(
            "{kind:?}: {ROUNDS} rounds of {TAKERS} requests, 1 admitted in each; \
             connections by worker {by_worker:?}, {callouts} callouts"
        );
        assert!(by_worker.len() == 2 && !by_worker.contains(&0), "{kind:?}: both workers took part");
    }
}
