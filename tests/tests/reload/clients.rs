//! Clients that have used up their limits, and clients that are above theirs all the time.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use harness::{Envoy, Shot, fullest_span, load, slowest_shot_s};
use tokio::task::{JoinHandle, JoinSet};

use crate::limits::{BUSY_CAPACITY, BUSY_PER_SECOND, BUSY_TTL_S, SYNCS, on_a_new_connection};

const HEADERS: &[(&str, &str)] = &[("x-api-key", "busy")];

/// Sends requests of a client until one is refused, at most so many; returns how many were admitted.
async fn spend(envoy: &Envoy, sync: &str, key: &str, most: u64) -> u64 {
    for admitted in 0..most {
        let answer = envoy.send("GET", &format!("/{sync}"), &[("x-api-key", key)]).await;
        match answer.status {
            200 => {}
            429 => return admitted,
            other => panic!("{other} of {sync}: {answer:?}"),
        }
    }
    most
}

/// What a client has spent, by sync.
pub(crate) struct Client {
    key: &'static str,
    spent: [u64; SYNCS.len()],
    /// The greatest capacity that it has spent of.
    highest: u64,
}

impl Client {
    pub(crate) fn new(key: &'static str) -> Self {
        Self { key, spent: [0; SYNCS.len()], highest: 0 }
    }

    /// Spends at most so many more, and all that is left of `capacity` where that is less.
    pub(crate) async fn spend(&mut self, envoy: &Envoy, capacity: u64, most: u64) {
        for (index, sync) in SYNCS.iter().enumerate() {
            let admitted = spend(envoy, sync, self.key, most).await;
            self.count(index, admitted, capacity, most);
        }
    }

    /// Tries so often on either worker, each time on a new connection. Nothing that was spent may be back.
    pub(crate) async fn spend_on_new_connections(&mut self, envoy: &Envoy, capacity: u64, most: u64) {
        for (index, sync) in SYNCS.iter().enumerate() {
            let mut admitted = 0;
            for _ in 0..most {
                let answer = on_a_new_connection(envoy, &format!("/{sync}"), self.key).await;
                assert!(matches!(answer.status, 200 | 429), "{sync}: {answer:?}");
                admitted += u64::from(answer.status == 200);
            }
            self.count(index, admitted, capacity, most);
        }
    }

    fn count(&mut self, index: usize, admitted: u64, capacity: u64, most: u64) {
        self.highest = self.highest.max(capacity);
        let (sync, spent) = (SYNCS[index], &mut self.spent[index]);
        let left = capacity.saturating_sub(*spent);
        println!("{} at {sync}: {admitted} of {left} left of {capacity}, wanted {most}", self.key);
        *spent += admitted;
        if sync == "lease" {
            // A token that was leased before a reload may be spent after it, as long as the lease lasts, and what
            // the other worker or the limit before holds may be lost. It was charged once in any case.
            assert!(*spent <= self.highest, "{} at {sync}: {spent} of {}", self.key, self.highest);
        } else {
            assert_eq!(admitted, left.min(most), "{} at {sync}", self.key);
        }
    }
}

/// The load of all busy clients.
pub(crate) struct Busy {
    begun: Instant,
    loads: JoinHandle<BTreeMap<&'static str, Vec<Shot>>>,
}

/// What the busy clients were answered.
pub(crate) struct Answered {
    begun: Instant,
    by_sync: BTreeMap<&'static str, Vec<Shot>>,
}

impl Busy {
    /// Sends twice as much as each busy limit admits, and a little of `/kept`, which admits all, for `span`.
    pub(crate) fn start(addr: SocketAddr, span: Duration) -> Self {
        let loads = tokio::spawn(async move {
            let mut loads = JoinSet::new();
            for sync in SYNCS {
                let path = format!("/busy-{sync}");
                loads.spawn(async move { (sync, load(addr, &path, HEADERS, 4, 40, span).await) });
            }
            loads.spawn(async move { ("kept", load(addr, "/kept", HEADERS, 2, 40, span).await) });
            loads.join_all().await.into_iter().collect()
        });
        Self { begun: Instant::now(), loads }
    }

    /// Waits until all is answered.
    pub(crate) async fn end(self) -> Answered {
        Answered { begun: self.begun, by_sync: self.loads.await.expect("the loads end") }
    }
}

impl Answered {
    /// All requests.
    pub(crate) fn shots(&self) -> impl Iterator<Item = &Shot> {
        self.by_sync.values().flatten()
    }

    /// How many requests of `/kept` were admitted.
    pub(crate) fn kept(&self) -> u64 {
        self.by_sync["kept"].iter().filter(|shot| shot.status == 200).count() as u64
    }

    /// The longest that a request took.
    pub(crate) fn slowest(&self) -> Duration {
        self.shots().map(|shot| shot.took).max().unwrap_or_default()
    }

    /// The statuses of all requests.
    pub(crate) fn statuses(&self) -> BTreeMap<u16, usize> {
        let mut statuses = BTreeMap::new();
        for shot in self.shots() {
            *statuses.entry(shot.status).or_insert(0) += 1;
        }
        statuses
    }

    /// Fails the test where a busy limit has let more through in some span than it promises.
    pub(crate) fn assert_within_the_formula(&self) {
        for sync in SYNCS {
            let shots = &self.by_sync[sync];
            let ttl_s = if sync == "lease" { BUSY_TTL_S } else { 0.0 };
            let highest = fullest_span(shots, self.begun, BUSY_PER_SECOND);
            let bound = BUSY_CAPACITY + BUSY_PER_SECOND * (ttl_s + slowest_shot_s(shots));
            let count = |status| shots.iter().filter(|shot| shot.status == status).count();
            println!(
                "busy {sync}: {} admitted, {} refused, {} unavailable; the fullest span {highest:.1} of {bound:.1}",
                count(200),
                count(429),
                count(503)
            );
            assert!(highest <= bound, "{sync}");
        }
    }
}
