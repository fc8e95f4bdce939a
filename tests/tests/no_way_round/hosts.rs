//! Spellings of a host, as a part of the key and as a condition.

use harness::{Envoy, EnvoyBuilder, Listener};
use serde_json::{Value, json};

use crate::{Door, assert_all, once};

#[tokio::test]
async fn every_spelling_of_a_host_meets_its_bucket() {
    let by_key = once("by-key", &Value::Null, &json!([{ "header": "x-client" }, "host"]));
    let by_match = once("by-match", &json!({ "hosts": ["api.test"] }), &json!([{ "header": "x-client" }]));
    let below = once("below", &json!({ "hosts": ["*.test"] }), &json!([{ "header": "x-client" }, "host"]));
    let policies = [by_key, by_match, below];
    let listeners = policies.map(|policy| Listener::new(&json!({ "policies": [policy] })));
    let envoy = listeners.into_iter().fold(Envoy::builder(), EnvoyBuilder::listener).start().await;
    let mut rows = Vec::new();
    for listener in 1..=3 {
        let mut door = Door::new(&envoy, listener);
        for line in [
            "host: API.Test",
            "host: api.test:80",
            "host: api.test:8443",
            "host: api.test.",
            "host: API.TEST.:80",
            "host:\tapi.test \t",
            "host: someone@api.test",
        ] {
            rows.push(door.meet(("/", &["host: api.test"]), ("/", &[line])).await);
        }
        rows.push(door.meet(("/", &["host: api.test"]), ("http://API.test:80/", &["host: other"])).await);
    }
    assert_all(rows);
}

#[tokio::test]
async fn what_envoy_ignores_as_a_port_makes_no_other_host() {
    let by_key = once("by-key", &Value::Null, &json!([{ "header": "x-client" }, "host"]));
    let by_match = once("by-match", &json!({ "hosts": ["api.test"] }), &json!([{ "header": "x-client" }]));
    let listeners = [by_key, by_match].map(|policy| Listener::new(&json!({ "policies": [policy] })));
    let envoy = listeners.into_iter().fold(Envoy::builder(), EnvoyBuilder::listener).start().await;
    let mut rows = Vec::new();
    for listener in 1..=2 {
        let mut door = Door::new(&envoy, listener);
        for line in ["host: api.test:x", "host: api.test:80.", "host: api.test:+80", "host: api.test:80:80"] {
            rows.push(door.meet(("/", &["host: api.test"]), ("/", &[line])).await);
        }
    }
    assert_all(rows);
}
