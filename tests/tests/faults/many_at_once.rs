//! Many requests are decided at once: when their timeouts end together, or one answer decides them all.

use std::time::Duration;

use harness::{Answer, Envoy, FakeAnswer, FakeCompanion, Timed, slowest};

use crate::crowd::allow_many_connections;
use crate::expected::{TIMEOUT, companion_in_memory, config};

/// More than the proxy's stack takes in one callback of the filter, several times over.
const MANY: usize = 2_000;

/// Far below the idle timeout, at which a stream that is paused for ever ends.
const NO_HANG: Duration = Duration::from_secs(4);

fn count(answers: &[Timed], status: u16) -> usize {
    answers.iter().map(|timed| &timed.answer).filter(|answer: &&Answer| answer.status == status).count()
}

#[tokio::test]
async fn requests_whose_timeouts_end_together_are_all_answered() {
    allow_many_connections();
    let fake = FakeCompanion::start(|_| FakeAnswer::silence()).await;
    let builder = Envoy::builder().filter(&config(TIMEOUT)).companion(fake.addr()).http1_to_companion();
    let envoy = builder.stream_idle_timeout("20s").start().await;
    for (path, status) in [("/closed", 503), ("/open", 200)] {
        let answers = envoy.get_at_once(path, &[("x-api-key", "k")], MANY).await;
        println!("{path}: {MANY} at once, the last after {:?}", slowest(&answers));
        assert_eq!(count(&answers, status), MANY);
        assert!(slowest(&answers) < NO_HANG, "{:?}", slowest(&answers));
    }
    envoy.assert_no_vm_crash().await;
}

#[tokio::test]
async fn requests_that_few_answers_decide_are_all_answered() {
    allow_many_connections();
    let companion = companion_in_memory().await;
    let builder = Envoy::builder().filter(&config(Duration::from_secs(10))).companion(companion.addr());
    let envoy = builder.stream_idle_timeout("20s").start().await;
    let answers = envoy.get_at_once("/closed", &[("x-api-key", "k")], MANY).await;
    println!("{MANY} at once, the last after {:?}", slowest(&answers));
    assert_eq!(count(&answers, 200), MANY);
    envoy.assert_no_vm_crash().await;
}
