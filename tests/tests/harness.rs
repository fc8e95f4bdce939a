//! The harness itself: what the other tests stand on starts, answers, breaks and comes back.

use std::time::Duration;

use harness::{
    Answer, CompanionAt, Delivery, Envoy, FakeAnswer, FakeCompanion, Module, Overhead, Refused, Reply, Resp,
    Store, Upstream, raw_request, slowest, until,
};
use serde_json::json;

#[tokio::test]
async fn stores_start_and_answer() {
    for kind in Store::servers() {
        let store = Store::start(kind).await;
        assert_eq!(store.command(&["SET", "key", "value"]).await.text(), "OK", "{kind:?}");
        assert_eq!(store.command(&["GET", "key"]).await, Reply::Bulk(Some(b"value".to_vec())), "{kind:?}");
        assert_eq!(store.command(&["GET", "other"]).await, Reply::Bulk(None), "{kind:?}");
        assert_eq!(store.command_calls().await["get"], 2, "{kind:?}");
    }
}

#[tokio::test]
async fn a_stopped_store_keeps_its_data_and_a_restarted_one_is_empty() {
    for kind in Store::servers() {
        let mut store = Store::start(kind).await;
        store.command(&["SET", "key", "value"]).await;
        store.stop();
        let mut resp = Resp::connect(store.addr()).await.expect("the kernel accepts for a stopped process");
        let silent = tokio::time::timeout(Duration::from_millis(50), resp.command(&["GET", "key"])).await;
        assert!(silent.is_err(), "{kind:?} answered while stopped");
        store.cont();
        assert_eq!(store.command(&["GET", "key"]).await.text(), "value", "{kind:?}");

        store.kill();
        assert!(Resp::connect(store.addr()).await.is_err(), "{kind:?} listens after its end");
        store.restart().await;
        assert_eq!(store.command(&["GET", "key"]).await, Reply::Bulk(None), "{kind:?}");
    }
}

#[tokio::test]
async fn envoy_answers_by_itself_and_counts_and_logs_it() {
    let envoy = Envoy::builder().start().await;
    let answer = envoy.get("/a//b/../c").await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "admitted\n"));
    assert_eq!(envoy.counter("http.ingress.downstream_rq_2xx").await, 1);
    let log = until("the access log", Duration::from_secs(5), async || {
        Some(envoy.access_log()).filter(|lines| !lines.is_empty())
    });
    assert_eq!(log.await, ["200 direct_response"]);
}

#[tokio::test]
async fn envoy_forwards_to_the_upstream_what_no_route_takes() {
    let upstream = Upstream::start().await;
    upstream.answer("/moved", 302, &[("location", "/new"), ("ratelimit", "\"own\";r=1")]);
    let route = json!({ "match": { "path": "/here" }, "direct_response": { "status": 204 } });
    let envoy = Envoy::builder().upstream(upstream.addr()).route(route).workers(2).start().await;

    let moved = envoy.send("GET", "/moved?x=1", &[("x-api-key", "k")]).await;
    assert_eq!(moved.status, 302);
    assert_eq!(moved.header("ratelimit").as_deref(), Some("\"own\";r=1"));
    assert_eq!(envoy.get("/here").await.status, 204);
    assert_eq!(upstream.count(), 1);
    assert_eq!(upstream.seen()[0].path, "/moved?x=1");
    assert_eq!(upstream.seen()[0].headers["x-api-key"], "k");
}

#[tokio::test]
async fn a_configuration_that_envoy_cannot_load_is_reported_with_its_words() {
    let printed = Envoy::builder().route(json!({ "no_such_field": 1 })).expect_refused().await;
    assert!(printed.contains("no_such_field"), "{printed}");
}

