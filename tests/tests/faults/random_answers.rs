//! Bytes that nobody thought of as the companion's answer.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use harness::{Envoy, FakeAnswer, FakeCompanion};

use crate::answers::{MARKER, good, good_body};
use crate::expected::{Seen, TIMEOUT, config};

/// How many answers one run tries.
const ROUNDS: u64 = 300;

/// Names the run to repeat, as a failing one has printed it.
const SEED_VARIABLE: &str = "TIDEGATE_SEED";

#[tokio::test]
async fn random_answers_neither_crash_nor_hang_the_filter() {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos().into());
    let seed = std::env::var(SEED_VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or_else(now);
    println!("{SEED_VARIABLE}={seed}");
    // The round is in the question: a client's key is in the store key.
    let fake = FakeCompanion::start(move |question| match round_of(question) {
        Some(round) => FakeAnswer::http(200, &[MARKER], spoilt(question, seed ^ (round << 32))),
        None => good(question),
    })
    .await;
    let envoy =
        Envoy::builder().filter(&config(TIMEOUT)).companion(fake.addr()).http1_to_companion().start().await;

    let (mut decided, mut failed) = (0, 0);
    for round in 0..ROUNDS {
        let path = if round % 2 == 0 { "/open" } else { "/closed" };
        let timed = envoy.get_timed(path, &[("x-api-key", &format!("round{round}end"))]).await;
        match Seen::of(&timed.answer) {
            Seen::Admitted { .. } | Seen::Refused => decided += 1,
            failure => {
                assert_eq!(failure, Seen::failure(path), "round {round}");
                failed += 1;
            }
        }
        assert!(timed.took < Duration::from_secs(2), "round {round} took {:?}", timed.took);
        // After three failures in a row the filter would ask no more.
        if round % 2 == 1 {
            assert_eq!(Seen::of(&envoy.get(path).await), Seen::Admitted { left: 7 }, "after round {round}");
        }
    }
    println!("{ROUNDS} answers: {failed} were failures, {decided} still read as decisions");
    assert!(failed > ROUNDS / 4, "most of what is random is no answer");
    envoy.assert_no_vm_crash().await;
}

fn round_of(question: &[u8]) -> Option<u64> {
    let question = String::from_utf8_lossy(question);
    let (_, rest) = question.split_once("round")?;
    rest.split_once("end")?.0.parse().ok()
}

/// Random bytes, or a good answer with some of its bytes changed, lost, repeated or inserted.
fn spoilt(question: &[u8], seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    if random.below(4) == 0 {
        return (0..random.below(2_000)).map(|_| random.byte()).collect();
    }
    let mut body = good_body(question);
    for _ in 0..=random.below(4) {
        let at = random.below(body.len());
        match random.below(6) {
            0 => body[at] = random.byte(),
            1 => drop(body.remove(at)),
            2 => body.insert(at, random.byte()),
            3 => body.insert(at, b"0123456789-.eE{}[],:\"\\"[random.below(22)]),
            // Another number, which may still be one that can be.
            4 => {
                let digits = body.iter().position(u8::is_ascii_digit).unwrap_or(at);
                let number = random.next() >> random.below(64);
                body.splice(digits..digits, number.to_string().into_bytes());
            }
            _ => {
                let end = at + random.below(body.len() - at);
                let again = body[at..end].to_vec();
                body.splice(end..end, again);
            }
        }
    }
    body
}

/// `SplitMix64`: small, and the same sequence for a seed on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap_or(0)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
}
