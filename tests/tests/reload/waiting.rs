//! Requests that wait for the companion when their configuration is replaced.

use std::time::Duration;

use harness::{Companion, Delivery, Envoy, Overhead, slowest, until};

use crate::limits::{TIMEOUT, config, reload};

const AT_ONCE: usize = 40;

/// A tick, and what timers add.
const MARGIN: Duration = Duration::from_millis(60);

/// Lets requests wait, reloads, and lets the companion go on where it is to. They must be decided as if nothing
/// had been reloaded, by an answer or at their deadline.
async fn assert_decided(delivery: Delivery, goes_on: bool) {
    let companion = Companion::builder("memory").store_timeout("1s").start().await;
    let builder = Envoy::builder().filter(&config(100)).companion(companion.addr()).delivery(delivery);
    let mut envoy = builder.workers(2).start().await;
    let overhead = Overhead::watch(&envoy, "/free");
    for (round, path) in ["/exact", "/lease"].into_iter().enumerate() {
        companion.stop();
        let waiting = envoy.start_at_once(path, &[("x-api-key", "waiting")], AT_ONCE);
        let gauge = "http.ingress.downstream_rq_active";
        let all_wait = async || (envoy.counter(gauge).await >= AT_ONCE as u64).then_some(());
        until("all requests to wait", TIMEOUT / 2, all_wait).await;
        reload(&mut envoy, 101 + round as u64).await;
        if goes_on {
            companion.cont();
        }
        let answers = waiting.await.expect("all are answered");
        let (took, longest) = (slowest(&answers), TIMEOUT + MARGIN + overhead.slowest());
        let decided = answers.iter().filter(|timed| timed.answer.status == 200).count();
        let failed = answers.iter().filter(|timed| timed.answer.status == 503).count();
        println!(
            "{delivery:?}, {path}: {decided} decided, {failed} failed, all in {took:?} (at most {longest:?})"
        );
        assert_eq!((decided, failed), if goes_on { (AT_ONCE, 0) } else { (0, AT_ONCE) });
        assert!(took <= longest);
        companion.cont();
        until("the new configuration to decide", TIMEOUT * 5, async || {
            let answer = envoy.send("GET", path, &[("x-api-key", "after")]).await;
            (answer.status == 200).then_some(())
        })
        .await;
    }
    envoy.assert_no_vm_crash().await;
}

#[tokio::test]
async fn who_waits_during_a_reload_is_decided_by_the_answer() {
    assert_decided(Delivery::Listener, true).await;
    assert_decided(Delivery::Extension, true).await;
}

#[tokio::test]
async fn who_waits_during_a_reload_fails_at_the_deadline_where_none_comes() {
    // A listener that is replaced has Envoy's drain time for its requests, which is shorter here.
    assert_decided(Delivery::Extension, false).await;
}