#[tokio::test]
async fn a_fake_companion_answers_byte_by_byte() {
    let fake = FakeCompanion::start(|body| match body {
        b"cut" => FakeAnswer::http(200, &[], "whole").cut_short_by(2),
        b"close" => FakeAnswer::close(),
        other => FakeAnswer::http(200, &[("x-marker", "1")], other).and_close(),
    })
    .await;
    let post = |body: &str| format!("POST /v1/take HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let whole = raw_request(fake.addr(), post("echo").as_bytes()).await;
    assert_eq!(whole, b"HTTP/1.1 200 Fake\r\ncontent-length: 4\r\nx-marker: 1\r\n\r\necho");
    let cut = raw_request(fake.addr(), post("cut").as_bytes()).await;
    assert!(cut.ends_with(b"who"), "{}", String::from_utf8_lossy(&cut));
    assert_eq!(raw_request(fake.addr(), post("close").as_bytes()).await, b"");
    assert_eq!(fake.count(), 3);
}

#[tokio::test]
async fn raw_requests_reach_envoy_whatever_is_in_them() {
    let envoy = Envoy::builder().companion(CompanionAt::NoEndpoint).start().await;
    let request =
        b"GET / HTTP/1.1\r\nhost: a\r\nx-api-key: \xff\xfe\r\nx-api-key: two\r\nconnection: close\r\n\r\n";
    let answer = envoy.send_raw(request).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "admitted\n"));
    assert_eq!(answer.header("content-length").as_deref(), Some("9"));
    let alive: Answer = envoy.get("/").await;
    assert_eq!(alive.status, 200);
}

#[tokio::test]
async fn the_time_that_an_answer_takes_is_seen_and_is_not_overhead() {
    let delay = Duration::from_millis(300);
    let slow = FakeCompanion::start(move |_| FakeAnswer::http(200, &[], "late").late_by(delay)).await;
    let free = json!({ "match": { "path": "/free" }, "direct_response": { "status": 204 } });
    let envoy = Envoy::builder().upstream(slow.addr()).route(free).start().await;
    let overhead = Overhead::watch(&envoy, "/free");
    let answers = envoy.get_every(delay / 4, "/slow", &[], 3).await;
    assert_eq!(answers.len(), 3);
    assert!(answers.iter().all(|timed| timed.took >= delay && timed.answer.text() == "late"));
    println!("{:?} for {delay:?}; overhead {:?}", slowest(&answers), overhead.slowest());
    assert!(slowest(&answers) <= delay + overhead.slowest() + delay / 2);

    envoy.stop();
    until("overhead while Envoy is held", Duration::from_secs(5), async || {
        (overhead.slowest() >= delay).then_some(())
    })
    .await;
    envoy.cont();
}

/// A configuration whose policy allows so many requests.
fn local(capacity: u64) -> serde_json::Value {
    json!({ "policies": [{
        "name": "p",
        "key": ["ip"],
        "limit": { "token_bucket": { "capacity": capacity, "rate": "1/d" } },
        "sync": "local",
    }] })
}

#[tokio::test]
async fn a_running_envoy_takes_another_configuration_and_refuses_a_broken_one() {
    for delivery in [Delivery::Listener, Delivery::Extension] {
        let mut envoy = Envoy::builder().filter(&local(5)).delivery(delivery).start().await;
        let allowed = async |envoy: &Envoy| envoy.get("/").await.header("ratelimit-policy");
        assert_eq!(allowed(&envoy).await.as_deref(), Some("\"p\";q=5;w=432000"), "{delivery:?}");

        envoy.reload(&local(7)).await;
        until("the workers to take the configuration", Duration::from_secs(10), async || {
            (allowed(&envoy).await.as_deref() == Some("\"p\";q=7;w=604800")).then_some(())
        })
        .await;

        let taken = envoy.try_reload("{\"policies\": 1}").await;
        assert_eq!(taken, Err(Refused), "{delivery:?}");
        assert!(envoy.log().contains("tidegate: configuration refused: policies"), "{delivery:?}");
        assert_eq!(allowed(&envoy).await.as_deref(), Some("\"p\";q=7;w=604800"), "{delivery:?}");

        envoy.reload(&local(9)).await;
        envoy.assert_no_vm_crash().await;
    }
}

#[tokio::test]
async fn a_module_that_does_nothing_runs_with_any_configuration() {
    let builder = Envoy::builder().filter_text("anything").module(Module::Noop);
    let mut envoy = builder.delivery(Delivery::Listener).start().await;
    assert_eq!(envoy.get("/").await.status, 200);
    envoy.reload(&json!({ "else": 1 })).await;
    assert_eq!(envoy.get("/").await.status, 200);
    envoy.assert_no_vm_crash().await;
}
