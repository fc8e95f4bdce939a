//! One outage: a load from before it to after it, and what must be true of its answers.
#![expect(clippy::cast_precision_loss, reason = "counts of a test are small")]

use std::time::{Duration, Instant};

use harness::{Companion, Envoy, Overhead, Shot, Store, StoreKind, fullest_span, load, slowest_shot_s};
use serde_json::{Value, json};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use crate::counts::{Counted, Outcome, count, counter, longest, print, within};

const CLIENTS: usize = 4;
/// Four times what the limit admits in the long run.
const PER_SECOND_A_CLIENT: u32 = 40;
/// So many that the load is the same where each request waits for the store's timeout.
const CONNECTIONS_A_CLIENT: u32 = 10;

pub(crate) const CAPACITY: f64 = 20.0;
pub(crate) const REFILL_PER_SECOND: f64 = 10.0;
/// How long a lease of this limit lasts, as `docs/policies.md` states it.
const TTL_S: f64 = 0.2;
/// How often it is reported under `async`, likewise.
pub(crate) const INTERVAL_S: f64 = 0.1;

const BEFORE: Duration = Duration::from_secs(5);
pub(crate) const AWAY_S: f64 = 10.0;
const AWAY: Duration = Duration::from_secs(10);
const AFTER: Duration = Duration::from_secs(5);

/// How long a request waits for the companion, and the companion for its store: long beside what a busy machine
/// takes by itself.
const TIMEOUT: Duration = Duration::from_millis(400);
pub(crate) const TIMEOUT_S: f64 = 0.4;
const STORE_TIMEOUT: &str = "200ms";

/// A tick, and what timers add.
const MARGIN: Duration = Duration::from_millis(60);

/// How soon a lease has been spent or has ended, and a refusal is believed no more.
const SPENT_WITHIN: Duration = Duration::from_millis(1_500);

/// How soon all is as before when the store is back.
const BACK_WITHIN: Duration = Duration::from_secs(1);

/// A way to count and a way to fail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) sync: &'static str,
    /// As JSON.
    pub(crate) on_failure: &'static str,
    /// What becomes of a request that cannot be decided; `None` where all can be without the store.
    pub(crate) failure: Option<Outcome>,
    /// The most that one client is admitted by the limit while the store is away. Where it is something and
    /// there are failures, it is spent within [`SPENT_WITHIN`].
    pub(crate) admitted_while_away: f64,
    /// Tokens that the formula allows beyond that of the limit itself.
    pub(crate) excess: f64,
    /// Envoys, over which each client spreads its requests.
    pub(crate) proxies: usize,
}

/// How the store is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Away {
    /// It holds still, and goes on with all that it knew and was sent.
    Held,
    /// It is killed, and another one starts empty.
    Killed,
}

impl Case {
    fn config(&self) -> Value {
        let on_failure: Value = serde_json::from_str(self.on_failure).expect("JSON");
        json!({
            "companion": { "cluster": "tidegate", "timeout": format!("{}ms", TIMEOUT.as_millis()) },
            "policies": [{
                "name": "p",
                "match": { "path": { "exact": "/limited" } },
                "key": [{ "header": "x-api-key" }],
                "limit": { "token_bucket": { "capacity": 20, "rate": "10/s" } },
                "sync": self.sync,
                "on_failure": on_failure,
            }],
        })
    }
}

/// The load of all clients on all proxies, by client.
fn start_load(envoys: &[Envoy]) -> JoinHandle<Vec<Vec<Shot>>> {
    let addrs: Vec<_> = envoys.iter().map(Envoy::addr).collect();
    let proxies = u32::try_from(addrs.len()).expect("a few");
    tokio::spawn(async move {
        let mut loads = JoinSet::new();
        for (client, addr) in (0..CLIENTS).flat_map(|client| addrs.iter().map(move |addr| (client, *addr))) {
            loads.spawn(async move {
                let key = format!("client-{client}");
                let headers = [("x-api-key", key.as_str())];
                let (connections, rate) = (CONNECTIONS_A_CLIENT, PER_SECOND_A_CLIENT / proxies);
                (client, load(addr, "/limited", &headers, connections, rate, BEFORE + AWAY + AFTER).await)
            });
        }
        let mut by_client = vec![Vec::new(); CLIENTS];
        for (client, shots) in loads.join_all().await {
            by_client[client].extend(shots);
        }
        by_client
    })
}

