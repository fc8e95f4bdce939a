//! Spellings of a path, with and without the normalisation that Envoy does itself.

use harness::{Envoy, Listener};
use serde_json::{Value, json};

use crate::{Door, assert_all, once};

/// Every way to write a path of two characters or more that begins with `/`.
fn spellings(path: &str) -> Vec<String> {
    let escape = |index: usize, digits: fn(u8) -> String| {
        format!("{}%{}{}", &path[..index], digits(path.as_bytes()[index]), &path[index + 1..])
    };
    let lower = |byte: u8| format!("{byte:02x}");
    let upper = |byte: u8| format!("{byte:02X}");
    vec![
        format!("/{path}"),
        format!("//{path}"),
        format!("/.{path}"),
        format!("/./.{path}"),
        format!("/x/..{path}"),
        format!("/x/y/../..{path}"),
        format!("/..{path}"),
        format!("/%2e{path}"),
        format!("/%2E/.{path}"),
        format!("/x/%2e%2e{path}"),
        format!("/x/.%2E{path}"),
        format!("/%2e/{path}"),
        format!("/x/..\\{}", &path[1..]),
        format!("/\\{}", &path[1..]),
        escape(1, lower),
        escape(1, upper),
        escape(path.len() - 1, lower),
        format!("{path}?"),
        format!("{path}?x=1"),
        format!("{path}?x=1?y=/../"),
        format!("//{}?/other", &escape(2, lower)[1..]),
        format!("http://a.test{path}"),
        format!("http://a.test/{path}?x"),
    ]
}

/// Envoy's normalisation on for the first listener, off for the second.
fn normalising(policies: &Value) -> [Listener; 2] {
    let configuration = json!({ "policies": policies });
    let off = Listener::new(&configuration);
    let off = off.manager("normalize_path", json!(false)).manager("merge_slashes", json!(false));
    [Listener::new(&configuration), off]
}

#[tokio::test]
async fn every_spelling_of_a_path_meets_its_bucket_whether_envoy_normalises_or_not() {
    let key = json!([{ "header": "x-client" }, "path"]);
    let kinds = [
        ("exact", json!({ "exact": "/orders" }), "/orders"),
        ("prefix", json!({ "prefix": "/folder/" }), "/folder/a"),
        ("template", json!({ "template": "/users/{id}" }), "/users/a"),
        ("regex", json!({ "regex": "/numbers/[a-z]+" }), "/numbers/a"),
    ];
    let policies = kinds.iter().map(|(name, path, _)| once(name, &json!({ "path": path }), &key));
    let [on, off] = normalising(&policies.collect());
    let envoy = Envoy::builder().listener(on).listener(off).start().await;
    let mut rows = Vec::new();
    for listener in [1, 2] {
        let mut door = Door::new(&envoy, listener);
        for (name, _, path) in &kinds {
            for spelling in spellings(path) {
                let met = door.meet((path, &[]), (&spelling, &[])).await;
                rows.push(met.map_err(|error| format!("listener {listener}, {name}: {error}")));
            }
        }
    }
    assert_all(rows);
}

#[tokio::test]
async fn what_only_looks_alike_is_another_path() {
    let policy =
        once("exact", &json!({ "path": { "exact": "/orders" } }), &json!([{ "header": "x-client" }]));
    let [on, off] = normalising(&json!([policy]));
    let envoy = Envoy::builder().listener(on).listener(off).start().await;
    for listener in [1, 2] {
        let door = Door::new(&envoy, listener);
        assert_eq!(door.send("/orders", &["x-client: a"]).await.status, 200);
        assert_eq!(door.send("/orders", &["x-client: a"]).await.status, 429);
        for other in [
            "/orders/",
            "/Orders",
            "/order%73/",
            "/orders%2F",
            "/%2Forders",
            "/orders.",
            "/orders%20",
            "/orders;a",
            // Dots are resolved before slashes are merged, as Envoy does it.
            "/x//../orders",
        ] {
            let answer = door.send(other, &["x-client: a"]).await;
            let told = (answer.status, answer.header("ratelimit-policy"));
            assert_eq!(told, (200, None), "{other}, listener {listener}");
        }
    }
    let documented = include_str!("../../../docs/policies.md");
    assert!(documented.contains("`/orders/` and `/Orders` are other paths"), "the documents say so");
}

#[tokio::test]
async fn a_fragment_is_refused_by_envoy_or_meets_the_same_bucket() {
    const FLAG: &str = "envoy.reloadable_features.http_reject_path_with_fragment";
    let key = json!([{ "header": "x-client" }, "path"]);
    let policies = json!([once("exact", &json!({ "path": { "exact": "/orders" } }), &key)]);
    let [on, off] = normalising(&policies);

    let envoy = Envoy::builder().listener(on.clone()).listener(off.clone()).start().await;
    for listener in [1, 2] {
        let door = Door::new(&envoy, listener);
        for target in ["/orders#a", "/orders?x#a", "/#/orders"] {
            let answer = door.send(target, &["x-client: a"]).await;
            let told = (answer.status, answer.header("ratelimit-policy"));
            assert_eq!(told, (400, None), "Envoy refuses {target} before any filter");
        }
        assert_eq!(door.send("/orders", &["x-client: a"]).await.status, 200, "nothing was charged");
    }

    let envoy = Envoy::builder().listener(on).listener(off).runtime(FLAG, json!(false)).start().await;
    let mut rows = Vec::new();
    for listener in [1, 2] {
        let mut door = Door::new(&envoy, listener);
        for target in ["/orders#a", "/orders?x=1#a", "//orders#/../a", "/orders#?"] {
            rows.push(door.meet(("/orders", &[]), (target, &[])).await);
        }
    }
    assert_all(rows);
}
