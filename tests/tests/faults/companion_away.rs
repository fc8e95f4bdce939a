//! The companion is killed, held, late to come, or unknown to Envoy.

use std::net::SocketAddr;
use std::time::Instant;

use harness::{Companion, CompanionAt, Envoy, free_port};

use crate::expected::{TIMEOUT, companion_in_memory, config};
use crate::outage::Watched;

async fn watched(companion: impl Into<CompanionAt>) -> Watched {
    Watched::new(Envoy::builder().filter(&config(TIMEOUT)).companion(companion).start().await)
}

#[tokio::test]
async fn a_killed_companion_is_a_failure_until_it_is_restarted() {
    let mut companion = companion_in_memory().await;
    let mut watched = watched(companion.addr()).await;
    watched.assert_decides().await;
    companion.kill();
    watched.assert_fails_for_long("companion killed").await;
    companion.restart().await;
    watched.assert_recovers("companion killed", Instant::now()).await;
    watched.assert_counted().await;
}

#[tokio::test]
async fn a_stopped_companion_is_a_failure_until_it_goes_on() {
    let companion = companion_in_memory().await;
    let mut watched = watched(companion.addr()).await;
    watched.assert_decides().await;
    companion.stop();
    watched.assert_fails("companion stopped").await;
    watched.assert_fails_in_turn("companion stopped").await;
    companion.cont();
    watched.assert_recovers("companion stopped", Instant::now()).await;
    watched.assert_counted().await;
}

#[tokio::test]
async fn an_envoy_without_its_companion_starts_and_finds_it_later() {
    let port = free_port();
    let mut watched = watched(SocketAddr::from(([127, 0, 0, 1], port))).await;
    watched.assert_fails("companion absent").await;
    let _companion = Companion::builder("memory").port(port).start().await;
    watched.assert_recovers("companion absent", Instant::now()).await;
    watched.assert_counted().await;
}

#[tokio::test]
async fn a_cluster_that_is_missing_or_empty_is_a_failure() {
    for at in [CompanionAt::NoCluster, CompanionAt::NoEndpoint] {
        let mut watched = watched(at).await;
        watched.assert_fails(&format!("{at:?}")).await;
        watched.assert_counted().await;
    }
}
