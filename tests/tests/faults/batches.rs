//! An answer to many requests at once: what is wrong with it concerns those that it is wrong for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use harness::{Envoy, FakeAnswer, FakeCompanion};
use serde_json::{Value, json};

use crate::answers::{MARKER, good_body};
use crate::expected::{Seen, TIMEOUT, config};

const AT_ONCE: usize = 100;

/// Spoils each answer by `spoil`, which returns how many of its takes it has spoilt, and asserts that so
/// many requests fail and all others are decided.
async fn assert_concerns(spoil: fn(&mut Vec<Value>) -> usize) {
    let (spoilt, largest) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let fake = FakeCompanion::start({
        let (spoilt, largest) = (Arc::clone(&spoilt), Arc::clone(&largest));
        move |question| {
            let mut reply: Value = serde_json::from_slice(&good_body(question)).expect("JSON");
            let takes = reply["takes"].as_array_mut().expect("a list");
            largest.fetch_max(takes.len(), Ordering::Relaxed);
            spoilt.fetch_add(spoil(takes), Ordering::Relaxed);
            // Late enough for the others to gather behind it.
            FakeAnswer::http(200, &[MARKER], reply.to_string()).late_by(TIMEOUT / 8)
        }
    })
    .await;
    let envoy =
        Envoy::builder().filter(&config(TIMEOUT)).companion(fake.addr()).http1_to_companion().start().await;

    for path in ["/open", "/closed"] {
        spoilt.store(0, Ordering::Relaxed);
        let answers = envoy.get_at_once(path, &[], AT_ONCE).await;
        let seen: Vec<Seen> = answers.iter().map(|timed| Seen::of(&timed.answer)).collect();
        let failed = seen.iter().filter(|seen| **seen == Seen::failure(path)).count();
        let decided = seen.iter().filter(|seen| **seen == Seen::Admitted { left: 7 }).count();
        println!(
            "{path}: {decided} decided, {failed} failed, batches up to {}",
            largest.load(Ordering::Relaxed)
        );
        assert_eq!(decided + failed, AT_ONCE, "{seen:?}");
        assert_eq!(failed, spoilt.load(Ordering::Relaxed));
        assert!(failed > 0 && decided > 0, "the test shows nothing");
    }
    assert!(largest.load(Ordering::Relaxed) > 1, "there was no batch");
    assert!(fake.count() < AT_ONCE, "requests shared no calls");
    envoy.assert_no_vm_crash().await;
}

#[tokio::test]
async fn a_batch_answered_with_too_few_or_too_many_takes_fails_whole() {
    assert_concerns(|takes| {
        let count = takes.len();
        match count {
            0 | 1 => return 0,
            _ if count.is_multiple_of(2) => drop(takes.pop()),
            _ => takes.push(takes[0].clone()),
        }
        count
    })
    .await;
}

#[tokio::test]
async fn a_take_that_fails_leaves_the_others_of_its_batch_decided() {
    assert_concerns(|takes| {
        let mut spoilt = 0;
        for take in takes.iter_mut().skip(1).step_by(2) {
            *take = json!({ "error": "the state is unreadable" });
            spoilt += 1;
        }
        spoilt
    })
    .await;
}

#[tokio::test]
async fn a_take_without_its_charges_leaves_the_others_of_its_batch_decided() {
    assert_concerns(|takes| {
        let spoilt = takes.len() / 2;
        for take in takes.iter_mut().take(spoilt) {
            take["charges"] = json!([]);
        }
        spoilt
    })
    .await;
}
