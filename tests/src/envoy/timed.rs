//! Requests with the time that each took, and what the machine takes by itself, to compare with.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use super::Envoy;
use crate::answer::Answer;

/// An answer and how long the client waited for it, connecting included.
#[derive(Debug, Clone)]
pub struct Timed {
    /// The answer.
    pub answer: Answer,
    /// From before the connection to after the last byte.
    pub took: Duration,
}

/// The slowest of some answers.
pub fn slowest(answers: &[Timed]) -> Duration {
    answers.iter().map(|timed| timed.took).max().unwrap_or_default()
}

impl Envoy {
    /// Gets a path with these header fields.
    pub async fn get_timed(&self, path: &str, headers: &[(&str, &str)]) -> Timed {
        self.get_at_once(path, headers, 1).await.remove(0)
    }

    /// Sends `count` equal requests at the same time and waits for all answers.
    pub async fn get_at_once(&self, path: &str, headers: &[(&str, &str)], count: usize) -> Vec<Timed> {
        self.get_every(Duration::ZERO, path, headers, count).await
    }

    /// Sends `count` equal requests, one each `period`, whether those before are answered or not, and waits
    /// for all answers.
    pub async fn get_every(
        &self,
        period: Duration,
        path: &str,
        headers: &[(&str, &str)],
        count: usize,
    ) -> Vec<Timed> {
        self.requests(period, path, headers, count).join_all().await
    }

    /// Sends `count` equal requests at the same time; who waits for the value has all answers, and may do
    /// something else before.
    pub fn start_at_once(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        count: usize,
    ) -> JoinHandle<Vec<Timed>> {
        tokio::spawn(self.requests(Duration::ZERO, path, headers, count).join_all())
    }

    fn requests(
        &self,
        period: Duration,
        path: &str,
        headers: &[(&str, &str)],
        count: usize,
    ) -> JoinSet<Timed> {
        let mut requests = JoinSet::new();
        let mut delay = Duration::ZERO;
        for _ in 0..count {
            let mut request = self.client.get(self.url(path));
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            requests.spawn(async move {
                sleep(delay).await;
                let start = Instant::now();
                let answer = Answer::receive(request).await;
                Timed { answer, took: start.elapsed() }
            });
            delay += period;
        }
        requests
    }
}

/// How often the overhead is measured.
const PAUSE: Duration = Duration::from_millis(10);

/// Measures, for as long as it lives, what a request costs that no policy applies to: client, Envoy and
/// the machine's other work together. What a measured request takes beyond its limit's timeout may be
/// this, and nothing else.
#[derive(Debug)]
pub struct Overhead {
    shared: Arc<Mutex<Shared>>,
    prober: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    slowest: Duration,
    begun: Instant,
}

impl Overhead {
    /// Begins to get a path of `envoy` that no policy applies to.
    pub fn watch(envoy: &Envoy, path: &str) -> Self {
        let (client, url) = (envoy.client.clone(), envoy.url(path));
        let shared = Arc::new(Mutex::new(Shared { slowest: Duration::ZERO, begun: Instant::now() }));
        let prober = tokio::spawn({
            let shared = Arc::clone(&shared);
            async move {
                loop {
                    // A late wake-up is overhead too: it delays whoever measures in this process.
                    lock(&shared).begun = Instant::now();
                    sleep(PAUSE).await;
                    let answer = Answer::receive(client.get(&url)).await;
                    assert_eq!(answer.header("ratelimit-policy"), None, "a policy applies to {url}");
                    let mut shared = lock(&shared);
                    shared.slowest = shared.slowest.max(shared.begun.elapsed().saturating_sub(PAUSE));
                }
            }
        });
        Self { shared, prober }
    }

    /// The most that it came to so far, a request that is still under way included.
    pub fn slowest(&self) -> Duration {
        assert!(!self.prober.is_finished(), "the probe has failed");
        let shared = lock(&self.shared);
        shared.slowest.max(shared.begun.elapsed().saturating_sub(PAUSE))
    }
}

impl Drop for Overhead {
    fn drop(&mut self) {
        self.prober.abort();
    }
}

fn lock(shared: &Mutex<Shared>) -> std::sync::MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
