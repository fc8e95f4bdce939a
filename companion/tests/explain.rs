//! `tidegate explain` as a person calls it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is a test's report")]
#![allow(dead_code, reason = "the servers are shared with other tests")]

mod servers;

use std::process::Command;

use companion::take;
use limiter::wire::{Charge, Limit, Take, TakeRequest};
use servers::{PATIENT, Server, binaries};

const CONFIG: &str = r#"{"companion": {"cluster": "tidegate"}, "policies": [
    {"name": "per-ip", "key": ["ip"], "limit": {"token_bucket": {"capacity": 100, "rate": "100/m"}}, "sync": "local"},
    {"name": "per-key", "match": {"path": {"prefix": "/api/"}}, "key": [{"header": "x-api-key"}],
     "limit": {"token_bucket": {"capacity": 1000, "rate": "1000/h"}}},
    {"name": "orders", "match": {"methods": ["POST"], "path": {"exact": "/orders"}},
     "key": [{"header": "x-api-key"}, "method", "path"],
     "limit": {"token_bucket": {"capacity": 10, "rate": "10/m"}}, "sync": "exact"}]}"#;

fn explain(args: &[&str]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policies.json");
    std::fs::write(&file, CONFIG).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .env_remove("TIDEGATE_STORE")
        .args(["explain", "--config"])
        .arg(file)
        .args(args)
        .output()
        .unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(printed).unwrap())
}

#[test]
fn the_document_shows_what_is_printed() {
    let text = include_str!("../../docs/explain.md");
    let shown = text.split("```").nth(1).unwrap().trim();
    let (command, shown) = shown.split_once('\n').unwrap();
    assert!(command.ends_with("'POST //orders?x=1' -H 'x-api-key: abc' --ip 203.0.113.7"), "{command}");
    let (code, printed) = explain(&["POST //orders?x=1", "-H", "x-api-key: abc", "--ip", "203.0.113.7"]);
    assert_eq!((code, printed.trim()), (Some(0), shown));
}

#[test]
fn the_json_names_every_policy_and_its_outcome() {
    let (code, printed) = explain(&["GET /api/x", "--format", "json"]);
    let told: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let outcomes: Vec<&str> =
        told["policies"].as_array().unwrap().iter().map(|one| one["outcome"].as_str().unwrap()).collect();
    assert_eq!((code, outcomes), (Some(0), vec!["counts", "counts", "unmet"]));
    assert_eq!(told["policies"][1]["is_anonymous"], true);
    assert_eq!(told.get("store"), None);
}

#[test]
fn what_cannot_be_explained_ends_with_2_and_says_why() {
    for (args, words) in [
        (&["POST"][..], "use a method and a path"),
        (&["GET /", "--claim", "sub"], "use a path and a value"),
        (&["GET /", "--store", "memory"], "is seen by nobody else"),
        (&["GET /", "--store", "redis://127.0.0.1:1"], "the store does not tell"),
    ] {
        let (code, printed) = explain(args);
        assert_eq!(code, Some(2), "{printed}");
        assert!(printed.contains(words), "{printed}");
    }
}

#[test]
fn a_bucket_of_a_store_is_looked_at_and_not_charged() {
    let limit = r#"{"capacity": 10, "rate": "10/m"}"#;
    let charge = Charge {
        key: "rl:{abc}:orders:POST:/orders".to_owned(),
        limit: Limit::TokenBucket(serde_json::from_str(limit).unwrap()),
        cost: 10,
        shadow: false,
        lease: None,
        report: None,
    };
    let all = TakeRequest { takes: vec![Take { charges: vec![charge] }] };
    for binary in binaries() {
        let server = Server::start(&binary);
        let store = format!("redis://127.0.0.1:{}", server.port);
        let ask = || explain(&["POST /orders", "-H", "x-api-key: abc", "--store", &store]);
        let (code, printed) = ask();
        assert_eq!(code, Some(0), "{printed}");
        assert!(printed.contains("now     10 left; the request passes\n"), "{printed}");
        assert_eq!(server.command::<i64>(&["DBSIZE"]), 0, "looking writes nothing");
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            server.ready_store(PATIENT).await.run(take::call(&all)).await.unwrap();
        });
        // How long is the pace of this machine's.
        let (_, printed) = ask();
        assert!(printed.contains("now     0 left; the request passes in "), "{printed}");
        assert!(printed.contains("A request now is answered 429 with\n"), "{printed}");
    }
}
