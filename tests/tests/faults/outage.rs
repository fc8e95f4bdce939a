//! What clients see while the companion cannot decide, and once it can again.

use std::time::{Duration, Instant};

use harness::{Envoy, Overhead, Timed, slowest, until};

use crate::expected::{CAPACITY, Seen, TIMEOUT, longest_wait};

/// The policies' paths.
const PATHS: [&str; 2] = ["/open", "/closed"];

/// Requests at the same time: far more than a worker has calls under way.
const AT_ONCE: usize = 64;

/// How long a long outage lasts: longer than it takes until attempts to reconnect are as rare as they get.
const LONG: Duration = Duration::from_secs(2);

/// How soon all is as before when what was away is back.
const BACK_WITHIN: Duration = Duration::from_secs(1);

/// An Envoy with the policies of [`crate::expected::config`] whose answers are all counted.
pub(crate) struct Watched {
    envoy: Envoy,
    overhead: Overhead,
    unprotected: u64,
    unavailable: u64,
    keys: usize,
}

impl Watched {
    pub(crate) fn new(envoy: Envoy) -> Self {
        let overhead = Overhead::watch(&envoy, "/free");
        Self { envoy, overhead, unprotected: 0, unavailable: 0, keys: 0 }
    }

    /// Fails the test unless requests are decided and charged, one by one and many at once.
    pub(crate) async fn assert_decides(&mut self) {
        for path in PATHS {
            // Of its own, for failed requests may have been charged in the store, or may be yet.
            self.keys += 1;
            let key = format!("client-{}", self.keys);
            for sent in 1..=3 {
                let seen = self.get(path, &key, 1).await;
                assert_eq!(seen[0].0, Seen::Admitted { left: CAPACITY - sent }, "{path}");
            }
            let seen = self.get(path, &key, AT_ONCE).await;
            let mut left: Vec<Seen> = seen.into_iter().map(|(seen, _)| seen).collect();
            left.sort_by_key(|seen| match seen {
                Seen::Admitted { left } => CAPACITY - left,
                _ => 0,
            });
            let expected: Vec<Seen> =
                (4..4 + AT_ONCE as u64).map(|sent| Seen::Admitted { left: CAPACITY - sent }).collect();
            assert_eq!(left, expected, "{path}");
        }
    }

    /// Fails the test unless each policy does what it is told for a failure, in time.
    pub(crate) async fn assert_fails(&mut self, what: &str) {
        for path in PATHS {
            for count in [1, 1, AT_ONCE] {
                let seen = self.get(path, "in-outage", count).await;
                let longest = longest_wait(TIMEOUT, &self.overhead);
                for (seen, timed) in &seen {
                    assert_eq!(*seen, Seen::failure(path), "{what}, {path}: {:?}", timed.answer);
                    assert!(timed.took <= longest, "{what}, {path}: {:?} > {longest:?}", timed.took);
                }
                let all: Vec<Timed> = seen.into_iter().map(|(_, timed)| timed).collect();
                let took = slowest(&all);
                println!("{what}, {path}: {count} at once in {took:?} (at most {longest:?})");
            }
        }
    }

    /// As [`Self::assert_fails`] for a while, so that whoever tries to reconnect has lost patience.
    pub(crate) async fn assert_fails_for_long(&mut self, what: &str) {
        let start = Instant::now();
        self.assert_fails(what).await;
        while start.elapsed() < LONG {
            let seen = self.get("/open", "in-outage", 1).await;
            assert_eq!(seen[0].0, Seen::Unprotected, "{what}");
        }
    }

    /// Fails the test unless requests that come while others already wait are not held up by those.
    pub(crate) async fn assert_fails_in_turn(&mut self, what: &str) {
        for path in PATHS {
            let answers = self.envoy.get_every(TIMEOUT / 20, path, &[], AT_ONCE).await;
            let longest = longest_wait(TIMEOUT, &self.overhead);
            let took = slowest(&answers);
            for (seen, timed) in self.count(answers) {
                assert_eq!(seen, Seen::failure(path), "{what}, {path}: {:?}", timed.answer);
            }
            println!("{what}, {path}: {AT_ONCE} in turn, each in {took:?} (at most {longest:?})");
            assert!(took <= longest, "{what}, {path}: {took:?} > {longest:?}");
        }
    }

    /// Fails the test unless all is as before soon after `back`, and stays so.
    pub(crate) async fn assert_recovers(&mut self, what: &str, back: Instant) {
        for path in PATHS {
            let deadline = BACK_WITHIN + TIMEOUT * 5;
            let decided = async || match self.get(path, "after-outage", 1).await[0].0 {
                Seen::Admitted { .. } => Some(()),
                seen => {
                    assert_eq!(seen, Seen::failure(path));
                    None
                }
            };
            until("the first request that is decided again", deadline, decided).await;
            let took = back.elapsed();
            let allowed = BACK_WITHIN + self.overhead.slowest();
            println!("{what}, {path}: decides again after {took:?} (at most {allowed:?})");
            assert!(took <= allowed, "{what}, {path}: decides again after {took:?} > {allowed:?}");
        }
        self.assert_decides().await;
    }

    /// Fails the test unless the metrics say what the clients have seen, and no VM has died.
    pub(crate) async fn assert_counted(&self) {
        let metric = async |name| self.envoy.counter(&format!("wasmcustom.tidegate.policy.{name}")).await;
        let counted = (metric("open.unprotected").await, metric("closed.unavailable").await);
        println!("unprotected and unavailable: {counted:?}; overhead {:?}", self.overhead.slowest());
        assert_eq!(counted, (self.unprotected, self.unavailable));
        assert_eq!(metric("open.unavailable").await, 0);
        assert_eq!(metric("closed.unprotected").await, 0);
        self.envoy.assert_no_vm_crash().await;
    }

    async fn get(&mut self, path: &str, key: &str, count: usize) -> Vec<(Seen, Timed)> {
        let answers = self.envoy.get_at_once(path, &[("x-api-key", key)], count).await;
        self.count(answers)
    }

    fn count(&mut self, answers: Vec<Timed>) -> Vec<(Seen, Timed)> {
        let seen: Vec<(Seen, Timed)> =
            answers.into_iter().map(|timed| (Seen::of(&timed.answer), timed)).collect();
        for (seen, _) in &seen {
            self.unprotected += u64::from(*seen == Seen::Unprotected);
            self.unavailable += u64::from(*seen == Seen::Unavailable);
        }
        seen
    }
}
