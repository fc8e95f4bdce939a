//! What an admitted request costs in calls from the filter to Envoy. A call that returns a value costs
//! several times as much as another: Envoy calls back into the module for the memory.
//!
//! ARCHITECTURE.md has the table that this test prints.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use harness::{Companion, Envoy, plugin, until};
use serde_json::{Value, json};

const MODES: [&str; 3] = ["local", "exact", "both"];

/// The calls of one request, by callback, function and whether a value is returned, in each of the modes.
#[rustfmt::skip]
const TABLE: [(&str, &str, bool, [u32; MODES.len()]); 18] = [
    ("proxy_on_request_headers",    "clock_time_get",                     false, [1, 1, 1]),
    ("proxy_on_request_headers",    "proxy_get_property",                 true,  [1, 1, 2]),
    // A request that waits keeps what it has taken, so that it can go back.
    ("proxy_on_request_headers",    "proxy_get_shared_data",              true,  [1, 0, 2]),
    ("proxy_on_request_headers",    "proxy_set_shared_data",              false, [1, 0, 2]),
    ("proxy_on_request_headers",    "proxy_set_effective_context",        false, [0, 1, 1]),
    ("proxy_on_request_headers",    "proxy_http_call",                    false, [0, 1, 1]),
    ("proxy_on_request_headers",    "proxy_increment_metric",             false, [1, 2, 2]),
    // Where no request waited when the last tick came.
    ("proxy_on_request_headers",    "proxy_set_tick_period_milliseconds", false, [0, 1, 1]),
    // One of the two is the SDK's.
    ("proxy_on_http_call_response", "proxy_set_effective_context",        false, [0, 2, 2]),
    ("proxy_on_http_call_response", "proxy_get_header_map_value",         true,  [0, 2, 2]),
    ("proxy_on_http_call_response", "proxy_get_buffer_bytes",             true,  [0, 1, 1]),
    ("proxy_on_http_call_response", "clock_time_get",                     false, [0, 1, 1]),
    ("proxy_on_http_call_response", "proxy_get_shared_data",              true,  [0, 0, 1]),
    ("proxy_on_http_call_response", "proxy_set_shared_data",              false, [0, 0, 1]),
    ("proxy_on_http_call_response", "proxy_increment_metric",             false, [0, 1, 2]),
    ("proxy_on_http_call_response", "proxy_continue_stream",              false, [0, 1, 1]),
    ("proxy_on_response_headers",   "proxy_get_header_map_value",         false, [3, 3, 3]),
    ("proxy_on_response_headers",   "proxy_replace_header_map_value",     false, [2, 2, 2]),
];

/// All calls, and those among them that return a value.
const TOTALS: [(u32, u32); MODES.len()] = [(10, 2), (20, 4), (28, 8)];

/// By callback, function and whether a value is returned.
type Calls = BTreeMap<(String, String, bool), u32>;

fn policies(mode: &str) -> Value {
    let policy = |name: &str, key: Value| {
        json!({
            "name": name,
            "key": [key],
            "limit": { "token_bucket": { "capacity": 1000, "rate": "1/d" } },
            "sync": name,
        })
    };
    let (local, exact) = (policy("local", json!("ip")), policy("exact", json!({ "header": "x-api-key" })));
    match mode {
        "local" => json!([local]),
        "exact" => json!([exact]),
        _ => json!([local, exact]),
    }
}

async fn start(companion: &Companion, mode: &str) -> Envoy {
    let builder = Envoy::builder().filter(&plugin(policies(mode))).companion(companion.addr());
    builder.trace_host_calls().start().await
}

/// Sends a request and returns what passed between Envoy and the module from the request's context to its
/// end, once no tick is due any more.
async fn trace(envoy: &Envoy) -> Vec<String> {
    trace_until(envoy, true).await
}

async fn trace_until(envoy: &Envoy, ticks_end: bool) -> Vec<String> {
    let before = envoy.log().len();
    let answer = envoy.send("GET", "/", &[("x-api-key", "k")]).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    until("the end of the request and of the ticks", Duration::from_secs(10), async || {
        let log = envoy.log();
        let lines: Vec<String> = log[before..].lines().filter_map(crossing).collect();
        let ended = lines.iter().any(|line| line.starts_with("[host<-vm] proxy_on_delete "));
        let mut periods =
            lines.iter().filter_map(|line| line.split_once("proxy_set_tick_period_milliseconds("));
        let ticks = periods.next_back().is_some_and(|(_, period)| period != "0)");
        (ended && !(ticks && ticks_end)).then_some(lines)
    })
    .await
}

