//! The store is killed, or held, and comes back.

use std::time::Instant;

use harness::{Companion, Envoy, Store, StoreKind};

use crate::expected::{TIMEOUT, companion_of, config};
use crate::outage::Watched;

async fn start(kind: StoreKind) -> (Store, Companion, Watched) {
    let store = Store::start(kind).await;
    let companion = companion_of(&store).await;
    let envoy = Envoy::builder().filter(&config(TIMEOUT)).companion(companion.addr()).start().await;
    (store, companion, Watched::new(envoy))
}

#[tokio::test]
async fn a_killed_store_is_a_failure_until_it_is_restarted() {
    for kind in Store::servers() {
        let what = format!("{kind:?} killed");
        let (mut store, _companion, mut watched) = start(kind).await;
        watched.assert_decides().await;
        store.kill();
        watched.assert_fails_for_long(&what).await;
        store.restart().await;
        watched.assert_recovers(&what, Instant::now()).await;
        watched.assert_counted().await;
    }
}

#[tokio::test]
async fn a_stopped_store_is_a_failure_until_it_goes_on() {
    for kind in Store::servers() {
        let what = format!("{kind:?} stopped");
        let (store, _companion, mut watched) = start(kind).await;
        watched.assert_decides().await;
        store.stop();
        watched.assert_fails_for_long(&what).await;
        store.cont();
        watched.assert_recovers(&what, Instant::now()).await;
        watched.assert_counted().await;
    }
}
