//! Leases on real Envoys and a real store: most requests do not wait, and the promise holds.
#![expect(clippy::cast_precision_loss, reason = "counts of a test are small")]

use std::time::{Duration, Instant};

use harness::{Companion, Envoy, Shot, Store, StoreKind, fullest_span, load, slowest_shot_s};
use serde_json::{Value, json};
use tokio::task::JoinSet;

const KEY: &[(&str, &str)] = &[("x-api-key", "k")];

fn leased(capacity: u64, rate: &str) -> Value {
    json!({
        "companion": { "cluster": "tidegate", "timeout": "1s" },
        "policies": [{
            "name": "p",
            "key": [{ "header": "x-api-key" }],
            "limit": { "token_bucket": { "capacity": capacity, "rate": rate } },
            "on_failure": { "closed": { "retry_after": "5s" } },
        }],
    })
}

fn admitted(shots: &[Shot]) -> u64 {
    shots.iter().filter(|shot| shot.status == 200).count() as u64
}

#[tokio::test]
async fn a_hot_key_far_from_its_limit_hardly_ever_waits() {
    let store = Store::start(StoreKind::Valkey).await;
    let companion = Companion::builder(&store.url()).args(["--store-timeout", "500ms"]).start().await;
    let builder = Envoy::builder().filter(&leased(300_000, "300000/m")).companion(companion.addr());
    let envoy = builder.workers(2).start().await;
    store.command(&["CONFIG", "RESETSTAT"]).await;
    let begun = Instant::now();
    let shots = load(envoy.addr(), "/", KEY, 16, 2_000, Duration::from_secs(8)).await;
    let seconds = begun.elapsed().as_secs_f64();
    let waits = envoy.counter("wasmcustom.tidegate.waits").await;
    let scripts = store.command_calls().await["evalsha"];
    let sent = shots.len() as u64;
    println!(
        "{sent} requests in {seconds:.1} s: {waits} waited; {:.1} script calls/s",
        scripts as f64 / seconds
    );
    assert_eq!(admitted(&shots), sent);
    assert!(waits * 100 <= sent, "{waits} of {sent} waited");
    assert!(scripts as f64 <= 20.0 * seconds, "{scripts} script calls");
}

#[tokio::test]
async fn a_client_far_above_its_limit_costs_a_call_a_token_and_one_a_second() {
    let store = Store::start(StoreKind::Valkey).await;
    let companion = Companion::builder(&store.url()).args(["--store-timeout", "500ms"]).start().await;
    let envoy = Envoy::builder().filter(&leased(10, "10/s")).companion(companion.addr()).start().await;
    let begun = Instant::now();
    let shots = load(envoy.addr(), "/", KEY, 4, 100, Duration::from_secs(10)).await;
    let seconds = begun.elapsed().as_secs_f64();
    let callouts = envoy.counter("wasmcustom.tidegate.callouts").await;
    println!(
        "{} requests in {seconds:.1} s: {} admitted, {callouts} callouts",
        shots.len(),
        admitted(&shots)
    );
    let freed = 10.0 + 10.0 * seconds;
    assert!(admitted(&shots) as f64 <= freed + 10.0 * 0.2);
    assert!(admitted(&shots) as f64 >= 0.9 * freed, "{} of {freed} tokens were used", admitted(&shots));
    assert!(callouts as f64 <= freed + seconds + 1.0);
}

#[tokio::test]
async fn three_envoys_stay_within_the_formula_for_a_minute() {
    const CAPACITY: f64 = 100.0;
    const PER_SECOND: f64 = 50.0;
    /// The lease's life at this limit, as `docs/policies.md` states it.
    const TTL_S: f64 = 0.2;
    let store = Store::start(StoreKind::Valkey).await;
    let companion = Companion::builder(&store.url()).args(["--store-timeout", "500ms"]).start().await;
    let config = leased(100, "50/s");
    let mut envoys = Vec::new();
    for _ in 0..3 {
        envoys.push(Envoy::builder().filter(&config).companion(companion.addr()).start().await);
    }
    let begun = Instant::now();
    let mut loads = JoinSet::new();
    for envoy in &envoys {
        let addr = envoy.addr();
        loads.spawn(async move { load(addr, "/", KEY, 2, 50, Duration::from_mins(1)).await });
    }
    let shots: Vec<Shot> = loads.join_all().await.into_iter().flatten().collect();
    let seconds = begun.elapsed().as_secs_f64();
    let highest = fullest_span(&shots, begun, PER_SECOND);
    let bound = CAPACITY + PER_SECOND * (TTL_S + slowest_shot_s(&shots));
    let total = CAPACITY + PER_SECOND * seconds;
    println!(
        "{} requests in {seconds:.1} s: {} admitted of {total:.0}; the fullest span {highest:.1} of {bound:.1}",
        shots.len(),
        admitted(&shots)
    );
    assert!(highest <= bound);
    assert!(admitted(&shots) as f64 >= 0.9 * total);
}
