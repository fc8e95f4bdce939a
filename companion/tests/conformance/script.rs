//! The script over memory beside the reference model, and what they are asked.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use companion::store::StoreError;
use companion::store::memory::{Clock, Interpreter, Keyspace};
use companion::take;
use limiter::authority::Authority;
use limiter::quota::TokenBucket;
use limiter::time::Instant;
use limiter::wire::{Charge, LeaseAsk, Limit, MAX_TTL_US, Report, Return, Take, TakeRequest, Taken};

pub(crate) const START_US: u64 = 1_750_000_000_123_456;
pub(crate) const DAY_US: u64 = 86_400_000_000;
pub(crate) const HOUR_US: i64 = 3_600_000_000;

/// The script over memory, with a clock that the test moves.
pub(crate) struct Script {
    pub(crate) keyspace: Arc<Mutex<Keyspace>>,
    interpreter: Interpreter,
    clock: Arc<AtomicU64>,
}

impl Script {
    pub(crate) fn new(max_keys: usize) -> Self {
        let keyspace = Arc::new(Mutex::new(Keyspace::new(max_keys)));
        let clock = Arc::new(AtomicU64::new(START_US));
        let interpreter = Interpreter::new(Arc::clone(&keyspace), Clock::Manual(Arc::clone(&clock))).unwrap();
        Self { keyspace, interpreter, clock }
    }

    pub(crate) fn now_us(&self) -> u64 {
        self.clock.load(Ordering::Relaxed)
    }

    pub(crate) fn set_clock(&self, now_us: u64) {
        self.clock.store(now_us, Ordering::Relaxed);
    }

    pub(crate) fn decide(&mut self, request: &TakeRequest) -> Result<Vec<i64>, StoreError> {
        self.interpreter.run(&take::call(request))
    }

    pub(crate) fn get(&self, key: &str) -> Option<String> {
        let mut keyspace = self.keyspace.lock().unwrap();
        keyspace.get(key.as_bytes()).map(|value| String::from_utf8(value.to_vec()).unwrap())
    }
}

pub(crate) fn quota(capacity: u64, rate: &str) -> TokenBucket {
    TokenBucket::new(capacity, rate.parse().unwrap()).unwrap()
}

pub(crate) fn charge(key: &str, quota: TokenBucket, cost: u64) -> Charge {
    let limit = Limit::TokenBucket(quota);
    Charge { key: format!("rl:{{1}}:{key}"), limit, cost, shadow: false, lease: None, report: None }
}

/// Asks for a lease that lasts as long as one may.
pub(crate) fn ask(holder: &str, id: u64, want: u64) -> LeaseAsk {
    LeaseAsk { holder: holder.to_owned(), id, want, ttl_us: MAX_TTL_US, returns: vec![] }
}

/// Gives one lease back and wants no other.
pub(crate) fn give_back(holder: &str, id: u64, tokens: u64) -> LeaseAsk {
    LeaseAsk { returns: vec![Return { id, tokens }], ..ask(holder, id, 0) }
}

/// Asks for a lease and for nothing else.
pub(crate) fn renewal(key: &str, quota: TokenBucket, ask: LeaseAsk) -> Charge {
    Charge { lease: Some(ask), ..charge(key, quota, 0) }
}

/// What the holder has counted from `from` to `to`, remembered as long as it may be.
pub(crate) fn report(holder: &str, from: u64, to: u64) -> Report {
    Report { holder: holder.to_owned(), from, to, ttl_us: MAX_TTL_US }
}

/// Reports and does nothing else.
pub(crate) fn delivery(key: &str, quota: TokenBucket, report: Report) -> Charge {
    Charge { report: Some(report), ..charge(key, quota, 0) }
}

pub(crate) fn request(takes: impl IntoIterator<Item = Vec<Charge>>) -> TakeRequest {
    TakeRequest { takes: takes.into_iter().map(|charges| Take { charges }).collect() }
}

/// What the reference model answers, in the integers of the script.
pub(crate) fn decide(model: &mut Authority, request: &TakeRequest, now_us: u64) -> Vec<i64> {
    let reply = model.decide(request, Instant::from_micros(now_us));
    let mut integers = Vec::new();
    for (take, taken) in request.takes.iter().zip(reply.takes) {
        let Taken::Decided { admitted, charges } = taken else {
            integers.push(-1);
            integers.extend(vec![0; 5 * take.charges.len()]);
            continue;
        };
        integers.push(i64::from(admitted));
        for charged in charges {
            let whole = |number: u64| i64::try_from(number).unwrap();
            integers.extend([
                whole(charged.remaining),
                charged.wait_us.map_or(-1, whole),
                whole(charged.full_us),
                whole(charged.granted),
                whole(charged.proxies),
            ]);
        }
    }
    integers
}

/// What the script and the model answer to one charge without its verdict, which must be the same.
pub(crate) fn both(script: &mut Script, model: &mut Authority, charge: Charge) -> [i64; 5] {
    let request = request([vec![charge]]);
    let answer = script.decide(&request).unwrap();
    assert_eq!(answer, decide(model, &request, script.now_us()), "{request:?}");
    answer[1..].try_into().unwrap()
}