/// `[vm->host] env.proxy_x(1, 2)` and the like, of a line of Envoy's log.
fn crossing(line: &str) -> Option<String> {
    let start = ["[vm->host] ", "[vm<-host] ", "[host->vm] ", "[host<-vm] "].map(|arrow| line.find(arrow));
    Some(line[start.into_iter().flatten().min()?..].to_owned())
}

/// Counts the calls of all callbacks but the ticks, which come by the clock.
fn count(trace: &[String]) -> Calls {
    let name = |line: &str| line.split(['(', ' ']).next().unwrap_or_default().to_owned();
    let (mut calls, mut callback, mut current) = (Calls::new(), String::new(), None);
    for line in trace {
        if let Some(call) = line.strip_prefix("[vm->host] ") {
            let (_, function) = call.split_once('.').expect("a host function has a module");
            current = Some((name(function), false));
        } else if line.starts_with("[host->vm] proxy_on_memory_allocate(") {
            current = current.map(|(function, _)| (function, true));
        } else if let Some(called) = line.strip_prefix("[host->vm] ") {
            callback = name(called);
        } else if line.starts_with("[vm<-host] ")
            && callback != "proxy_on_tick"
            && let Some((function, returns)) = current.take()
        {
            *calls.entry((callback.clone(), function, returns)).or_insert(0) += 1;
        }
    }
    calls
}

fn totals(calls: &Calls) -> (u32, u32) {
    let returning = calls.iter().filter(|((_, _, returns), _)| *returns);
    (calls.values().sum(), returning.map(|(_, count)| count).sum())
}

/// The table as it stands in ARCHITECTURE.md; calls that nobody expects come last.
fn markdown(measured: &[Calls; MODES.len()]) -> String {
    let mut rows: Vec<_> =
        TABLE.iter().map(|(callback, function, returns, _)| key(callback, function, *returns)).collect();
    for row in measured.iter().flat_map(BTreeMap::keys) {
        if !rows.contains(row) {
            rows.push(row.clone());
        }
    }
    let mut table = "| in | host call | local | exact | both |\n|---|---|---|---|---|\n".to_owned();
    let mut push = |name: &str, call: &str, [local, exact, both]: [u32; MODES.len()]| {
        writeln!(table, "| {name} | {call} | {local} | {exact} | {both} |").expect("a string takes all");
    };
    for row in rows {
        let counts = measured.each_ref().map(|calls| calls.get(&row).copied().unwrap_or(0));
        let (callback, function, returns) = row;
        let value = if returns { ", returns a value" } else { "" };
        push(&format!("`{callback}`"), &format!("`{function}`{value}"), counts);
    }
    push("all", "", measured.each_ref().map(|calls| totals(calls).0));
    push("", "return a value", measured.each_ref().map(|calls| totals(calls).1));
    table
}

fn key(callback: &str, function: &str, returns: bool) -> (String, String, bool) {
    (callback.to_owned(), function.to_owned(), returns)
}

#[tokio::test]
async fn an_admitted_request_makes_no_other_host_calls_than_these() {
    let companion = Companion::builder("memory").store_timeout("5s").start().await;
    let mut measured: [Calls; MODES.len()] = Default::default();
    for (mode, calls) in MODES.iter().zip(&mut measured) {
        let envoy = start(&companion, mode).await;
        // The first request of a client writes a new slot, and the first of a worker opens its connection.
        for _ in 0..3 {
            trace(&envoy).await;
        }
        *calls = count(&trace(&envoy).await);
    }
    println!("{}", markdown(&measured));
    for (index, (mode, calls)) in MODES.iter().zip(&measured).enumerate() {
        let expected = TABLE.iter().filter(|(_, _, _, counts)| counts[index] > 0);
        let expected: Calls = expected
            .map(|(callback, function, returns, counts)| (key(callback, function, *returns), counts[index]))
            .collect();
        assert_eq!(*calls, expected, "{mode}");
        assert_eq!(totals(calls), TOTALS[index], "{mode}");
    }
}

/// What Envoy calls for a request: these four, and nothing for bodies, trailers and the access log.
const CALLBACKS: [&str; 4] =
    ["proxy_on_context_create", "proxy_on_request_headers", "proxy_on_response_headers", "proxy_on_delete"];

#[tokio::test]
async fn envoy_calls_only_the_callbacks_that_have_something_to_do() {
    let companion = Companion::builder("memory").store_timeout("5s").start().await;
    let envoy = start(&companion, "local").await;
    let is_callback = |call: &String| !call.starts_with("proxy_on_memory_allocate(");
    let calls = trace(&envoy).await;
    let calls = calls.iter().filter_map(|line| Some(line.strip_prefix("[host->vm] ")?.to_owned()));
    let called: Vec<String> = calls.filter(is_callback).collect();
    println!("{called:?}");
    let names: Vec<&str> = called.iter().filter_map(|call| call.split('(').next()).collect();
    assert_eq!(names, CALLBACKS);
}

