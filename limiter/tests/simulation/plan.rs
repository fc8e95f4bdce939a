//! What is fixed before a simulation begins: who asks for what and when, how the network behaves, and what
//! goes wrong.

use core::time::Duration;

use limiter::matching::{Conditions, Match, PathMatch};
use limiter::policy::{Cost, KeyPart, Limit, OnFailure, Policy, Source, Sync};
use limiter::quota::TokenBucket;
use limiter::request::Given;

/// A schedule.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) proxies: usize,
    /// Of each proxy.
    pub(crate) workers: usize,
    pub(crate) policies: Vec<Policy>,
    /// Of each proxy's table.
    pub(crate) slots: u32,
    pub(crate) timeout: Duration,
    pub(crate) network: Network,
    pub(crate) conflicts_per_mille: u64,
    /// Whether every proxy knows how many there are before something goes wrong.
    pub(crate) is_acquainted: bool,
    /// In the order of time.
    pub(crate) arrivals: Vec<Arrival>,
    /// In the order of time.
    pub(crate) faults: Vec<(u64, Fault)>,
}

/// How often calls meet with what.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    /// On one way.
    pub(crate) delay_us: (u64, u64),
    /// Ways that take up to [`SLOWEST_US`].
    pub(crate) slow_per_mille: u64,
    /// Ways that end nowhere.
    pub(crate) lost_per_mille: u64,
    /// Ways that are gone twice.
    pub(crate) doubled_per_mille: u64,
    /// Whether the end of a call is told at its timeout; if not, replies come however late they are.
    pub(crate) tells_timeouts: bool,
}

/// The longest that a message is on its way.
pub(crate) const SLOWEST_US: u64 = 400_000;

impl Network {
    /// Nothing goes wrong, and every answer comes in time.
    pub(crate) fn good(delay_us: (u64, u64)) -> Self {
        Self { delay_us, slow_per_mille: 0, lost_per_mille: 0, doubled_per_mille: 0, tells_timeouts: true }
    }

    pub(crate) fn is_good(&self) -> bool {
        self.slow_per_mille + self.lost_per_mille + self.doubled_per_mille == 0
    }
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) at_us: u64,
    pub(crate) proxy: usize,
    pub(crate) worker: usize,
    pub(crate) client: usize,
    pub(crate) path: &'static str,
    /// For how long the client waits at most.
    pub(crate) patience_us: u64,
}

/// Waits for as long as it takes.
pub(crate) const PATIENT: u64 = u64::MAX;

/// What goes wrong, or is changed.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// A worker's memory is lost, with the requests that it holds.
    Crash { proxy: usize, worker: usize },
    /// All workers of all proxies start anew. With new policies, and if `cut`, messages on their way are lost.
    Reload { policies: Vec<Policy>, cut: bool },
    /// A proxy is replaced by another one.
    Replace { proxy: usize },
    /// A slot of a proxy is lost.
    Forget { proxy: usize, slot: usize },
    /// The store is away for so long.
    Away { span_us: u64 },
    /// The store's clock steps back.
    StepBack { span_us: u64 },
}

/// A policy over the header `x-key`, and over one path where one is given.
pub(crate) fn policy(
    name: &str,
    (capacity, rate): (u64, &str),
    sync: Sync,
    path: Option<&'static str>,
) -> Policy {
    let limit = Limit::TokenBucket(TokenBucket::new(capacity, rate.parse().unwrap()).unwrap());
    let path = path.map(|path| PathMatch::Exact(path.to_owned()));
    let matcher = Match { conditions: Conditions { path, ..Conditions::default() }, except: Vec::new() };
    let key = vec![KeyPart::Identity(vec![Source::Header("x-key".to_owned())])];
    Policy { matcher, key, sync, ..Policy::new(name, limit) }
}

pub(crate) const CLOSED: OnFailure = OnFailure::Closed { retry_after: Duration::from_secs(1) };

pub(crate) const PATHS: [&str; 2] = ["/a", "/b"];

/// What a request takes of a policy, which all requests do alike here.
pub(crate) fn cost(policy: &Policy) -> u64 {
    let Cost::Fixed(cost) = policy.cost else { panic!("a policy whose cost requests tell") };
    cost
}

/// The bucket of a policy; all policies here have one.
pub(crate) fn quota(policy: &Policy) -> TokenBucket {
    let Limit::TokenBucket(quota) = policy.limit else { panic!("a policy without a bucket") };
    quota
}

impl Plan {
    /// Proxies that may know nothing of each other: those that there are, and one more each time that what one
    /// knew is lost.
    pub(crate) fn strangers(&self) -> u64 {
        let loses =
            |(_, fault): &&(u64, Fault)| matches!(fault, Fault::Replace { .. } | Fault::Forget { .. });
        (self.proxies + self.faults.iter().filter(loses).count()) as u64
    }

    /// Whether every question is answered within the timeout.
    pub(crate) fn is_answered(&self) -> bool {
        let is_away =
            |(_, fault): &(u64, Fault)| matches!(fault, Fault::Away { .. } | Fault::Reload { cut: true, .. });
        let timeout_us = u64::try_from(self.timeout.as_micros()).unwrap();
        self.network.is_good() && 2 * self.network.delay_us.1 < timeout_us && !self.faults.iter().any(is_away)
    }
}

pub(crate) fn applies(policy: &Policy, path: &str) -> bool {
    policy.matcher.conditions.path.as_ref().is_none_or(|only| *only == PathMatch::Exact(path.to_owned()))
}

/// The store key of a client under a policy.
pub(crate) fn store_key(client: usize, policy: &Policy) -> String {
    format!("rl:{{c{client}}}:{}", policy.name)
}

/// What the proxy knows of a request.
pub(crate) struct Client {
    pub(crate) client: usize,
    pub(crate) path: &'static str,
}

impl Client {
    pub(crate) fn request(&self) -> Given {
        Given {
            method: b"GET".to_vec(),
            target: self.path.as_bytes().to_vec(),
            headers: vec![("x-key".to_owned(), format!("c{}", self.client).into_bytes())],
            ..Given::default()
        }
    }
}
