//! Local buckets are one for all workers of a proxy: compare-and-swap loses no charge and invents none.

use std::time::Duration;

use harness::Envoy;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const CAPACITY: usize = 80;
const REQUESTS: usize = 200;
const ROUNDS: usize = 20;

#[tokio::test]
async fn two_workers_admit_exactly_the_capacity_of_one_key() {
    let policy = json!({
        "name": "local",
        "key": [{ "header": "x-api-key" }],
        "limit": { "token_bucket": { "capacity": CAPACITY, "rate": "1/d" } },
        "sync": "local",
    });
    let envoy = Envoy::builder().filter(&json!({ "policies": [policy] })).workers(2).start().await;

    for round in 0..ROUNDS {
        let statuses = rush(&envoy, &format!("round-{round}")).await;
        let count = |status| statuses.iter().filter(|seen| *seen == status).count();
        assert_eq!((count("200"), count("429")), (CAPACITY, REQUESTS - CAPACITY), "round {round}");
    }

    let workers = connections_by_worker(&envoy).await;
    println!("{ROUNDS} rounds of {REQUESTS} requests at once: {CAPACITY} admitted in each");
    println!("connections by worker: {workers:?}");
    assert_eq!(workers.len(), 2);
    assert!(workers.iter().all(|count| *count > 0), "one worker alone served all: {workers:?}");
    let admitted = envoy.counter("wasmcustom.tidegate.policy.local.admitted").await;
    assert_eq!(admitted, (ROUNDS * CAPACITY) as u64);
    envoy.assert_no_vm_crash().await;
}

/// The statuses of a key's requests, which all lie before the workers when these begin: so the workers are
/// at the bucket at the same time, whatever the client's speed.
async fn rush(envoy: &Envoy, key: &str) -> Vec<String> {
    let request = format!("GET / HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\nconnection: close\r\n\r\n");
    envoy.stop();
    let mut clients = Vec::new();
    for _ in 0..REQUESTS {
        let mut client = TcpStream::connect(envoy.addr()).await.expect("the kernel accepts for a held Envoy");
        client.write_all(request.as_bytes()).await.expect("the kernel buffers");
        clients.push(client);
    }
    envoy.cont();
    let mut statuses = Vec::new();
    for mut client in clients {
        let mut answer = String::new();
        let read = client.read_to_string(&mut answer);
        timeout(Duration::from_secs(10), read).await.expect("no request hangs").expect("a whole answer");
        statuses.push(answer.split(' ').nth(1).unwrap_or_default().to_owned());
    }
    statuses
}

async fn connections_by_worker(envoy: &Envoy) -> Vec<u64> {
    let stats = envoy.stats().await.into_iter();
    let of_a_worker = stats.filter(|(name, _)| {
        name.starts_with("listener.127.")
            && name.contains(".worker_")
            && name.ends_with(".downstream_cx_total")
    });
    of_a_worker.map(|(_, count)| count).collect()
}
