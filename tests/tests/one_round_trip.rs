//! A callout costs the store one script call, and the store's own books show it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use harness::{Companion, Envoy, Reply, Resp, Store, plugin, until};
use serde_json::json;
use tokio::task::JoinSet;

const REQUESTS: u64 = 50;

/// A request's two policies ask for two keys, in one script call.
const KEYS: u64 = 2;

/// The most calls that a worker has under way.
const MAX_CALLS: u64 = 4;

const CAPACITY: u64 = 1_000;

/// What the script itself calls: the store counts it like any command.
const INNER: [&str; 3] = ["get", "set", "time"];

/// An Envoy and a companion over a store. Nothing refills, and what could not be decided is answered 503.
async fn start(store: &Store) -> (Companion, Envoy) {
    let companion = Companion::builder(&store.url()).store_timeout("5s").start().await;
    let policy = |name: &str| {
        json!({
            "name": name,
            "key": [{ "header": "x-api-key" }],
            "limit": { "token_bucket": { "capacity": CAPACITY, "rate": "1/d" } },
            "sync": "exact",
            "on_failure": { "closed": { "retry_after": "1s" } },
        })
    };
    let configuration = plugin(json!([policy("one"), policy("two")]));
    let envoy = Envoy::builder().filter(&configuration).companion(companion.addr()).start().await;
    (companion, envoy)
}

/// Sends a request that must be decided by the store; returns what is left of both policies.
async fn decided(envoy: &Envoy) -> [u64; 2] {
    let answer = envoy.send("GET", "/", &[("x-api-key", "k")]).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    ["one", "two"].map(|policy| answer.remaining(policy).expect("the store has told what is left"))
}

/// What the store has run since the last `CONFIG RESETSTAT`, without what the test itself asks and the
/// companion's signs of life, which come by the clock and not by requests.
async fn commands(store: &Store) -> BTreeMap<String, u64> {
    let mut calls = store.command_calls().await;
    calls.retain(|name, calls| {
        *calls > 0 && !["config|resetstat", "config", "info", "ping"].contains(&&**name)
    });
    calls
}

fn expected(own: &[(&str, u64)], script_runs: u64) -> BTreeMap<String, u64> {
    let inner = INNER.map(|name| (name, if name == "time" { script_runs } else { script_runs * KEYS }));
    own.iter().copied().chain(inner).map(|(name, calls)| (name.to_owned(), calls)).collect()
}

#[tokio::test]
async fn each_callout_is_one_script_call_and_nothing_else() {
    for kind in Store::servers() {
        let store = Store::start(kind).await;
        let (_companion, envoy) = start(&store).await;
        decided(&envoy).await;

        let before = envoy.counter("wasmcustom.tidegate.callouts").await;
        store.command(&["CONFIG", "RESETSTAT"]).await;
        for _ in 0..REQUESTS {
            decided(&envoy).await;
        }
        let commands = commands(&store).await;
        let callouts = envoy.counter("wasmcustom.tidegate.callouts").await - before;
        println!("{kind:?}: {REQUESTS} requests, {callouts} callouts, {commands:?}");
        assert_eq!(callouts, REQUESTS, "{kind:?}: a lone request leaves at once");
        assert_eq!(commands, expected(&[("evalsha", callouts)], callouts), "{kind:?}");
    }
}

#[tokio::test]
async fn requests_that_share_a_callout_share_its_script_call() {
    for kind in Store::servers() {
        let store = Store::start(kind).await;
        let (companion, envoy) = start(&store).await;
        decided(&envoy).await;

        let before = envoy.counter("wasmcustom.tidegate.callouts").await;
        store.command(&["CONFIG", "RESETSTAT"]).await;
        let envoy = Arc::new(envoy);
        let mut clients = JoinSet::new();
        // While nothing is answered, the most calls are under way, and what comes then waits for one of them.
        companion.stop();
        for _ in 0..REQUESTS {
            let envoy = Arc::clone(&envoy);
            clients.spawn(async move { decided(&envoy).await });
        }
        until("all requests at Envoy", Duration::from_secs(10), async || {
            (envoy.counter("http.ingress.downstream_rq_active").await == REQUESTS).then_some(())
        })
        .await;
        companion.cont();
        clients.join_all().await;
        let commands = commands(&store).await;
        let callouts = envoy.counter("wasmcustom.tidegate.callouts").await - before;
        println!("{kind:?}: {REQUESTS} requests at once, {callouts} callouts, {commands:?}");
        assert_eq!(callouts, MAX_CALLS + 1, "{kind:?}: the others share one");
        // A batch reads and writes each of its keys once.
        assert_eq!(commands, expected(&[("evalsha", callouts)], callouts), "{kind:?}");
    }
}

