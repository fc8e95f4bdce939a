//! One limit over many proxies: what all of them admit together is what one bucket holds.

use std::sync::Arc;

use harness::{Companion, Envoy, Store, plugin};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

const CAPACITY: u32 = 100;
const RATE_PER_S: u32 = 2;

const ENVOYS: usize = 3;
const CLIENTS_PER_ENVOY: u32 = 10;
const REQUESTS_PER_CLIENT: u32 = 20;

/// What came of all requests.
#[derive(Debug, Default)]
struct Tally {
    admitted: u32,
    refused: u32,
    admitted_by_envoy: [u32; ENVOYS],
}

#[tokio::test(flavor = "multi_thread")]
async fn three_proxies_admit_what_one_bucket_holds() {
    for kind in Store::servers() {
        let store = Store::start(kind).await;
        let companion = Companion::builder(&store.url()).store_timeout("5s").start().await;
        assert_shared(&format!("{kind:?}, one companion"), [&companion; ENVOYS]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_companions_of_one_store_share_its_buckets() {
    for kind in Store::servers() {
        let store = Store::start(kind).await;
        let one = Companion::builder(&store.url()).store_timeout("5s").start().await;
        let two = Companion::builder(&store.url()).store_timeout("5s").start().await;
        assert_shared(&format!("{kind:?}, two companions"), [&one, &two, &one]).await;
    }
}

/// Starts an Envoy for each of the companions and has them all admit requests of one client.
async fn assert_shared(what: &str, companions: [&Companion; ENVOYS]) {
    let policy = json!({
        "name": "shared",
        "key": [{ "header": "x-api-key" }],
        "limit": { "token_bucket": { "capacity": CAPACITY, "rate": format!("{RATE_PER_S}/s") } },
        "sync": "exact",
        "on_failure": { "closed": { "retry_after": "1s" } },
    });
    let configuration = plugin(json!([policy]));
    let mut envoys = Vec::new();
    for companion in companions {
        let builder = Envoy::builder().filter(&configuration).companion(companion.addr()).workers(2);
        envoys.push(Arc::new(builder.start().await));
    }

    let begun = Instant::now();
    let tally = send(&envoys).await;
    let elapsed = begun.elapsed();

    let most = f64::from(CAPACITY) + f64::from(RATE_PER_S) * elapsed.as_secs_f64();
    println!("{what}: {tally:?} in {elapsed:?}; no fewer than {CAPACITY}, no more than {most:.3}");
    assert_eq!(tally.admitted + tally.refused, 600, "{what}: all are decided");
    assert!(tally.admitted >= CAPACITY, "{what}: too few");
    assert!(f64::from(tally.admitted) <= most, "{what}: too many");
}

/// Sends all requests over all Envoys at the same time.
async fn send(envoys: &[Arc<Envoy>]) -> Tally {
    let mut clients = JoinSet::new();
    for (index, envoy) in envoys.iter().enumerate() {
        for _ in 0..CLIENTS_PER_ENVOY {
            let envoy = Arc::clone(envoy);
            clients.spawn(async move {
                let mut statuses = Vec::new();
                for _ in 0..REQUESTS_PER_CLIENT {
                    statuses.push(envoy.send("GET", "/", &[("x-api-key", "one-client")]).await.status);
                }
                (index, statuses)
            });
        }
    }
    let mut tally = Tally::default();
    while let Some(client) = clients.join_next().await {
        let (index, statuses) = client.expect("the client ends");
        for status in statuses {
            match status {
                200 => {
                    tally.admitted += 1;
                    tally.admitted_by_envoy[index] += 1;
                }
                429 => tally.refused += 1,
                other => panic!("{other} is neither admitted nor refused"),
            }
        }
    }
    tally
}
