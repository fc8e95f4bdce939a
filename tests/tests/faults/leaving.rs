//! Clients that leave while their requests wait for the companion.

use std::net::SocketAddr;
use std::time::Duration;

use harness::{Envoy, FakeAnswer, FakeCompanion, until};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::answers::good;
use crate::expected::{CAPACITY, Seen, companion_in_memory, config, exact, left};

/// More than two calls take.
const MANY: usize = 300;

/// Long enough for all clients to come before the first is answered.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Long enough for the busiest machine, short beside the time after which Envoy gives a stream up.
const SOON: Duration = Duration::from_secs(10);

/// By this the fake companion knows them: a client's key is in its store key.
const LEAVER: &str = "leaver";

/// Clients that have sent a request each and wait.
async fn waiting_clients(addr: SocketAddr, path: &str, count: usize) -> Vec<TcpStream> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nx-api-key: {LEAVER}\r\n\r\n");
    let mut clients = Vec::new();
    for _ in 0..count {
        let mut client = TcpStream::connect(addr).await.expect("Envoy accepts");
        client.write_all(request.as_bytes()).await.expect("Envoy reads");
        clients.push(client);
    }
    clients
}

/// Waits until so many requests are in Envoy, besides none of the test's own.
async fn until_active(envoy: &Envoy, count: usize) {
    let gauge = "http.ingress.downstream_rq_active";
    let is_reached = async || (envoy.counter(gauge).await == count as u64).then_some(());
    until(&format!("{count} active requests"), SOON, is_reached).await;
}

/// Lets clients leave while the companion does `answer`, and asks as another client afterwards.
async fn leave(name: &str, answer: fn(&[u8]) -> FakeAnswer) {
    let fake = FakeCompanion::start(move |question| {
        let is_leaver = String::from_utf8_lossy(question).contains(LEAVER);
        if is_leaver { answer(question) } else { good(question) }
    })
    .await;
    for (path, count) in [("/open", 1), ("/closed", 1), ("/open", MANY), ("/closed", MANY)] {
        // One of its own for each: once calls have failed, nobody waits.
        let envoy = Envoy::builder()
            .filter(&config(TIMEOUT))
            .companion(fake.addr())
            .http1_to_companion()
            .stream_idle_timeout("60s")
            .start()
            .await;
        let asked = fake.count();
        let clients = waiting_clients(envoy.addr(), path, count).await;
        until_active(&envoy, count).await;
        until("the companion's question", SOON, async || (fake.count() > asked).then_some(())).await;
        drop(clients);
        until_active(&envoy, 0).await;

        // The calls of those who have left may still be under way, with everybody else behind them.
        let mut failures = 0;
        let decided = async || {
            let seen = Seen::of(&envoy.get(path).await);
            let is_failure = seen == Seen::failure(path);
            failures += u64::from(is_failure);
            assert!(is_failure || seen == Seen::Admitted { left: 7 }, "{seen:?}");
            (!is_failure).then_some(())
        };
        until("a request that is decided as usual", SOON, decided).await;
        println!("{name} at {path}: {count} left; the next came after {failures} failures");
        envoy.assert_no_vm_crash().await;
    }
}

#[tokio::test]
async fn clients_may_leave_while_the_companion_is_silent() {
    leave("silent", |_| FakeAnswer::silence()).await;
}

#[tokio::test]
async fn clients_may_leave_while_the_companion_is_late() {
    leave("late", |question| good(question).late_by(TIMEOUT * 3 / 4)).await;
    leave("too late", |question| good(question).late_by(TIMEOUT * 3 / 2)).await;
}

#[tokio::test]
async fn clients_may_leave_before_the_companion_does() {
    leave("gone", |_| FakeAnswer::close().late_by(TIMEOUT * 3 / 4)).await;
}

/// Requests of the same time that a worker asks for one by one; those behind them wait for a common call.
const MAX_CALLS: u64 = 4;

#[tokio::test]
async fn who_leaves_before_the_companion_was_asked_costs_nothing() {
    let companion = companion_in_memory().await;
    let mut config = config(Duration::from_secs(10));
    config["policies"] = json!([
        exact("closed", "/closed", &json!({ "closed": { "retry_after": "5s" } })),
        {
            "name": "local",
            "key": [{ "header": "x-api-key" }],
            "limit": { "token_bucket": { "capacity": CAPACITY, "rate": "1/d" } },
            "sync": "local",
        },
    ]);
    let envoy = Envoy::builder().filter(&config).companion(companion.addr()).start().await;

    companion.stop();
    let clients = waiting_clients(envoy.addr(), "/closed", MANY).await;
    until_active(&envoy, MANY).await;
    drop(clients);
    until_active(&envoy, 0).await;
    companion.cont();

    // The next request's own token, and those of the requests that had been asked for.
    let charged = 1 + MAX_CALLS;
    let answer = envoy.send("GET", "/closed", &[("x-api-key", LEAVER)]).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let field = answer.header("ratelimit").unwrap_or_default();
    println!("{MANY} left, {MAX_CALLS} of them asked for: {field}");
    let (exact, local) = field.split_once(", ").expect("two policies");
    assert!(exact.starts_with("\"closed\"") && local.starts_with("\"local\""), "{field}");
    assert_eq!((left(exact), left(local)), (CAPACITY - charged, CAPACITY - charged), "{field}");
    envoy.assert_no_vm_crash().await;
}