/// `MONITOR` tells the commands of scripts from those of clients, which the statistics do not.
#[tokio::test]
async fn the_companion_itself_sends_the_script_call_alone() {
    for kind in Store::servers() {
        let store = Store::start(kind).await;
        let (_companion, envoy) = start(&store).await;
        decided(&envoy).await;

        let mut monitor = Resp::connect(store.addr()).await.expect("the store accepts connections");
        assert_eq!(monitor.command(&["MONITOR"]).await.expect("a reply").text(), "OK");
        for _ in 0..REQUESTS {
            decided(&envoy).await;
        }
        store.command(&["ECHO", "end-of-test"]).await;
        let (mut by_client, mut by_script) = (BTreeMap::new(), BTreeMap::new());
        loop {
            let Reply::Simple(line) = monitor.next().await.expect("the monitor goes on") else {
                panic!("a monitor sends lines");
            };
            if line.contains("end-of-test") {
                break;
            }
            let (source, command) = split(&line);
            let commands = if source.ends_with(" lua") { &mut by_script } else { &mut by_client };
            *commands.entry(command).or_insert(0) += 1;
        }
        by_client.remove("ping");
        println!("{kind:?}: {REQUESTS} requests; clients sent {by_client:?}, the script {by_script:?}");
        assert_eq!(by_client, BTreeMap::from([("evalsha".to_owned(), REQUESTS)]), "{kind:?}");
        assert_eq!(by_script, expected(&[], REQUESTS), "{kind:?}");
    }
}

/// The source and the command, in lower case, of `1700000000.123456 [0 127.0.0.1:5000] "EVALSHA" "…"`.
fn split(line: &str) -> (&str, String) {
    let (source, words) = line.split_once("] ").expect("a monitor tells the source");
    let command = words.split('"').nth(1).expect("a monitor quotes the command");
    (source, command.to_lowercase())
}

#[tokio::test]
async fn a_flushed_script_is_sent_again_with_the_next_request() {
    for kind in Store::servers() {
        let store = Store::start(kind).await;
        let (_companion, envoy) = start(&store).await;
        let before = decided(&envoy).await;

        store.command(&["SCRIPT", "FLUSH"]).await;
        store.command(&["CONFIG", "RESETSTAT"]).await;
        let first = decided(&envoy).await;
        let with_text = commands(&store).await;
        store.command(&["CONFIG", "RESETSTAT"]).await;
        let second = decided(&envoy).await;
        let by_name = commands(&store).await;

        println!(
            "{kind:?}: {before:?} left; after the flush {first:?} by {with_text:?}, then {second:?} by {by_name:?}"
        );
        assert_eq!(first, before.map(|left| left - 1), "{kind:?}: charged once, and counted on");
        assert_eq!(second, before.map(|left| left - 2), "{kind:?}");
        assert_eq!(with_text, expected(&[("evalsha", 1), ("eval", 1)], 1), "{kind:?}");
        assert_eq!(by_name, expected(&[("evalsha", 1)], 1), "{kind:?}");
    }
}

#[tokio::test]
async fn the_next_request_after_a_restart_of_the_store_is_decided() {
    for kind in Store::servers() {
        let mut store = Store::start(kind).await;
        let (mut companion, envoy) = start(&store).await;
        let before = decided(&envoy).await;

        let begun = tokio::time::Instant::now();
        store.restart().await;
        let answers_after = begun.elapsed();
        companion.ready().await;
        let ready_after = begun.elapsed();
        let first = decided(&envoy).await;

        println!(
            "{kind:?}: {before:?} left; restarted, the store answers after {answers_after:?}, the companion is \
             ready after {ready_after:?}, {first:?} left"
        );
        assert_eq!(before, [CAPACITY - 1; 2], "{kind:?}");
        assert_eq!(first, [CAPACITY - 1; 2], "{kind:?}: the restarted store is empty");
        assert_eq!(envoy.counter("wasmcustom.tidegate.policy.one.unprotected").await, 0, "{kind:?}");
        assert_eq!(envoy.counter("wasmcustom.tidegate.policy.one.unavailable").await, 0, "{kind:?}");
    }
}
