//! Three limits at once: per key in Redis, per address in the proxy, and per key for orders. Each binds by itself, all
//! bind together, and whatever refuses charges nothing on the others.

use std::time::{Duration, Instant};

use harness::{Answer, Companion, Envoy, Store, StoreKind};
use serde_json::{Value, json};

fn configuration() -> Value {
    json!({
        "companion": { "cluster": "tidegate", "timeout": "10s" },
        "headers": ["draft-11", "x-ratelimit"],
        "policies": [
            {
                "name": "per-address",
                "key": ["ip"],
                "limit": { "token_bucket": { "capacity": 100, "rate": "100/m" } },
                "sync": "local",
            },
            {
                "name": "per-key",
                "key": [{ "header": "x-api-key" }],
                "limit": { "token_bucket": { "capacity": 1000, "rate": "1000/h" } },
                "sync": "exact",
            },
            {
                "name": "orders",
                "match": { "methods": ["POST"], "path": { "exact": "/orders" } },
                "key": [{ "header": "x-api-key" }, "method", "path"],
                "limit": { "token_bucket": { "capacity": 10, "rate": "10/m" } },
                "sync": "exact",
            },
        ],
    })
}

/// What a token of a layer takes to come back.
const ADDRESS_TOKEN: Duration = Duration::from_millis(600);
const KEY_TOKEN: Duration = Duration::from_millis(3_600);
const ORDER_TOKEN: Duration = Duration::from_secs(6);

const ALL: &str = r#""per-address";q=100;w=60, "per-key";q=1000;w=3600, "orders";q=10;w=60"#;
const READS: &str = r#""per-address";q=100;w=60, "per-key";q=1000;w=3600"#;

struct Layers {
    envoy: Envoy,
    companion: Companion,
    /// It ends last.
    _store: Store,
}

impl Layers {
    async fn start() -> Self {
        let store = Store::start(StoreKind::Valkey).await;
        let companion = Companion::builder(&store.url()).store_timeout("5s").start().await;
        let builder = Envoy::builder().filter(&configuration()).companion(companion.addr());
        let envoy = builder.manager("xff_num_trusted_hops", json!(1)).start().await;
        Self { envoy, companion, _store: store }
    }

    async fn read(&self, address: &str, key: &str) -> Answer {
        self.envoy.send("GET", "/", &[("x-forwarded-for", address), ("x-api-key", key)]).await
    }

    async fn order(&self, address: &str, key: &str) -> Answer {
        self.envoy.send("POST", "/orders", &[("x-forwarded-for", address), ("x-api-key", key)]).await
    }

    /// What is left of the orders of a key, by taking one.
    async fn take_order(&self, key: &str) -> u64 {
        let limit = json!({ "token_bucket": { "capacity": 10, "rate": "10/m" } });
        let charge = json!({ "key": format!("rl:{{{key}}}:orders:POST:/orders"), "limit": limit, "cost": 1 });
        let (_, reply) = self.companion.take(&json!({ "takes": [{ "charges": [charge] }] })).await;
        let take = &reply["takes"][0];
        assert_eq!(take["admitted"], true, "{reply}");
        take["charges"][0]["remaining"].as_u64().expect("what is left is a number")
    }
}

/// What is left after `used` of `capacity`, when some tokens may have come back since `begun`.
fn assert_left(answer: &Answer, policy: &str, capacity: u64, used: u64, begun: Instant, token: Duration) {
    let left = answer.remaining(policy).unwrap_or_else(|| panic!("nothing of {policy}: {answer:?}"));
    let back = begun.elapsed().as_millis() / token.as_millis() + 1;
    let most = (capacity - used) + u64::try_from(back).expect("a short test");
    assert!((capacity - used..=most).contains(&left), "{policy}: {left} of {capacity} after {used}");
}