/// The calls of a request that a worker decides from its own slice of a lease.
#[rustfmt::skip]
const SLICE_HIT: [(&str, &str, bool, u32); 5] = [
    ("proxy_on_request_headers",    "clock_time_get",                 false, 1),
    ("proxy_on_request_headers",    "proxy_get_property",             true,  1),
    ("proxy_on_request_headers",    "proxy_increment_metric",         false, 1),
    ("proxy_on_response_headers",   "proxy_get_header_map_value",     false, 3),
    ("proxy_on_response_headers",   "proxy_replace_header_map_value", false, 2),
];

#[tokio::test]
async fn a_slice_hit_makes_no_call_for_shared_data_and_none_to_the_companion() {
    const ATTEMPTS: usize = 20;
    let companion = Companion::builder("memory").store_timeout("5s").start().await;
    let policies = json!([{
        "name": "lease",
        "key": [{ "header": "x-api-key" }],
        "limit": { "token_bucket": { "capacity": 1_000_000, "rate": "1000000/h" } },
    }]);
    let builder = Envoy::builder().filter(&plugin(policies)).companion(companion.addr());
    let envoy = builder.trace_host_calls().start().await;
    let expected: Calls = SLICE_HIT
        .iter()
        .map(|(callback, function, returns, count)| (key(callback, function, *returns), *count))
        .collect();
    let mut measured = Vec::new();
    for attempt in 1..=ATTEMPTS {
        // A worker draws more than it needs at once only for a key that is hot.
        envoy.get_at_once("/", &[("x-api-key", "k")], 100).await;
        let calls = count(&trace_until(&envoy, false).await);
        if calls == expected {
            println!("request {attempt} was a slice hit, with {:?} calls", totals(&expected));
            return;
        }
        measured.push(calls);
    }
    panic!("none of {ATTEMPTS} requests was a slice hit: {measured:?}");
}

/// Requests of one burst.
const AT_ONCE: usize = 1_000;

/// Bursts before anything is counted.
const WARM_UP: usize = 6;

/// Operations on shared data of many requests on one hot key.
async fn shared_data_operations(companion: &Companion, sync: &str, requests: usize) -> usize {
    let policies = json!([{
        "name": "p",
        "key": [{ "header": "x-api-key" }],
        "limit": { "token_bucket": { "capacity": 1_000_000, "rate": "1000000/h" } },
        "sync": sync,
    }]);
    let builder = Envoy::builder().filter(&plugin(policies)).companion(companion.addr()).workers(2);
    let envoy = builder.trace_host_calls().start().await;
    // Leases grow by doubling, so it takes a while until they are as large as the demand.
    for _ in 0..WARM_UP {
        envoy.get_at_once("/", &[("x-api-key", "k")], AT_ONCE).await;
    }
    let before = envoy.log().len();
    for _ in 0..requests / AT_ONCE {
        envoy.get_at_once("/", &[("x-api-key", "k")], AT_ONCE).await;
    }
    let log = envoy.log();
    let is_operation = |line: &&str| {
        line.contains("[vm->host] env.proxy_get_shared_data(")
            || line.contains("[vm->host] env.proxy_set_shared_data(")
    };
    log[before..].lines().filter(is_operation).count()
}

#[tokio::test]
async fn slices_cut_the_operations_on_shared_data_by_more_than_ten() {
    const REQUESTS: usize = 4_000;
    let companion = Companion::builder("memory").store_timeout("5s").start().await;
    let local = shared_data_operations(&companion, "local", REQUESTS).await;
    let lease = shared_data_operations(&companion, "lease", REQUESTS).await;
    println!("{REQUESTS} requests on two workers: {local} operations with local, {lease} with lease");
    assert!(local >= 2 * REQUESTS);
    assert!(lease * 10 <= local);
}

#[tokio::test]
async fn an_idle_proxy_makes_no_host_calls() {
    const IDLE: Duration = Duration::from_millis(200);
    let companion = Companion::builder("memory").store_timeout("5s").start().await;
    let envoy = start(&companion, "exact").await;
    trace(&envoy).await;
    let before = envoy.log().len();
    // That nothing happens cannot be polled for; this is long for ticks of ten milliseconds.
    tokio::time::sleep(IDLE).await;
    let lines: Vec<String> = envoy.log()[before..].lines().filter_map(crossing).collect();
    println!("{} crossings within {IDLE:?} after a request", lines.len());
    assert_eq!(lines, [""; 0]);
}
