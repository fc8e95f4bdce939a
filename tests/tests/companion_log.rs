//! What Envoy's log says of a companion that does not decide: why, once, and when it decides again.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use harness::{
    Companion, CompanionAt, Envoy, EnvoyBuilder, FakeAnswer, FakeCompanion, free_port, refusing_addr, until,
};
use serde_json::json;

/// What every line of a failure begins with.
const FAILURE: &str = "tidegate: no decision from the companion, cluster \"tidegate\": ";

/// What every line of a recovery begins with.
const RECOVERY: &str = "tidegate: the companion decides again; calls that failed: ";

/// What Envoy says of an address where nobody listens.
const NO_CONNECTION: &str = "no answer: upstream connect error or disconnect/reset before headers. reset reason: remote connection failure";

/// What marks an answer as the companion's.
const MARKER: (&str, &str) = ("x-tidegate-companion", "v1");

/// An Envoy with one policy that asks the companion and lets requests through where that fails.
fn envoy(timeout: &str) -> EnvoyBuilder {
    Envoy::builder().filter(&json!({
        "companion": { "cluster": "tidegate", "timeout": timeout },
        "policies": [{
            "name": "p",
            "key": ["ip"],
            "limit": { "token_bucket": { "capacity": 1000, "rate": "1/d" } },
            "sync": "exact",
        }],
    }))
}

/// Sends requests that must pass, decided or not.
async fn get(envoy: &Envoy, count: usize) {
    for _ in 0..count {
        assert_eq!(envoy.get("/").await.status, 200);
    }
}

/// The lines that tell of the companion, from `tidegate:` on.
fn lines(envoy: &Envoy) -> Vec<String> {
    let start = |line: &str| [FAILURE, RECOVERY].iter().find_map(|text| line.find(text));
    envoy.log().lines().filter_map(|line| Some(line[start(line)?..].to_owned())).collect()
}

/// Fails the test unless fifty requests leave one line, which ends so.
async fn assert_one_line(envoy: &Envoy, end: &str) {
    get(envoy, 50).await;
    assert_eq!(lines(envoy), [format!("{FAILURE}{end}")]);
    assert!(envoy.log().lines().any(|line| line.contains("[warning][wasm]") && line.contains(FAILURE)));
}

#[tokio::test]
async fn a_wrong_cluster_name_is_logged_once_for_fifty_requests() {
    let envoy = envoy("50ms").companion(CompanionAt::NoCluster).start().await;
    assert_one_line(&envoy, "Envoy has no cluster of this name").await;
    // After three the breaker is open, and only probes fail.
    let failed = envoy.counter("wasmcustom.tidegate.callouts_failed").await;
    assert!((3..50).contains(&failed), "{failed}");
}

#[tokio::test]
async fn a_cluster_without_endpoint_is_logged_once_for_fifty_requests() {
    let envoy = envoy("50ms").companion(CompanionAt::NoEndpoint).start().await;
    assert_one_line(&envoy, "the cluster has no endpoint, or its circuit breaker is open").await;
}

#[tokio::test]
async fn an_open_circuit_breaker_is_logged_once_for_fifty_requests() {
    let fake = FakeCompanion::start(|_| FakeAnswer::silence()).await;
    let envoy = envoy("1s").companion(fake.addr()).http1_to_companion().max_requests_to_companion(1);
    let envoy = envoy.start().await;
    // The first call keeps the breaker open until long after the next is made.
    envoy.get_at_once("/", &[], 50).await;
    // Envoy says so in one of two ways, by whether the first call has its connection already.
    let [line] = &lines(&envoy)[..] else { panic!("not one line: {:?}", lines(&envoy)) };
    assert!(
        line.ends_with("or its circuit breaker is open") || line.ends_with("reset reason: overflow"),
        "{line}"
    );
}

#[tokio::test]
async fn an_address_where_nobody_listens_is_logged_once_for_fifty_requests() {
    let envoy = envoy("50ms").companion(refusing_addr()).start().await;
    assert_one_line(&envoy, NO_CONNECTION).await;
}

#[tokio::test]
async fn an_answer_that_is_of_no_use_is_logged_once_for_fifty_requests() {
    let answers = [
        (FakeAnswer::silence(), "no answer: upstream request timeout"),
        (FakeAnswer::http(503, &[], "<p>\u{1b}[2J\r\n é"), "no answer: <p>_[2J__ __"),
        (
            FakeAnswer::http(200, &[], "Hello!"),
            "what answers there is not a Tidegate companion of this version",
        ),
        (FakeAnswer::http(503, &[MARKER], "{}"), "it answers with status 503"),
        (FakeAnswer::http(200, &[MARKER], "Hello!"), "its answer cannot be read"),
    ];
    for (answer, end) in answers {
        let fake = FakeCompanion::start(move |_| answer.clone()).await;
        // Long enough for an answer that comes, and short for fifty that do not.
        let envoy = envoy("100ms").companion(fake.addr()).http1_to_companion().start().await;
        assert_one_line(&envoy, end).await;
    }
}

#[tokio::test]
async fn a_killed_companion_and_its_return_are_logged_once_each() {
    let port = free_port();
    let mut companion = Companion::builder("memory").store_timeout("5s").port(port).start().await;
    let envoy = envoy("5s").companion(SocketAddr::from(([127, 0, 0, 1], port))).start().await;
    get(&envoy, 10).await;
    assert_eq!(lines(&envoy), [""; 0], "nothing is worth a line while all is well");

    companion.kill();
    get(&envoy, 50).await;
    // Whether the end of a connection or the refusal of the next comes first.
    assert!(
        matches!(&lines(&envoy)[..], [line] if line.starts_with(&format!("{FAILURE}no answer: "))),
        "{:?}",
        lines(&envoy)
    );

    companion.restart().await;
    let log = until("the line of the return", Duration::from_secs(10), async || {
        get(&envoy, 1).await;
        Some(lines(&envoy)).filter(|lines| lines.len() > 1)
    });
    let failed = envoy.counter("wasmcustom.tidegate.callouts_failed");
    let (log, failed) = (log.await, failed.await);
    get(&envoy, 50).await;
    assert_eq!(lines(&envoy), log);
    assert_eq!(log[1..], [format!("{RECOVERY}{failed}")]);
    // After three the breaker is open, and only probes fail.
    assert!((3..50).contains(&failed), "{failed}");
    assert!(envoy.log().lines().any(|line| line.contains("[info][wasm]") && line.contains(RECOVERY)));
}

#[tokio::test]
async fn a_companion_that_comes_and_goes_leaves_at_most_a_line_a_second() {
    let asked = AtomicUsize::new(0);
    let good = r#"{"takes":[{"admitted":true,"charges":[{"remaining":7,"wait_us":0,"full_us":1}]}]}"#;
    let fake = FakeCompanion::start(move |_| {
        let body = if asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) { good } else { "" };
        FakeAnswer::http(200, &[MARKER], body)
    })
    .await;
    let envoy = envoy("5s").companion(fake.addr()).http1_to_companion().start().await;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(2_500) {
        get(&envoy, 10).await;
    }
    let (lines, seconds) = (lines(&envoy), begun.elapsed().as_secs());
    println!("{} requests, {lines:#?}", fake.count());
    assert!(lines.len() >= 2 && lines.len() as u64 <= seconds + 1, "{lines:#?} in {seconds} s");
}
