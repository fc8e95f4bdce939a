//! Two hundred reloads: what each leaves behind is nothing.

use std::time::Duration;

use harness::{Companion, Delivery, Envoy, Memory, Module, flood, until};
use serde_json::{Value, json};

const RELOADS: u64 = 200;

/// After so many reloads all that is made once has been made.
const WARM: u64 = 50;

/// Clients between two reloads, none of whom comes again.
const CLIENTS: u32 = 100;

/// Clients of each policy before the first reload: they fill the slots of the table.
const FILL: u32 = 30_000;

/// What the filter may grow by beyond what Envoy grows by with one that does nothing: noise of
/// allocators, and less than one more table or VM.
const BESIDES: u64 = 4 << 20;

/// How long replaced configurations may live on.
const DRAINED: Duration = Duration::from_secs(20);

/// Local buckets and leases, under a limit that is another one in each reload.
fn config(reload: u64) -> Value {
    let policy = |sync: &str| {
        json!({
            "name": sync,
            "match": { "path": { "exact": format!("/{sync}") } },
            "key": [{ "header": "x-api-key" }],
            "limit": { "token_bucket": { "capacity": 100 + reload, "rate": "1/d" } },
            "sync": sync,
        })
    };
    json!({
        "companion": { "cluster": "tidegate", "timeout": "2s" },
        "policies": [policy("local"), policy("lease")],
    })
}

/// What an Envoy has at a moment.
#[derive(Debug)]
struct Standing {
    memory: Memory,
    vms: u64,
    stats: usize,
}

/// Waits until the configurations that were replaced are gone.
async fn standing(envoy: &Envoy) -> Standing {
    until("what was replaced to be gone", DRAINED, async || {
        let draining =
            ["listener_manager.total_filter_chains_draining", "listener_manager.total_listeners_draining"];
        let stats = envoy.stats().await;
        let is_draining = |(name, value): &(String, u64)| draining.contains(&name.as_str()) && *value > 0;
        (!stats.iter().any(is_draining)).then_some(())
    })
    .await;
    let memory = envoy.memory().await;
    Standing {
        memory,
        vms: envoy.counter("wasm.envoy.wasm.runtime.v8.active").await,
        stats: envoy.stats().await.len(),
    }
}

/// Reloads so often, with a few clients each time, and returns how all stood when warm and at the end.
async fn reload_all(module: Module, delivery: Delivery, companion: &Companion) -> [Standing; 2] {
    let builder = Envoy::builder().module(module).filter(&config(0)).companion(companion.addr());
    let mut envoy = builder.delivery(delivery).workers(2).without_access_log().start().await;
    let request = |path: &'static str, reload: u64| {
        move |client: u32| format!("GET {path} HTTP/1.1\r\nhost: a\r\nx-api-key: {reload}-{client}\r\n\r\n")
    };
    for path in ["/local", "/lease"] {
        flood(envoy.addr(), 32, FILL, request(path, 0)).await;
    }
    let mut warm = None;
    for reload in 1..=RELOADS {
        envoy.reload(&config(reload)).await;
        for path in ["/local", "/lease"] {
            let flooded = flood(envoy.addr(), 4, CLIENTS, request(path, reload)).await;
            assert_eq!(flooded.statuses.get(&200), Some(&u64::from(CLIENTS)), "{flooded:?}");
        }
        if reload == WARM {
            warm = Some(standing(&envoy).await);
        }
    }
    let end = standing(&envoy).await;
    envoy.assert_no_vm_crash().await;
    [warm.expect("there are more reloads than it takes to be warm"), end]
}

/// How much more there is at the end than when warm.
fn growth([warm, end]: &[Standing; 2]) -> (u64, u64) {
    let by = |what: fn(&Memory) -> u64| what(&end.memory).saturating_sub(what(&warm.memory));
    (by(|memory| memory.resident), by(|memory| memory.allocated))
}

async fn assert_steady(delivery: Delivery) {
    let companion = Companion::builder("memory").store_timeout("1s").start().await;
    let noop = reload_all(Module::Noop, delivery, &companion).await;
    let filter = reload_all(Module::Shipped, delivery, &companion).await;
    let (envoys_own, ours) = (growth(&noop), growth(&filter));
    println!("{delivery:?}, {WARM} → {RELOADS} reloads, by resident and allocated bytes:");
    println!("a filter that does nothing: {noop:?}, by {envoys_own:?}");
    println!("this filter: {filter:?}, by {ours:?}");
    assert!(ours.0 <= envoys_own.0 + BESIDES, "resident");
    assert!(ours.1 <= envoys_own.1 + BESIDES, "allocated");
    let [warm, end] = &filter;
    assert_eq!((end.vms, end.stats), (warm.vms, warm.stats), "VMs and metrics");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_reloads_of_the_listener_leave_memory_steady() {
    assert_steady(Delivery::Listener).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_reloads_of_the_filter_alone_leave_memory_steady() {
    assert_steady(Delivery::Extension).await;
}

#[tokio::test]
async fn a_reload_ends_the_configuration_before_and_defines_no_metric_again() {
    const SOON: Duration = Duration::from_secs(10);
    /// Those of the main thread and of the worker, which stay.
    const VMS: usize = 2;
    const DEFINES: &str = "[vm->host] env.proxy_define_metric(";
    let companion = Companion::builder("memory").store_timeout("1s").start().await;
    let builder = Envoy::builder().filter(&config(0)).companion(companion.addr());
    let mut envoy = builder.delivery(Delivery::Extension).trace_host_calls().start().await;
    let count = |envoy: &Envoy, from: usize, what: &str| envoy.log()[from..].matches(what).count();
    // Each configuration is tried first in a VM that Envoy throws away.
    until("the first configuration in each VM", SOON, async || {
        (count(&envoy, 0, "[host<-vm] proxy_on_configure ") == VMS + 1).then_some(())
    })
    .await;
    let by_a_vm = count(&envoy, 0, DEFINES) / (VMS + 1);
    let mut defined = Vec::new();
    for reload in 1..=3 {
        let before = envoy.log().len();
        envoy.reload(&config(reload)).await;
        until("the configuration before to end in each VM", SOON, async || {
            (count(&envoy, before, "[host->vm] proxy_on_delete(") == VMS).then_some(())
        })
        .await;
        assert_eq!(count(&envoy, before, "[host->vm] proxy_on_configure("), VMS + 1);
        defined.push(count(&envoy, before, DEFINES));
    }
    println!("metrics defined by a VM: {by_a_vm}, in three reloads: {defined:?}");
    assert!(by_a_vm > 0);
    // By the VM that is thrown away, and by none that has them.
    assert_eq!(defined, [by_a_vm; 3]);
}
