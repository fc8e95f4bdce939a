//! A million clients: what one proxy keeps of them has a size that is known beforehand, and those whom it
//! knew before are not forgiven.

use std::collections::BTreeMap;
use std::time::Duration;

use harness::{Answer, Companion, Envoy, Memory, Store, StoreKind, flood, plugin, until};
use serde_json::{Value, json};

const IDENTITIES: u32 = 1_000_000;
const CONNECTIONS: u32 = 128;
const CAPACITY: u64 = 100;

/// What the known client has spent before the flood.
const SPENT: u64 = 60;

/// What Envoy may need for itself beyond the table: buffers, and what its allocator keeps.
const BESIDES: u64 = 16 << 20;

const POLICIES: [&str; 2] = ["local", "lease"];

/// A token a day: nothing comes back while the test runs.
fn policy(sync: &str) -> Value {
    json!({
        "name": sync,
        "key": [{ "header": "x-api-key" }],
        "limit": { "token_bucket": { "capacity": CAPACITY, "rate": "1/d" } },
        "sync": sync,
    })
}

fn request(key: &str) -> String {
    format!("GET / HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\n\r\n")
}

async fn known(envoy: &Envoy) -> Answer {
    envoy.send("GET", "/", &[("x-api-key", "known")]).await
}

/// The bytes of shared data that the filter has said at load to take at most.
fn stated_bytes(envoy: &Envoy) -> u64 {
    let log = envoy.log();
    let stated = log.lines().filter(|line| line.contains("tidegate: ")).find_map(|line| {
        let (before, _) = line.split_once(" bytes")?;
        before.rsplit(' ').next()?.parse().ok()
    });
    stated.unwrap_or_else(|| panic!("the filter does not say what its table takes:\n{log}"))
}

/// Waits until the store has back what was leased for the known client and not spent.
async fn until_given_back(store: &Store) {
    until("the known client's lease to be given back", Duration::from_secs(20), async || {
        let state = store.command(&["GET", "rl:{known}:lease"]).await.text();
        let mut numbers = state.split(' ').map_while(|number| number.parse::<u64>().ok());
        let (spent, of_a_token) = (numbers.next()?, numbers.next()?);
        // What goes back is credited less what time has refilled meanwhile: a fraction of a token.
        (spent < (SPENT + 1) * of_a_token).then_some(())
    })
    .await;
}

fn growth(before: Memory, after: Memory) -> (u64, u64) {
    (after.resident.saturating_sub(before.resident), after.allocated.saturating_sub(before.allocated))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_million_identities_take_the_stated_memory_and_forgive_nobody() {
    let store = Store::start(StoreKind::Valkey).await;
    let companion = Companion::builder(&store.url()).store_timeout("5s").start().await;
    let builder = Envoy::builder().filter(&plugin(json!(POLICIES.map(policy)))).companion(companion.addr());
    let envoy = builder.workers(2).without_access_log().start().await;
    let stated = stated_bytes(&envoy);

    for _ in 0..SPENT {
        assert_eq!(known(&envoy).await.status, 200);
    }
    until_given_back(&store).await;
    // The same load of one client that is soon refused: what Envoy needs for it by itself.
    flood(envoy.addr(), CONNECTIONS, 50_000, |_| request("warm-up")).await;
    let before = envoy.memory().await;

    let flooded =
        flood(envoy.addr(), CONNECTIONS, IDENTITIES, |number| request(&format!("id-{number}"))).await;
    let after = envoy.memory().await;
    let (resident, allocated) = growth(before, after);
    println!("{IDENTITIES} identities in {:?}: {:?}", flooded.took, flooded.statuses);
    println!("resident {} → {} bytes, by {resident}", before.resident, after.resident);
    println!("allocated {} → {} bytes, by {allocated}", before.allocated, after.allocated);
    println!("stated for the table: {stated} bytes; {BESIDES} besides");
    // Each is new, so each is admitted, and none because the store was not asked.
    assert_eq!(flooded.statuses, BTreeMap::from([(200, u64::from(IDENTITIES))]));
    for name in POLICIES {
        let unprotected = envoy.counter(&format!("wasmcustom.tidegate.policy.{name}.unprotected")).await;
        assert_eq!(unprotected, 0, "{name}");
    }
    assert!(resident <= stated + BESIDES);
    assert!(allocated <= stated + BESIDES);

    let answer = known(&envoy).await;
    let evictions = envoy.counter("wasmcustom.tidegate.evictions").await;
    println!("{:?} after {SPENT} of {CAPACITY}; {evictions} evictions", answer.header("ratelimit"));
    let left = CAPACITY - SPENT - 1;
    assert_eq!(answer.remaining("local"), Some(left));
    // The lease that was given back may have cost the fraction of a token that is not whole again yet.
    let leased = answer.remaining("lease").expect("the policy applies");
    assert!(leased == left || leased == left - 1, "{leased} of {left}");
    // The table was too small for all, or the test shows nothing.
    assert!(evictions > u64::from(IDENTITIES) / 2);
    envoy.assert_no_vm_crash().await;
}
