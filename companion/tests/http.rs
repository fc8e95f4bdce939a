//! What the companion answers over HTTP, over the memory store.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is a test's report")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use companion::store::{Location, Store};
use companion::{http, server};
use limiter::wire::{MARKER_HEADER, MARKER_VALUE, MAX_BODY_BYTES, MAX_RETURNS};
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

struct Companion {
    address: SocketAddr,
    client: Client,
    end: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
}

impl Companion {
    async fn start(store: &str) -> Self {
        let location: Location = store.parse().unwrap();
        let store = Store::start(&location, Duration::from_secs(5)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (end, ended) = oneshot::channel();
        let end_of_test = async {
            // A dropped sender is the end too.
            let _ = ended.await;
        };
        let served = tokio::spawn(server::serve(listener, http::routes(store), end_of_test));
        Self { address, client: Client::new(), end: Some(end), served }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    async fn ask(&self, method: Method, path: &str, body: Vec<u8>) -> Response {
        let response = self.client.request(method, self.url(path)).body(body).send().await.unwrap();
        assert_eq!(response.headers()[MARKER_HEADER], MARKER_VALUE, "{path}");
        assert_eq!(response.headers()["content-type"], "application/json", "{path}");
        response
    }

    async fn take(&self, body: &Value) -> (StatusCode, Value) {
        let response = self.ask(Method::POST, "/v1/take", body.to_string().into_bytes()).await;
        (response.status(), response.json().await.unwrap())
    }

    async fn admitted(&self, key: &str) -> bool {
        let (status, answer) = self.take(&json!({"takes": [{"charges": [charge(key, 1)]}]})).await;
        assert_eq!(status, 200, "{answer}");
        answer["takes"][0]["admitted"].as_bool().unwrap()
    }
}

fn charge(key: &str, capacity: u64) -> Value {
    json!({"key": key, "limit": {"token_bucket": {"capacity": capacity, "rate": "1/d"}}})
}

#[tokio::test]
async fn a_batch_is_answered_in_its_order() {
    let companion = Companion::start("memory").await;
    let never =
        json!({"key": "rl:{1}:b", "limit": {"token_bucket": {"capacity": 5, "rate": "1/s"}}, "cost": 6});
    let takes = json!([{"charges": [charge("rl:{1}:a", 1)]}, {"charges": [never, charge("rl:{1}:a", 1)]}]);
    let (status, answer) = companion.take(&json!({"takes": takes})).await;
    assert_eq!(status, 200);
    assert_eq!(
        answer["takes"][0],
        json!({"admitted": true, "charges": [{"remaining": 0, "wait_us": 0, "full_us": 86_400_000_000_u64}]})
    );
    let refused = &answer["takes"][1];
    assert_eq!(refused["admitted"], false);
    assert_eq!(refused["charges"][0], json!({"remaining": 5, "full_us": 0}), "no wait for what never fits");
    assert_eq!(refused["charges"][1]["remaining"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_token_and_twenty_concurrent_takes_admit_exactly_one() {
    let companion = Arc::new(Companion::start("memory").await);
    for round in 0..100 {
        let key = format!("rl:{{{round}}}:p");
        let mut takes = JoinSet::new();
        for _ in 0..20 {
            let (companion, key) = (Arc::clone(&companion), key.clone());
            takes.spawn(async move { companion.admitted(&key).await });
        }
        let admitted = takes.join_all().await.into_iter().filter(|admitted| *admitted).count();
        assert_eq!(admitted, 1, "round {round}");
    }
}

#[tokio::test]
async fn a_bad_request_is_refused_with_the_place_and_charges_nothing() {
    let companion = Companion::start("memory").await;
    let good = json!({"charges": [charge("rl:{1}:p", 1)]});
    for (bad, code, place) in [
        (json!({"takes": []}), "invalid_takes", "takes"),
        (json!({"takes": [good, {"charges": []}]}), "invalid_charges", "takes[1].charges"),
        (json!({"takes": [good, {"charges": [charge("p", 1)]}]}), "invalid_key", "takes[1].charges[0].key"),
        (json!({"takes": [good], "more": 1}), "invalid_request", "more"),
        (
            json!({"takes": [good, {"charges": [charge("rl:{1}:p", 0)]}]}),
            "invalid_request",
            "takes[1].charges[0].limit",
        ),
    ] {
        let (status, answer) = companion.take(&bad).await;
        assert_eq!((status.as_u16(), &answer["error"]), (400, &json!(code)), "{answer}");
        assert!(answer["message"].as_str().unwrap().starts_with(place), "{answer}");
    }
    assert!(companion.admitted("rl:{1}:p").await);
}

#[tokio::test]
async fn a_bad_lease_is_refused_with_the_place_and_charges_nothing() {
    let companion = Companion::start("memory").await;
    let place = "takes[1].charges[0].";
    for (field, wrong, fault) in [
        ("holder", json!(""), "lease.holder: not a holder's name"),
        ("holder", json!("a:b"), "lease.holder: not a holder's name"),
        ("holder", json!("h".repeat(33)), "lease.holder: not a holder's name"),
        ("id", json!(1_u64 << 53), "lease.id: too large"),
        ("want", json!((1_u64 << 52) + 1), "lease.want: 4503599627370497 is more than any limit holds"),
        ("ttl_us", json!(0), "lease.ttl_us: 0 is not allowed"),
        ("ttl_us", json!(60_000_001), "lease.ttl_us: 60000001 is not allowed"),
        (
            "returns",
            json!(vec![json!({"id": 1, "tokens": 1}); MAX_RETURNS + 1]),
            "lease.returns: 5 are not allowed",
        ),
        (
            "returns",
            json!(vec![json!({"id": 1, "tokens": 1}); 2]),
            "lease.returns[1].id: names a lease twice",
        ),
        ("returns", json!([{"id": 9, "tokens": 1}]), "lease.returns[0].id: names a lease twice"),
        ("returns", json!([{"id": 1_u64 << 53, "tokens": 1}]), "lease.returns[0].id: too large"),
    ] {
        let mut bad = charge("rl:{1}:p", 1);
        bad["lease"] = json!({"holder": "a", "id": 9, "want": 5, "ttl_us": 1_000_000});
        bad["lease"][field] = wrong;
        let takes = json!([{"charges": [charge("rl:{1}:p", 1)]}, {"charges": [bad]}]);
        let (status, answer) = companion.take(&json!({"takes": takes})).await;
        assert_eq!((status.as_u16(), &answer["error"]), (400, &json!("invalid_lease")), "{answer}");
        let message = answer["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("{place}{fault}")), "{message}");
    }
    let mut free = charge("rl:{1}:p", 1);
    free["cost"] = json!(0);
    let (status, answer) = companion.take(&json!({"takes": [{"charges": [free]}]})).await;
    assert_eq!((status.as_u16(), &answer["error"]), (400, &json!("invalid_cost")), "{answer}");
    assert!(companion.admitted("rl:{1}:p").await);
}

#[tokio::test]
async fn a_bad_report_is_refused_with_the_place_and_charges_nothing() {
    let companion = Companion::start("memory").await;
    for (field, wrong, fault) in [
        ("holder", json!("a b"), "holder: not a holder's name; use 1 to 32 ASCII letters and digits"),
        ("from", json!(1_u64 << 53), "from: too large; use 9007199254740991 or less"),
        ("to", json!(1_u64 << 53), "to: too large; use 9007199254740991 or less"),
        ("to", json!(2), "to: 2 is less than from; use 3 or more, or a smaller from"),
        ("ttl_us", json!(0), "ttl_us: 0 is not allowed; use 1 to 60000000"),
    ] {
        let mut bad = charge("rl:{1}:p", 1);
        bad["report"] = json!({"holder": "a", "from": 3, "to": 8, "ttl_us": 1_000_000});
        bad["report"][field] = wrong;
        let takes = json!([{"charges": [charge("rl:{1}:p", 1)]}, {"charges": [bad]}]);
        let (status, answer) = companion.take(&json!({"takes": takes})).await;
        assert_eq!((status.as_u16(), &answer["error"]), (400, &json!("invalid_report")), "{answer}");
        assert_eq!(answer["message"], format!("takes[1].charges[0].report.{fault}"));
    }
    assert!(companion.admitted("rl:{1}:p").await);
}

#[tokio::test]
async fn a_report_is_charged_once_and_answered_with_the_number_of_proxies() {
    let companion = Companion::start("memory").await;
    for (holder, remaining, proxies) in [("a", 60, 1), ("a", 60, 1), ("b", 20, 2), ("c", 0, 3)] {
        let mut delivery = charge("rl:{1}:p", 100);
        delivery["cost"] = json!(0);
        delivery["report"] = json!({"holder": holder, "from": 0, "to": 40, "ttl_us": 60_000_000});
        let (status, answer) = companion.take(&json!({"takes": [{"charges": [delivery]}]})).await;
        assert_eq!(status, 200, "{answer}");
        let charged = &answer["takes"][0]["charges"][0];
        assert_eq!((&charged["remaining"], &charged["proxies"]), (&json!(remaining), &json!(proxies)));
    }
    assert!(!companion.admitted("rl:{1}:p").await);
}

#[tokio::test]
async fn a_lease_is_granted_and_given_back_once() {
    let companion = Companion::start("memory").await;
    let mut renewal = charge("rl:{1}:p", 100);
    renewal["cost"] = json!(0);
    let ask = async |lease: Value| {
        let mut charge = renewal.clone();
        charge["lease"] = lease;
        let (status, answer) = companion.take(&json!({"takes": [{"charges": [charge]}]})).await;
        assert_eq!(status, 200, "{answer}");
        let charged = &answer["takes"][0]["charges"][0];
        (charged["granted"].as_u64().unwrap_or(0), charged["remaining"].as_u64().unwrap())
    };
    let lease = json!({"holder": "a", "id": 1, "want": 80, "ttl_us": 60_000_000});
    assert_eq!(ask(lease.clone()).await, (50, 50), "a lone holder is granted half");
    assert_eq!(ask(lease).await, (0, 50), "the same request again");
    let other = json!({"holder": "b", "id": 1, "want": 80, "ttl_us": 60_000_000});
    assert_eq!(ask(other).await, (12, 38), "the second of two holders");
    let back = json!({"holder": "a", "id": 2, "want": 0, "ttl_us": 1,
                      "returns": [{"id": 1, "tokens": 20}, {"id": 7, "tokens": 20}]});
    assert_eq!(ask(back.clone()).await, (0, 58));
    assert_eq!(ask(back).await, (0, 58), "given back before");
}

#[tokio::test]
async fn every_reply_is_marked_whatever_its_status() {
    let companion = Companion::start("memory").await;
    let large = vec![b' '; MAX_BODY_BYTES + 1];
    for (method, path, body, status) in [
        (Method::GET, "/healthz", vec![], 200),
        (Method::GET, "/readyz", vec![], 200),
        (Method::GET, "/", vec![], 404),
        (Method::GET, "/v1/take", vec![], 405),
        (Method::DELETE, "/healthz", vec![], 405),
        (Method::POST, "/v1/take", vec![], 400),
        (Method::POST, "/v1/take", b"\xff\x00".to_vec(), 400),
        (Method::POST, "/v1/take", large, 413),
    ] {
        // `ask` looks at the marker.
        assert_eq!(companion.ask(method.clone(), path, body).await.status(), status, "{method} {path}");
    }
}

#[tokio::test]
async fn both_http_versions_are_served_on_one_port() {
    let companion = Companion::start("memory").await;
    let second = Client::builder().http2_prior_knowledge().build().unwrap();
    for (client, version) in
        [(&companion.client, reqwest::Version::HTTP_11), (&second, reqwest::Version::HTTP_2)]
    {
        let response = client.get(companion.url("/healthz")).send().await.unwrap();
        assert_eq!((response.status().as_u16(), response.version()), (200, version));
    }
}

#[tokio::test]
async fn without_its_store_the_companion_lives_and_says_that_it_is_not_ready() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let companion = Companion::start(&format!("redis://{unused}")).await;
    assert_eq!(companion.ask(Method::GET, "/healthz", vec![]).await.status(), 200);
    let response = companion.ask(Method::GET, "/readyz", vec![]).await;
    assert_eq!(response.status(), 503);
    assert_eq!(response.json::<Value>().await.unwrap()["error"], "not_ready");
    let (status, answer) = companion.take(&json!({"takes": [{"charges": [charge("rl:{1}:p", 1)]}]})).await;
    assert_eq!((status.as_u16(), &answer["error"]), (503, &json!("store_unavailable")));
}

#[tokio::test]
async fn what_is_under_way_is_finished_before_the_end() {
    let mut companion = Companion::start("memory").await;
    let body = json!({"takes": [{"charges": [charge("rl:{1}:p", 1)]}]}).to_string();
    let mut half_sent = TcpStream::connect(companion.address).await.unwrap();
    let head = format!("POST /v1/take HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n", body.len());
    half_sent.write_all(head.as_bytes()).await.unwrap();
    let idle = TcpStream::connect(companion.address).await.unwrap();
    // An answer on a third connection shows that the first two were accepted.
    assert_eq!(companion.ask(Method::GET, "/healthz", vec![]).await.status(), 200);

    companion.end.take().unwrap().send(()).unwrap();
    let refused = async { while TcpStream::connect(companion.address).await.is_ok() {} };
    tokio::time::timeout(Duration::from_secs(5), refused).await.unwrap();
    half_sent.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    half_sent.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("\"admitted\":true"), "{answer}");
    // The idle connection does not hold up the end.
    tokio::time::timeout(Duration::from_secs(2), companion.served).await.unwrap().unwrap();
    drop(idle);
}
