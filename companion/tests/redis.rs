//! How the companion lives with a Redis server that restarts, hangs, forgets its scripts or refuses: over
//! the servers that `make tools` fetched, and skipped where there are none.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a panic is a test's report")]

mod servers;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use companion::store::{Refusal, Store, StoreError};
use companion::take;
use limiter::wire::{Charge, LeaseAsk, Limit, Report, Return, Take, TakeRequest};
use rustix::process::Signal;
use servers::{PATIENT, Server, binaries, until_ready};
use tokio::task::JoinSet;

/// The companion's default.
const SHORT: Duration = Duration::from_millis(30);

/// Asks `times` times in one call for `cost` tokens of ten thousand a day.
fn request(key: &str, cost: u64, times: usize) -> TakeRequest {
    let quota = limiter::quota::TokenBucket::new(10_000, "10000/d".parse().unwrap()).unwrap();
    let key = format!("rl:{{{key}}}:p");
    let charge =
        Charge { key, limit: Limit::TokenBucket(quota), cost, shadow: false, lease: None, report: None };
    TakeRequest { takes: vec![Take { charges: vec![charge] }; times] }
}

/// Takes a token `times` times in one call; returns what is left after the last.
async fn take(store: &Store, key: &str, times: usize) -> Result<u64, StoreError> {
    let answer = store.run(take::call(&request(key, 1, times))).await?;
    assert!(answer.chunks(6).all(|take| take[0] == 1), "{answer:?}");
    Ok(u64::try_from(answer[answer.len() - 5]).unwrap())
}

