//! A VM dies in the middle of its work, and another takes its place.

use std::time::{Duration, Instant};

use harness::{Companion, Envoy, Module, Overhead, Shot, Store, StoreKind, slowest, until};

use crate::clients::{Busy, Client};
use crate::limits::{config, spent_when_settled, until_decided};

const CAPACITY: u64 = 20;
const CRASHES: usize = 3;
const SPAN: Duration = Duration::from_secs(12);

/// When Envoy gives a silent stream up: what a request hangs for when its VM has died.
const IDLE: Duration = Duration::from_secs(1);

/// Envoy looks at idle streams by timers, of which a busy machine serves several late.
const MARGIN: Duration = Duration::from_millis(50);

async fn start(companion: &Companion, workers: u32) -> Envoy {
    let builder = Envoy::builder().module(Module::CrashTest).filter(&config(CAPACITY));
    builder.companion(companion.addr()).workers(workers).stream_idle_timeout("1s").start().await
}

/// Brings the VM of one worker down, at least, and waits until Envoy has noticed.
async fn crash(envoy: &Envoy) {
    let before = envoy.vm_crashes();
    envoy.send("GET", "/local", &[Module::CRASH, ("x-api-key", "crasher")]).await;
    until("a VM to die", Duration::from_secs(10), async || (envoy.vm_crashes() > before).then_some(())).await;
}

#[tokio::test]
async fn vms_that_die_under_load_forgive_nothing_and_others_go_on() {
    let store = Store::start(StoreKind::Valkey).await;
    let companion = Companion::builder(&store.url()).store_timeout("1s").start().await;
    let envoy = start(&companion, 2).await;
    let overhead = Overhead::watch(&envoy, "/free");
    let busy = Busy::start(envoy.addr(), SPAN);
    let (mut exhausted, mut half) = (Client::new("exhausted"), Client::new("half"));
    exhausted.spend(&envoy, CAPACITY, 100).await;
    half.spend(&envoy, CAPACITY, 10).await;

    let mut outages = Vec::new();
    for _ in 0..CRASHES {
        let begun = Instant::now();
        crash(&envoy).await;
        until_decided(&envoy, CAPACITY).await;
        outages.push((begun, Instant::now()));
        exhausted.spend_on_new_connections(&envoy, CAPACITY, 4).await;
        half.spend(&envoy, CAPACITY, 1).await;
    }

    let answered = busy.end().await;
    println!("{CRASHES} crashes: {:?}", answered.statuses());
    // A request that a VM held when it died ends after the outage, and was sent before it.
    let is_hit = |shot: &Shot| {
        outages.iter().any(|(begun, ended)| shot.sent_at() <= *ended && shot.answered_at >= *begun)
    };
    let (mut failed, mut decided) = (0, 0);
    for shot in answered.shots() {
        let is_decided = matches!(shot.status, 200 | 429);
        if is_hit(shot) {
            failed += usize::from(!is_decided);
            decided += usize::from(is_decided);
        } else {
            assert!(is_decided, "{} while all VMs live", shot.status);
        }
    }
    let lasted: Vec<Duration> = outages.iter().map(|(begun, ended)| *ended - *begun).collect();
    println!("while a VM was dead, for {lasted:?}: {decided} decided, {failed} failed");
    assert!(decided > 0, "the other worker's clients are decided");
    let (took, most) = (answered.slowest(), IDLE + MARGIN + overhead.slowest());
    println!("the slowest took {took:?} (at most {most:?})");
    assert!(took <= most);
    answered.assert_within_the_formula();
    let (admitted, spent) = (answered.kept(), spent_when_settled(&store, "busy").await);
    println!("kept: {admitted} admitted, {spent} spent in the store");
    assert!(spent >= admitted, "tokens have gone back more than once");
}

#[tokio::test]
async fn requests_that_wait_when_their_vm_dies_end_with_the_streams_idle_timeout() {
    const AT_ONCE: usize = 40;
    let companion = Companion::builder("memory").store_timeout("1s").start().await;
    let envoy = start(&companion, 1).await;
    let overhead = Overhead::watch(&envoy, "/free");
    companion.stop();
    for path in ["/exact", "/lease"] {
        let waiting = envoy.get_at_once(path, &[("x-api-key", "waiting")], AT_ONCE);
        let (answers, ()) = tokio::join!(waiting, async {
            let gauge = "http.ingress.downstream_rq_active";
            let all_wait = async || (envoy.counter(gauge).await >= AT_ONCE as u64).then_some(());
            until("all requests to wait", Duration::from_secs(1), all_wait).await;
            crash(&envoy).await;
        });
        let (took, longest) = (slowest(&answers), IDLE + MARGIN + overhead.slowest());
        let statuses: Vec<u16> = answers.iter().map(|timed| timed.answer.status).collect();
        println!(
            "{path}: {AT_ONCE} waited when their VM died, the longest for {took:?} (at most {longest:?})"
        );
        assert!(took <= longest);
        assert!(statuses.iter().all(|status| *status >= 400), "{statuses:?}");
        companion.cont();
        until_decided(&envoy, CAPACITY).await;
        let answer = envoy.send("GET", path, &[("x-api-key", "after")]).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        companion.stop();
    }
    companion.cont();
}

#[tokio::test]
async fn what_is_shipped_has_no_such_way_down() {
    let holds = |module: Module| {
        let name = Module::CRASH.0.as_bytes();
        module.bytes().windows(name.len()).any(|bytes| bytes == name)
    };
    assert!(holds(Module::CrashTest));
    assert!(!holds(Module::Shipped));
    let envoy = Envoy::builder().filter(&config(CAPACITY)).start().await;
    let answer = envoy.send("GET", "/local", &[Module::CRASH]).await;
    assert_eq!(answer.status, 200);
    envoy.assert_no_vm_crash().await;
}
