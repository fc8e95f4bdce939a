//! Three reloads under load, each with another limit.

use std::time::Duration;

use harness::{Companion, Delivery, Envoy, Store, StoreKind};

use crate::clients::{Busy, Client};
use crate::limits::{config, reload, spent_when_settled};

const SPAN: Duration = Duration::from_secs(8);

/// When Envoy gives a silent stream up, and a request that hangs with it.
const IDLE: Duration = Duration::from_secs(4);

async fn three_reloads(delivery: Delivery) {
    let store = Store::start(StoreKind::Valkey).await;
    let companion = Companion::builder(&store.url()).store_timeout("1s").start().await;
    let builder = Envoy::builder().filter(&config(20)).companion(companion.addr()).delivery(delivery);
    let mut envoy = builder.workers(2).stream_idle_timeout("4s").start().await;
    let busy = Busy::start(envoy.addr(), SPAN);

    let (mut exhausted, mut half) = (Client::new("exhausted"), Client::new("half"));
    exhausted.spend(&envoy, 20, 100).await;
    half.spend(&envoy, 20, 10).await;
    // More is allowed, then less than was spent, then as much as at first.
    for capacity in [30, 5, 20] {
        reload(&mut envoy, capacity).await;
        exhausted.spend(&envoy, capacity, 100).await;
        half.spend(&envoy, capacity, 1).await;
    }

    let answered = busy.end().await;
    let slowest = answered.slowest();
    println!(
        "{delivery:?}: {} requests under three reloads, the slowest {slowest:?}",
        answered.shots().count()
    );
    assert!(answered.shots().all(|shot| matches!(shot.status, 200 | 429)), "a reload is no failure");
    assert!(slowest < IDLE);
    answered.assert_within_the_formula();
    let (admitted, spent) = (answered.kept(), spent_when_settled(&store, "busy").await);
    println!("kept: {admitted} admitted, {spent} spent in the store");
    assert!(spent >= admitted, "tokens have gone back more than once");
    envoy.assert_no_vm_crash().await;
}

#[tokio::test]
async fn three_reloads_of_the_listener_forgive_nothing_and_fail_nobody() {
    three_reloads(Delivery::Listener).await;
}

#[tokio::test]
async fn three_reloads_of_the_filter_alone_forgive_nothing_and_fail_nobody() {
    three_reloads(Delivery::Extension).await;
}
