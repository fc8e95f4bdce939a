//! Envoy's circuit breaker before the companion: a call that it does not let out is a failure at once.

use std::time::Duration;

use harness::{Envoy, FakeCompanion, Overhead, Timed, slowest, until};

use crate::answers::good;
use crate::expected::{Seen, TIMEOUT, companion_in_memory, config, longest_wait};

const AT_ONCE: usize = 40;

/// How often a request was decided, and how often not.
fn tally(path: &str, answers: &[Timed], longest: Duration) -> (usize, usize) {
    let mut decided = 0;
    for timed in answers {
        match Seen::of(&timed.answer) {
            Seen::Admitted { .. } => decided += 1,
            seen => assert_eq!(seen, Seen::failure(path), "{path}"),
        }
    }
    let took = slowest(answers);
    println!("{path}: {decided} of {} decided, all in {took:?} (at most {longest:?})", answers.len());
    assert!(took <= longest, "{path}: {took:?} > {longest:?}");
    (decided, answers.len() - decided)
}

#[tokio::test]
async fn a_full_breaker_fails_the_calls_that_it_stops_and_no_others() {
    // Slow enough that the first call is under way when the next is made.
    let fake = FakeCompanion::start(|question| good(question).late_by(TIMEOUT / 4)).await;
    let envoy = Envoy::builder()
        .filter(&config(TIMEOUT))
        .companion(fake.addr())
        .http1_to_companion()
        .max_requests_to_companion(1)
        .start()
        .await;
    let overhead = Overhead::watch(&envoy, "/free");
    for path in ["/open", "/closed"] {
        let answers = envoy.get_at_once(path, &[], AT_ONCE).await;
        let (decided, failed) = tally(path, &answers, longest_wait(TIMEOUT, &overhead));
        assert!(decided >= 1, "the call that was let out was answered");
        assert!(failed >= 1, "the breaker was never full");
        assert_eq!(Seen::of(&envoy.get(path).await), Seen::Admitted { left: 7 }, "after {path}");
    }
    envoy.assert_no_vm_crash().await;
}

#[tokio::test]
async fn a_breaker_full_of_calls_to_a_stopped_companion_empties_when_it_goes_on() {
    let companion = companion_in_memory().await;
    let envoy = Envoy::builder()
        .filter(&config(TIMEOUT))
        .companion(companion.addr())
        .max_requests_to_companion(1)
        .start()
        .await;
    let overhead = Overhead::watch(&envoy, "/free");
    for path in ["/open", "/closed"] {
        let before = Seen::of(&envoy.get(path).await);
        assert!(matches!(before, Seen::Admitted { .. }), "{path}: {before:?}");
        companion.stop();
        let answers = envoy.get_at_once(path, &[], AT_ONCE).await;
        let (decided, _) = tally(path, &answers, longest_wait(TIMEOUT, &overhead));
        assert_eq!(decided, 0, "{path}");
        companion.cont();
        let again = async || matches!(Seen::of(&envoy.get(path).await), Seen::Admitted { .. }).then_some(());
        until("a request that is decided again", TIMEOUT * 10, again).await;
    }
    envoy.assert_no_vm_crash().await;
}