/// A refusal by one layer alone, of which nothing is left.
fn assert_refused(answer: &Answer, policy: &str, capacity: u64, policies: &str, token: Duration) {
    let told = |name: &str| answer.header(name).unwrap_or_else(|| panic!("no {name}: {answer:?}"));
    let wait: u64 = told("retry-after").parse().expect("Retry-After is a number");
    let longest = token.as_millis().div_ceil(1_000);
    assert_eq!(answer.status, 429, "{answer:?}");
    assert!(wait >= 1 && u128::from(wait) <= longest, "{policy}: {wait} s are no token of {token:?}");
    assert_eq!(told("ratelimit"), format!("\"{policy}\";r=0;t={wait}"));
    assert_eq!(told("ratelimit-policy"), policies);
    assert_eq!(told("x-ratelimit-limit"), capacity.to_string());
    assert_eq!(told("x-ratelimit-remaining"), "0");
    assert_eq!(told("x-ratelimit-reset"), wait.to_string());
    let body = answer.json();
    assert_eq!((&body["policy"], &body["retry_after"]), (&json!(policy), &json!(wait)));
}

/// Sends until one is refused; returns how many were admitted, and the refusal. Not more may pass than the capacity and
/// what comes back meanwhile.
async fn exhaust(capacity: u64, token: Duration, mut send: impl AsyncFnMut(u64) -> Answer) -> (u64, Answer) {
    let begun = Instant::now();
    for admitted in 0.. {
        let answer = send(admitted).await;
        if answer.status != 200 {
            let back = u64::try_from(begun.elapsed().as_millis() / token.as_millis()).expect("a short test");
            let fits = (capacity..=capacity + back + 1).contains(&admitted);
            assert!(fits, "{admitted} were admitted in {:?}: {answer:?}", begun.elapsed());
            return (admitted, answer);
        }
    }
    unreachable!("a limit that never refuses")
}

#[tokio::test]
async fn the_address_alone_binds_and_charges_no_key() {
    let layers = Layers::start().await;
    let begun = Instant::now();
    // A key for each request, so that only the address is used up.
    let (_, refusal) =
        exhaust(100, ADDRESS_TOKEN, async |n| layers.read("203.0.113.1", &format!("k{n}")).await).await;
    assert_refused(&refusal, "per-address", 100, READS, ADDRESS_TOKEN);

    // On a slow machine a token may have come back, and an order passes: then another key has to be tried.
    let mut keys = (0..10).map(|n| format!("fresh-{n}"));
    let fresh = loop {
        let key = keys.next().expect("ten orders passed where one may");
        let answer = layers.order("203.0.113.1", &key).await;
        if answer.status == 429 {
            assert_refused(&answer, "per-address", 100, ALL, ADDRESS_TOKEN);
            break key;
        }
    };
    let admitted = layers.order("203.0.113.2", &fresh).await;
    println!("{:?}", admitted.header("ratelimit"));
    assert_eq!(admitted.status, 200, "another address has the key whole");
    assert_left(&admitted, "per-key", 1000, 1, begun, KEY_TOKEN);
    assert_left(&admitted, "orders", 10, 1, begun, ORDER_TOKEN);
}

#[tokio::test]
async fn the_key_alone_binds_and_charges_no_address_and_no_order() {
    let layers = Layers::start().await;
    let begun = Instant::now();
    // An address for each few requests, so that only the key is used up.
    let address = |n: u64| format!("198.51.100.{}", n / 50);
    let (_, refusal) = exhaust(1000, KEY_TOKEN, async |n| layers.read(&address(n), "busy").await).await;
    println!("{:?} after {:?}", refusal.header("ratelimit"), begun.elapsed());
    assert_refused(&refusal, "per-key", 1000, READS, KEY_TOKEN);

    // Some of these may pass where a token has come back meanwhile.
    let mut ordered = 0;
    for _ in 0..5 {
        let answer = layers.order("203.0.113.3", "busy").await;
        if answer.status == 200 {
            ordered += 1;
        } else {
            assert_refused(&answer, "per-key", 1000, ALL, KEY_TOKEN);
        }
    }
    assert!(ordered <= 2, "{ordered} of 5 passed");
    assert!(layers.take_order("busy").await >= 10 - ordered - 1, "refused orders were charged");
    let other = layers.read("203.0.113.3", "other").await;
    assert_eq!(other.status, 200, "another key has the address whole");
    assert_left(&other, "per-address", 100, ordered + 1, begun, ADDRESS_TOKEN);
    assert_left(&other, "per-key", 1000, 1, begun, KEY_TOKEN);
}

