//! Spellings of who a client is, and what is said of nobody.

use harness::{Envoy, Listener};
use serde_json::{Value, json};

use crate::{Door, assert_all, once};

#[tokio::test]
async fn every_spelling_of_a_client_is_one_client() {
    let key = |source: Value| json!([source, { "header": "x-client" }]);
    let policies = json!([
        once("header", &json!({ "path": { "exact": "/header" } }), &key(json!({ "header": "x-api-key" }))),
        once("cookie", &json!({ "path": { "exact": "/cookie" } }), &key(json!({ "cookie": "sid" }))),
        once("query", &json!({ "path": { "exact": "/query" } }), &key(json!({ "query": "key" }))),
    ]);
    let envoy = Envoy::builder().listener(Listener::new(&json!({ "policies": policies }))).start().await;
    let mut door = Door::new(&envoy, 1);
    let mut rows = Vec::new();
    let headers: [&[&str]; 5] = [
        &["x-api-key:a"],
        &["x-api-key: \t a\t "],
        &["X-API-KEY: a"],
        &["x-ApI-kEy: a", "x-api-key:   a"],
        &["x-api-key: a", "x-other: b", "x-api-key: a", "x-api-key: a"],
    ];
    for lines in headers {
        rows.push(door.meet(("/header", &["x-api-key: a"]), ("/header", lines)).await);
    }
    let cookies: [&[&str]; 6] = [
        &["Cookie: sid=a"],
        &["cookie:  sid=a ; x=1"],
        &["cookie: x=1;sid=a;"],
        &["cookie: x=1", "cookie: sid=a"],
        &["cookie: sid=a; sid=a"],
        &["cookie: sid=a", "cookie: sid=a"],
    ];
    for lines in cookies {
        rows.push(door.meet(("/cookie", &["cookie: sid=a"]), ("/cookie", lines)).await);
    }
    for query in ["key=%61", "%6b%65%79=a", "x&key=a&", "key=a&key=a", "key=a&key=%61", "?key=b&key=a"] {
        rows.push(door.meet(("/query?key=a", &[]), (&format!("/query?{query}"), &[])).await);
    }
    assert_all(rows);
}

#[tokio::test]
async fn a_client_cannot_choose_its_address() {
    let configuration =
        json!({ "policies": [once("per-address", &Value::Null, &json!(["ip", { "header": "x-client" }]))] });
    let direct = Listener::new(&configuration);
    let behind_a_proxy = Listener::new(&configuration).manager("xff_num_trusted_hops", json!(1));
    let envoy = Envoy::builder().listener(direct).listener(behind_a_proxy).start().await;
    let mut rows = Vec::new();

    let mut door = Door::new(&envoy, 1);
    let spoofed: [&[&str]; 6] = [
        &["x-forwarded-for: 203.0.113.7"],
        &["x-forwarded-for: 203.0.113.7, 203.0.113.8"],
        &["x-forwarded-for: 203.0.113.7", "x-forwarded-for: 203.0.113.8"],
        &["X-Forwarded-For: garbage"],
        &["x-real-ip: 203.0.113.7", "true-client-ip: 203.0.113.7"],
        &["forwarded: for=203.0.113.7", "x-envoy-external-address: 203.0.113.7"],
    ];
    for lines in spoofed {
        rows.push(door.meet(("/", &[]), ("/", lines)).await.map_err(|error| format!("direct: {error}")));
    }

    let mut door = Door::new(&envoy, 2);
    let alike = [
        ("203.0.113.7", "::ffff:203.0.113.7"),
        ("203.0.113.7", "::FFFF:CB00:7107"),
        ("203.0.113.7", "0:0:0:0:0:ffff:203.0.113.7"),
        ("203.0.113.7", "192.0.2.99, 203.0.113.7"),
        ("2001:db8:1:2::1", "2001:db8:1:2::2"),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff"),
        ("2001:db8:1:2::1", "2001:0DB8:0001:0002:0000:0000:0000:0001"),
        ("2001:db8:1:2::1", "2001:db8:9:9::9, 2001:db8:1:2::"),
    ];
    for (one, other) in alike {
        let [one, other] = [one, other].map(|address| format!("x-forwarded-for: {address}"));
        rows.push(door.meet(("/", &[&one]), ("/", &[&other])).await);
    }
    let apart =
        door.meet(("/", &["x-forwarded-for: 2001:db8:1:2::1"]), ("/", &["x-forwarded-for: 2001:db8:1:3::1"]));
    assert!(apart.await.is_err(), "another /64 is another client");
    assert_all(rows);
}

#[tokio::test]
async fn an_unclear_identity_is_nobody_however_its_values_vary() {
    let policy = |name: &str, source: Value| {
        once(name, &json!({ "path": { "exact": format!("/{name}") } }), &json!([source]))
    };
    let policies = json!([
        policy("header", json!({ "header": "x-api-key" })),
        policy("cookie", json!({ "cookie": "sid" })),
        policy("query", json!({ "query": "key" })),
    ]);
    let envoy = Envoy::builder().listener(Listener::new(&json!({ "policies": policies }))).start().await;
    let door = Door::new(&envoy, 1);
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    for values in [
        vec![],
        vec![""],
        vec!["a", "b"],
        vec!["c", "d"],
        vec!["a", ""],
        vec!["", "a"],
        vec!["a", "a", "b"],
        vec!["a,b", "a"],
    ] {
        let keys = values.iter().map(|value| format!("x-api-key: {value}"));
        rows.push(("/header".to_owned(), keys.collect()));
        let cookies: Vec<String> = values.iter().map(|value| format!("sid={value}")).collect();
        rows.push(("/cookie".to_owned(), vec![format!("cookie: {}", cookies.join("; "))]));
        rows.push(("/cookie".to_owned(), cookies.iter().map(|cookie| format!("cookie: {cookie}")).collect()));
        let query: Vec<String> = values.iter().map(|value| format!("key={value}")).collect();
        rows.push((format!("/query?{}", query.join("&")), Vec::new()));
    }
    rows.push(("/header".to_owned(), lines(&["x-api-key: \t "])));
    rows.push(("/cookie".to_owned(), lines(&["cookie: sid"])));
    rows.push(("/query?key".to_owned(), Vec::new()));

    for path in ["/header", "/cookie", "/query"] {
        assert_eq!(door.send(path, &[]).await.status, 200, "nobody has been at {path}");
    }
    let mut results = Vec::new();
    for (target, lines) in rows {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let status = door.send(&target, &lines).await.status;
        let row = if status == 429 { Ok(()) } else { Err(format!("{status} for {target} with {lines:?}")) };
        results.push(row);
    }
    assert_all(results);
    for (target, line) in
        [("/header", "x-api-key: a"), ("/cookie", "cookie: sid=a"), ("/query?key=a", "x-y: z")]
    {
        assert_eq!(door.send(target, &[line]).await.status, 200, "{target}: a clear identity is somebody");
    }
}