/// Runs the case, prints what each phase came to, and fails the test where a claim does not hold.
pub(crate) async fn assert_outage(case: Case, away: Away) {
    let what = format!("{} {} {away:?}", case.sync, case.on_failure);
    let mut store = Store::start(StoreKind::Valkey).await;
    let companion = Companion::builder(&store.url()).args(["--store-timeout", STORE_TIMEOUT]).start().await;
    let mut envoys = Vec::new();
    for _ in 0..case.proxies {
        let builder = Envoy::builder().filter(&case.config()).companion(companion.addr()).workers(2);
        envoys.push(builder.start().await);
    }
    let overhead = Overhead::watch(&envoys[0], "/free");

    let (begun, load) = (Instant::now(), start_load(&envoys));
    let at_start = Counted::of(&envoys).await;
    sleep(BEFORE).await;
    let at_going = Counted::of(&envoys).await;
    let going = Instant::now();
    match away {
        Away::Held => store.stop(),
        Away::Killed => store.kill(),
    }
    let gone = Instant::now();
    sleep(AWAY / 2).await;
    let (half, at_half) = (Instant::now(), Counted::of(&envoys).await);
    sleep(AWAY / 2).await;
    let at_return = Counted::of(&envoys).await;
    let returning = Instant::now();
    match away {
        Away::Held => store.cont(),
        Away::Killed => store.restart().await,
    }
    let back = Instant::now();
    let by_client = load.await.expect("the load ends");
    let at_end = Counted::of(&envoys).await;

    let shots: Vec<Shot> = by_client.iter().flatten().copied().collect();
    let settled = back + BACK_WITHIN + overhead.slowest();
    let end = Instant::now();
    print(&format!("{what}, before"), &within(&shots, begun, going), at_start, at_going);
    print(&format!("{what}, away, first half"), &within(&shots, gone, half), at_going, at_half);
    print(&format!("{what}, away, second half"), &within(&shots, half, returning), at_half, at_return);
    print(&format!("{what}, after"), &within(&shots, back, end), at_return, at_end);

    // Before: all is decided.
    let before = within(&shots, begun, going);
    assert!(before.iter().all(|shot| Outcome::of(shot).is_decided()), "{what}, before");

    // Away: what `on_failure` says, at the latest when the leases are spent, and in time.
    let spent_by = if case.admitted_while_away > 0.0 { gone + SPENT_WITHIN } else { gone };
    let outcomes = count(&within(&shots, spent_by, returning));
    match case.failure {
        Some(failure) => assert_eq!(outcomes.keys().collect::<Vec<_>>(), [&failure], "{what}, away"),
        None => assert!(outcomes.keys().all(|outcome| outcome.is_decided()), "{what}, away: {outcomes:?}"),
    }
    for shots in &by_client {
        let admitted = count(&within(shots, gone, returning)).get(&Outcome::Admitted).copied().unwrap_or(0);
        let most = case.admitted_while_away;
        assert!(admitted as f64 <= most, "{what}: {admitted} of {most} while away");
        // A share is there to be used.
        let least = if case.failure.is_none() { REFILL_PER_SECOND * AWAY_S / 2.0 } else { 0.0 };
        assert!(admitted as f64 >= least, "{what}: {admitted} of at least {least} while away");
    }
    // Whoever is to notice that the store is away has noticed by then.
    let (requests, waits) = (within(&shots, half, returning).len(), at_return.waits - at_half.waits);
    assert!(requests > 0 && waits == 0, "{what}: {waits} of {requests} wait though the breaker is open");
    let (took, most) = (longest(&within(&shots, gone, end)), TIMEOUT + MARGIN + overhead.slowest());
    assert!(took <= most, "{what}: {took:?} > {most:?}");

    // After: all is decided, and counted as it should be.
    let after = within(&shots, settled, end);
    let counts = count(&after);
    assert!(after.iter().all(|shot| Outcome::of(shot).is_decided()), "{what}, after: {counts:?}");
    assert!(counts.get(&Outcome::Refused) > Some(&0), "{what}, after: nobody is counted");
    // What was let through meanwhile within the limit is not taken from it again.
    let (admitted, span_s) =
        (counts.get(&Outcome::Admitted).copied().unwrap_or(0), (end - settled).as_secs_f64());
    let least = CLIENTS as f64 * REFILL_PER_SECOND * span_s / 2.0;
    assert!(admitted as f64 >= least, "{what}, after: {admitted} of at least {least:.0}");
    assert_within_the_formula(&what, case, &by_client, away, back);
    assert_counted(&what, &shots, &envoys).await;
}

/// Fails the test where a client was admitted, by the limit, more often than its limit promises. A store that
/// was killed has forgotten what was consumed before.
fn assert_within_the_formula(what: &str, case: Case, by_client: &[Vec<Shot>], away: Away, back: Instant) {
    let mut fullest = 0.0_f64;
    for shots in by_client {
        let decided: Vec<Shot> =
            shots.iter().filter(|shot| Outcome::of(shot) == Outcome::Admitted).copied().collect();
        let bound = case.excess + CAPACITY + REFILL_PER_SECOND * (TTL_S + slowest_shot_s(shots));
        let (first, second): (Vec<Shot>, Vec<Shot>) =
            decided.into_iter().partition(|shot| away == Away::Held || shot.answered_at < back);
        for part in [first, second] {
            let Some(begun) = part.iter().map(|shot| shot.answered_at).min() else { continue };
            let highest = fullest_span(&part, begun, REFILL_PER_SECOND);
            assert!(highest <= bound, "{what}: {highest} of {bound}");
            fullest = fullest.max(highest);
        }
    }
    println!("{what}: the fullest span of a client {fullest:.1} of {:.1}", CAPACITY + case.excess);
}

/// Fails the test unless the metrics say what the clients have seen, and no VM has died.
async fn assert_counted(what: &str, shots: &[Shot], envoys: &[Envoy]) {
    let counts = count(shots);
    for (outcome, name) in Outcome::ALL {
        let counted = counter(envoys, &format!("policy.p.{name}")).await;
        assert_eq!(counted, counts.get(&outcome).copied().unwrap_or(0), "{what}: {name}");
    }
    for envoy in envoys {
        envoy.assert_no_vm_crash().await;
    }
}