/// The same as often as a busy machine lets it miss a short timeout, ten times at most.
async fn take_at_last(store: &Store, key: &str) -> u64 {
    for _ in 0..9 {
        if let Ok(left) = take(store, key, 1).await {
            return left;
        }
    }
    take(store, key, 1).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_decision_is_one_script_call_and_a_hot_key_one_read_and_one_write() {
    for binary in binaries() {
        let server = Server::start(&binary);
        let store = server.ready_store(PATIENT).await;
        take(&store, "first", 1).await.unwrap();
        server.calls();
        for expected in [9_872, 9_744, 9_616] {
            assert_eq!(take(&store, "hot", 128).await, Ok(expected));
        }
        let mut calls = server.calls();
        // What this test's own connections ask.
        calls.retain(|name, _| !["info", "config", "client"].iter().any(|own| name.starts_with(own)));
        let expected = ["evalsha", "get", "set", "time"].map(|name| (name.to_owned(), 3));
        assert_eq!(calls, BTreeMap::from(expected));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_refusal_reads_and_writes_nothing() {
    for binary in binaries() {
        let server = Server::start(&binary);
        let store = server.ready_store(PATIENT).await;
        take(&store, "k", 1).await.unwrap();
        server.calls();
        let answer = store.run(take::call(&request("k", 10_000, 5))).await.unwrap();
        assert_eq!(answer[..2], [0, 9_999], "{answer:?}");
        let calls = server.calls();
        assert_eq!((calls["get"], calls.get("set"), calls.get("del")), (1, None, None));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_forgotten_script_is_sent_once_and_decides_as_usual() {
    for binary in binaries() {
        let server = Server::start(&binary);
        let store = server.ready_store(PATIENT).await;
        assert_eq!(take(&store, "k", 1).await, Ok(9_999));
        let _: () = server.command(&["SCRIPT", "FLUSH"]);
        server.calls();
        assert_eq!(take(&store, "k", 1).await, Ok(9_998));
        assert_eq!(take(&store, "k", 1).await, Ok(9_997));
        let calls = server.calls();
        assert_eq!((calls.get("eval"), calls["evalsha"]), (Some(&1), 2));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_killed_server_fails_calls_at_once_and_after_its_return_the_next_call_works() {
    for binary in binaries() {
        let mut server = Server::start(&binary);
        let store = server.ready_store(PATIENT).await;
        take(&store, "k", 1).await.unwrap();
        server.kill();
        // The first may still be sent; it fails by the connection's end and not by the timeout.
        for _ in 0..2 {
            let begun = Instant::now();
            let error = take(&store, "k", 1).await.unwrap_err();
            assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
            assert!(begun.elapsed() < PATIENT / 10, "{:?}", begun.elapsed());
        }
        server.restart();
        let recovery = until_ready(&store).await;
        println!("{}: connected again after {recovery:?}", binary.display());
        assert!(recovery < Duration::from_secs(1));
        assert_eq!(take(&store, "k", 1).await, Ok(9_999), "the restarted server holds nothing");
        // Nobody has to fail to find out about the next restart: the end of the connection is seen.
        server.kill();
        while store.ready().await.is_ok() {}
        server.restart();
        until_ready(&store).await;
        assert_eq!(take(&store, "k", 1).await, Ok(9_999));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stopped_server_costs_each_call_its_timeout_at_most_and_comes_back() {
    for binary in binaries() {
        let server = Server::start(&binary);
        let store = server.ready_store(SHORT).await;
        let left = take_at_last(&store, "k").await;
        server.signal(Signal::STOP);
        let (mut failed, mut longest) = (0, Duration::ZERO);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(2) {
            let sent = Instant::now();
            take(&store, "k", 1).await.unwrap_err();
            longest = longest.max(sent.elapsed());
            failed += 1;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        println!("{}: {failed} calls failed, the longest in {longest:?}", binary.display());
        // Far less than until the connection is given up, also where the machine is busy.
        assert!(longest < SHORT * 10, "{longest:?}");
        // Far more than two seconds of timeouts: a connection that is given up is not waited for.
        assert!(failed > 100, "{failed}");
        server.signal(Signal::CONT);
        let recovery = until_ready(&store).await;
        println!("{}: ready {recovery:?} after it went on", binary.display());
        assert!(recovery < Duration::from_secs(1), "{recovery:?}");
        let now_left = take_at_last(&store, "k").await;
        // Sent and not answered is spent at most once.
        assert!(now_left < left && now_left + 10 + failed >= left, "{left} {failed} {now_left}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn calls_under_way_are_bounded_while_a_server_hangs() {
    for binary in binaries() {
        let server = Server::start(&binary);
        let store = server.ready_store(SHORT).await;
        server.signal(Signal::STOP);
        let mut calls = JoinSet::new();
        for _ in 0..2_000 {
            let store = store.clone();
            calls.spawn(async move { take(&store, "k", 1).await });
        }
        let errors = calls.join_all().await.into_iter().map(Result::unwrap_err);
        let refused = errors.filter(|error| *error == StoreError::Overloaded).count();
        assert_eq!(refused, 2_000 - companion::store::redis::MAX_CALLS);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_that_became_a_replica_is_left_and_named() {
    for binary in binaries() {
        let server = Server::start(&binary);
        let store = server.ready_store(PATIENT).await;
        take(&store, "k", 1).await.unwrap();
        let _: () = server.command(&["REPLICAOF", "127.0.0.1", "1"]);
        let error = take(&store, "k", 1).await.unwrap_err();
        assert!(matches!(error, StoreError::Refused { refusal: Refusal::ReadOnly, .. }), "{error:?}");
        let _: () = server.command(&["REPLICAOF", "NO", "ONE"]);
        until_ready(&store).await;
        take(&store, "k", 1).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_missing_password_is_named_at_once_and_its_removal_is_seen() {
    for binary in binaries() {
        let server = Server::start(&binary);
        let connected = redis::Client::open(format!("redis://127.0.0.1:{}", server.port)).unwrap();
        let mut connected = connected.get_connection().unwrap();
        let _: () =
            redis::cmd("CONFIG").arg(&["SET", "requirepass", "secret"]).query(&mut connected).unwrap();
        let store = server.store(PATIENT);
        let begun = Instant::now();
        let error = loop {
            match take(&store, "k", 1).await.unwrap_err() {
                StoreError::Unreachable { .. } => tokio::time::sleep(Duration::from_millis(1)).await,
                error => break error,
            }
        };
        assert!(matches!(error, StoreError::Refused { refusal: Refusal::Unauthenticated, .. }), "{error:?}");
        assert!(begun.elapsed() < Duration::from_secs(1));
        let remedy = "put the password into --store redis://:PASSWORD@…, or TIDEGATE_STORE";
        let ready = store.ready().await.unwrap_err();
        assert!(ready.to_string().ends_with(remedy), "{ready}");
        let _: () = redis::cmd("CONFIG").arg(&["SET", "requirepass", ""]).query(&mut connected).unwrap();
        until_ready(&store).await;
        take(&store, "k", 1).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_full_server_refuses_the_batch_whole() {
    for binary in binaries() {
        let server = Server::start(&binary);
        let store = server.ready_store(PATIENT).await;
        let _: () = server.command(&["CONFIG", "SET", "maxmemory", "1"]);
        let error = take(&store, "k", 3).await.unwrap_err();
        assert!(matches!(error, StoreError::Refused { refusal: Refusal::OutOfMemory, .. }), "{error:?}");
        let _: () = server.command(&["CONFIG", "SET", "maxmemory", "0"]);
        assert_eq!(take(&store, "k", 1).await, Ok(9_999));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_key_of_another_type_fails_its_take_and_no_other() {
    for binary in binaries() {
        let server = Server::start(&binary);
        let store = server.ready_store(PATIENT).await;
        let _: () = server.command(&["RPUSH", "rl:{list}:p", "x"]);
        let quota = limiter::quota::TokenBucket::new(5, "1/h".parse().unwrap()).unwrap();
        let charges = |key: &str| {
            let limit = Limit::TokenBucket(quota);
            vec![Charge {
                key: format!("rl:{{{key}}}:p"),
                limit,
                cost: 1,
                shadow: false,
                lease: None,
                report: None,
            }]
        };
        let takes = ["good", "list", "good"].map(|key| Take { charges: charges(key) }).into();
        let answer = store.run(take::call(&TakeRequest { takes })).await.unwrap();
        assert_eq!(answer[6..14], [-1, 0, 0, 0, 0, 0, 1, 3]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn leases_come_and_go_and_a_full_bucket_is_no_key() {
    for binary in binaries() {
        let server = Server::start(&binary);
        let store = server.ready_store(PATIENT).await;
        let lease = |id, want, returns| {
            let mut request = request("k", 0, 1);
            let ask = LeaseAsk { holder: "a".to_owned(), id, want, ttl_us: 60_000_000, returns };
            request.takes[0].charges[0].lease = Some(ask);
            take::call(&request)
        };
        let give_back = || vec![Return { id: 1, tokens: 400 }];
        let charged = |answer: Vec<i64>| (answer[1], answer[4]);
        assert_eq!(charged(store.run(lease(1, 400, vec![])).await.unwrap()), (9_600, 400));
        assert_eq!(charged(store.run(lease(1, 400, vec![])).await.unwrap()), (9_600, 0));
        assert_eq!(charged(store.run(lease(2, 500, give_back())).await.unwrap()), (9_500, 500));
        assert_eq!(charged(store.run(lease(3, 0, give_back())).await.unwrap()), (9_500, 0));
        let give_rest_back = vec![Return { id: 2, tokens: 500 }];
        assert_eq!(charged(store.run(lease(4, 0, give_rest_back)).await.unwrap()), (10_000, 0));
        assert_eq!(server.command::<i64>(&["DBSIZE"]), 0, "a full bucket is the absence of its key");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_report_that_comes_twice_counts_once_and_its_holder_outlives_the_full_bucket() {
    for binary in binaries() {
        let server = Server::start(&binary);
        let store = server.ready_store(PATIENT).await;
        let report = |holder: &str, from, to| {
            let mut request = request("k", 0, 1);
            let report = Report { holder: holder.to_owned(), from, to, ttl_us: 60_000_000 };
            request.takes[0].charges[0].report = Some(report);
            take::call(&request)
        };
        let charged = |answer: Vec<i64>| (answer[1], answer[5]);
        let last = limiter::wire::MAX_LEASE_ID;
        assert_eq!(charged(store.run(report("a", last, last)).await.unwrap()), (10_000, 1));
        let kept: String = server.command(&["GET", "rl:{k}:p"]);
        assert!(kept.starts_with("0 ") && kept.contains(" a:9007199254740991:0:"), "{kept}");
        let left_ms: u64 = server.command(&["PTTL", "rl:{k}:p"]);
        assert!((1..=60_001).contains(&left_ms), "{left_ms}");
        assert_eq!(charged(store.run(report("b", 0, 400)).await.unwrap()), (9_600, 2));
        assert_eq!(charged(store.run(report("b", 0, 400)).await.unwrap()), (9_600, 2));
        assert_eq!(charged(store.run(report("b", 300, 500)).await.unwrap()), (9_500, 2));
        assert_eq!(charged(store.run(report("a", 0, last)).await.unwrap()), (9_500, 2));
        assert_eq!(charged(store.run(report("c", 0, last)).await.unwrap()), (0, 3));
        let kept: String = server.command(&["GET", "rl:{k}:p"]);
        assert!(kept.starts_with("4503599627370496 "), "{kept}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn readiness_is_found_out_by_the_script_and_not_by_a_sign_of_life() {
    for binary in binaries() {
        let server = Server::start(&binary);
        let store = server.ready_store(PATIENT).await;
        let _: () = server.command(&["SCRIPT", "FLUSH"]);
        tokio::time::sleep(Duration::from_millis(150)).await;
        server.calls();
        store.ready().await.unwrap();
        let calls = server.calls();
        assert_eq!((calls["evalsha"], calls["eval"], calls.get("ping")), (1, 1, None), "{calls:?}");
        // What a decision shows need not be asked.
        take(&store, "k", 1).await.unwrap();
        server.calls();
        store.ready().await.unwrap();
        assert_eq!(server.calls().get("evalsha"), None);
    }
}

/// The error that readiness ends in, the connection's beginning aside.
async fn not_ready(store: &Store) -> StoreError {
    loop {
        match store.ready().await {
            Err(StoreError::Unreachable { .. }) => tokio::time::sleep(Duration::from_millis(1)).await,
            answer => return answer.unwrap_err(),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_user_who_may_not_run_the_script_is_not_ready() {
    for binary in binaries() {
        let server = Server::start(&binary);
        for rules in [
            ["~rl:*", "+ping", "+get", "+set", "+del", "+time"].as_slice(),
            &["~rl:*", "+ping", "+get", "+set", "+del", "+eval", "+evalsha"],
        ] {
            let error = not_ready(&server.store_of(rules)).await;
            assert_eq!(error.kind(), "forbidden", "{rules:?}: {error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn after_a_refused_write_the_store_is_not_ready_for_a_second() {
    for binary in binaries() {
        let server = Server::start(&binary);
        let store = server.store_of(&["~rl:*", "+ping", "+get", "+del", "+time", "+eval", "+evalsha"]);
        until_ready(&store).await;
        let error = take(&store, "k", 1).await.unwrap_err();
        assert_eq!(error.kind(), "forbidden", "{error}");
        assert_eq!(store.ready().await, Err(error));
        let _: () = server.command(&["CONFIG", "SET", "maxmemory", "1"]);
        let store = server.store(PATIENT);
        until_ready(&store).await;
        let error = take(&store, "k", 1).await.unwrap_err();
        assert_eq!(error.kind(), "out_of_memory", "{error}");
        assert_eq!(store.ready().await, Err(error));
        until_ready(&store).await;
    }
}
