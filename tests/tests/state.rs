//! The table of local buckets has as many slots as the configuration says, and says so.

use harness::Envoy;
use serde_json::{Value, json};

/// What a slot has room for.
const CLIENTS_A_SLOT: u64 = 8;

const CLIENTS: u64 = 20;

/// An Envoy with a policy for each client and this state, to which each client has sent one request.
async fn visited(state: Option<Value>) -> Envoy {
    let mut configuration = json!({
        "policies": [{
            "name": "local",
            "key": [{ "header": "x-api-key" }],
            "limit": { "token_bucket": { "capacity": 5, "rate": "1/d" } },
            "sync": "local",
        }],
    });
    if let Some(state) = state {
        configuration["state"] = state;
    }
    let envoy = Envoy::builder().filter(&configuration).start().await;
    for client in 0..CLIENTS {
        let answer = envoy.send("GET", "/", &[("x-api-key", &client.to_string())]).await;
        assert_eq!(answer.status, 200);
    }
    envoy
}

async fn evictions(envoy: &Envoy) -> u64 {
    envoy.counter("wasmcustom.tidegate.evictions").await
}

#[tokio::test]
async fn one_slot_keeps_its_eight_clients_and_counts_those_it_gives_up() {
    let envoy = visited(Some(json!({ "slots": 1 }))).await;
    assert_eq!(evictions(&envoy).await, CLIENTS - CLIENTS_A_SLOT);
}

#[tokio::test]
async fn unless_said_there_is_room_for_many_and_the_log_says_what_it_takes() {
    let envoy = visited(None).await;
    assert_eq!(evictions(&envoy).await, 0);
    let log = envoy.log();
    let (_, told) =
        log.split_once("slots of state: 4096, which take at most ").expect("the log tells the slots");
    let bytes: u64 = told.split(' ').next().and_then(|bytes| bytes.parse().ok()).expect("a number of bytes");
    println!("4096 slots take at most {bytes} bytes");
    assert!((4096 * 1024..4096 * 2048).contains(&bytes), "{bytes}");
}