#[tokio::test]
async fn orders_alone_bind_and_charge_neither_key_nor_address() {
    let layers = Layers::start().await;
    let begun = Instant::now();
    let (admitted, refusal) =
        exhaust(10, ORDER_TOKEN, async |_| layers.order("203.0.113.4", "shop").await).await;
    assert_refused(&refusal, "orders", 10, ALL, ORDER_TOKEN);
    let mut ordered = admitted;
    for _ in 0..5 {
        let answer = layers.order("203.0.113.4", "shop").await;
        if answer.status == 200 {
            ordered += 1;
        } else {
            assert_refused(&answer, "orders", 10, ALL, ORDER_TOKEN);
        }
    }
    let back = u64::try_from(begun.elapsed().as_millis() / ORDER_TOKEN.as_millis()).expect("a short test");
    assert!(ordered <= 10 + back + 1, "{ordered} orders in {:?}", begun.elapsed());
    let read = layers.read("203.0.113.4", "shop").await;
    println!("{ordered} orders and one read: {:?}", read.header("ratelimit"));
    assert_eq!(read.status, 200, "reading is no order");
    assert_eq!(read.header("ratelimit-policy").as_deref(), Some(READS));
    assert_left(&read, "per-key", 1000, ordered + 1, begun, KEY_TOKEN);
    assert_left(&read, "per-address", 100, ordered + 1, begun, ADDRESS_TOKEN);
    assert_eq!(layers.order("203.0.113.4", "other shop").await.status, 200, "another key orders");
}

#[tokio::test]
async fn all_three_bind_together_and_the_longest_wait_is_told() {
    let layers = Layers::start().await;
    let begun = Instant::now();
    let address = |n: u64| format!("198.51.100.{}", n / 50);
    for n in 0.. {
        if layers.read(&address(n), "busy").await.remaining("per-key") == Some(10) {
            break;
        }
    }
    let (ordered, _) = exhaust(10, ORDER_TOKEN, async |_| layers.order("203.0.113.5", "busy").await).await;
    // What has come back of the key meanwhile goes first.
    let (_, refusal) = exhaust(0, KEY_TOKEN, async |_| layers.read("203.0.113.7", "busy").await).await;
    assert_refused(&refusal, "per-key", 1000, READS, KEY_TOKEN);

    let both = layers.order("203.0.113.5", "busy").await;
    println!("{:?}, after {:?}", both.header("ratelimit"), begun.elapsed());
    assert_eq!((both.status, both.header("ratelimit-policy").as_deref()), (429, Some(ALL)));
    assert_eq!((both.remaining("per-key"), both.remaining("orders")), (Some(0), Some(0)));
    assert_eq!(both.remaining("per-address"), None, "it refuses nothing");
    let field = both.header("ratelimit").expect("the state is told");
    let waits = field.split(";t=").skip(1).filter_map(|rest| rest.split(',').next()?.parse::<u64>().ok());
    let longest = waits.max().expect("both tell a time");
    assert_eq!(both.header("retry-after"), Some(longest.to_string()));
    assert_eq!(both.json()["retry_after"], longest);

    // Of what two refused and of what was refused before, the address knows nothing.
    let fresh = layers.read("203.0.113.5", "fresh").await;
    assert_left(&fresh, "per-address", 100, ordered + 1, begun, ADDRESS_TOKEN);
    // What the proxy refuses by itself is no question to the store, whatever that would say.
    let (_, refusal) =
        exhaust(100, ADDRESS_TOKEN, async |n| layers.read("203.0.113.6", &format!("k{n}")).await).await;
    assert_refused(&refusal, "per-address", 100, READS, ADDRESS_TOKEN);
    let all = layers.order("203.0.113.6", "busy").await;
    println!("{:?}, after {:?}", all.header("ratelimit"), begun.elapsed());
    assert_eq!(all.status, 429);
}
