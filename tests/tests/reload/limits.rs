//! The policies of these tests, and what the store knows of their clients.

use std::time::Duration;

use harness::{Answer, Envoy, Store, until};
use serde_json::{Value, json};

/// Each way to count, which is also the name and the path of a policy.
pub(crate) const SYNCS: [&str; 3] = ["local", "lease", "exact"];

/// The limit of the policies `busy-…`, which no reload changes and which a load exceeds.
pub(crate) const BUSY_CAPACITY: f64 = 50.0;
pub(crate) const BUSY_PER_SECOND: f64 = 20.0;

/// How long a lease of the busy limit lasts, as `docs/policies.md` states it.
pub(crate) const BUSY_TTL_S: f64 = 0.2;

/// How long a request waits for the companion.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);

/// How long a lease of the limit `kept` lasts at most.
const KEPT_TTL_US: u64 = 10_000_000;

/// Longer than Envoy's workers take to take over a configuration that it has accepted.
const SOON: Duration = Duration::from_secs(10);

/// For each sync a policy that allows `capacity` at the path `/SYNC`, one at `/busy-SYNC` that is always the same,
/// and one at `/kept` of leases that nobody comes near.
pub(crate) fn config(capacity: u64) -> Value {
    let policy = |name: &str, sync: &str, capacity: u64, rate: &str| {
        let mut policy = json!({
            "name": name,
            "match": { "path": { "exact": format!("/{name}") } },
            "key": [{ "header": "x-api-key" }],
            "limit": { "token_bucket": { "capacity": capacity, "rate": rate } },
            "sync": sync,
        });
        if sync != "local" {
            policy["on_failure"] = json!({ "closed": { "retry_after": "5s" } });
        }
        policy
    };
    // A token a day: nothing comes back while a test runs.
    let mut policies: Vec<Value> = SYNCS.iter().map(|sync| policy(sync, sync, capacity, "1/d")).collect();
    policies.extend(SYNCS.map(|sync| policy(&format!("busy-{sync}"), sync, 50, "20/s")));
    policies.push(policy("kept", "lease", 50_000, "1/d"));
    json!({ "companion": { "cluster": "tidegate", "timeout": format!("{}s", TIMEOUT.as_secs()) }, "policies": policies })
}

/// New connections in a row whose requests must be decided before all workers are taken to do so: a connection
/// falls to one of them by chance.
const IN_A_ROW: usize = 10;

/// Reloads and waits until requests of new connections are decided by the new capacity.
pub(crate) async fn reload(envoy: &mut Envoy, capacity: u64) {
    envoy.reload(&config(capacity)).await;
    until_decided(envoy, capacity).await;
}

/// Waits until requests of new connections are decided by this capacity, whichever worker they fall to.
pub(crate) async fn until_decided(envoy: &Envoy, capacity: u64) {
    let field = format!("\"local\";q={capacity};");
    let mut in_a_row = 0;
    until("all workers to decide by the configuration", SOON, async || {
        let answer = on_a_new_connection(envoy, "/local", "probe").await;
        let is_decided = answer.header("ratelimit-policy").is_some_and(|policy| policy.starts_with(&field));
        in_a_row = if is_decided { in_a_row + 1 } else { 0 };
        (in_a_row == IN_A_ROW).then_some(())
    })
    .await;
}

/// Gets a path as a client that has no connection yet.
pub(crate) async fn on_a_new_connection(envoy: &Envoy, path: &str, key: &str) -> Answer {
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\nconnection: close\r\n\r\n");
    envoy.send_raw(request.as_bytes()).await
}

/// Waits until no lease of the client of `/kept` can be given back any more, and returns its whole tokens that
/// are spent in the store.
pub(crate) async fn spent_when_settled(store: &Store, key: &str) -> u64 {
    until("all leases to end", Duration::from_secs(20), async || {
        let time = store.command(&["TIME"]).await;
        let harness::Reply::Array(time) = time else { panic!("{time:?} is no time") };
        let now_us = u64::try_from(time[0].int() * 1_000_000 + time[1].int()).expect("after 1970");
        let state = store.command(&["GET", &format!("rl:{{{key}}}:kept")]).await.text();
        let mut words = state.split(' ');
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
        let (Some(spent), Some(of_a_token)) = (number(), number()) else { panic!("{state:?} is no state") };
        let mut granted = state.split(' ').filter_map(|word| word.split(':').nth(3)?.parse::<u64>().ok());
        granted.all(|granted_us| granted_us + KEPT_TTL_US < now_us).then_some(spent.div_ceil(of_a_token))
    })
    .await
}
