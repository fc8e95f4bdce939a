//! What the store keeps under a key: the bucket, the leases that are out and the holders that report.

use std::collections::BTreeSet;

use crate::bucket::Bucket;
use crate::quota::TokenBucket;
use crate::time::Instant;
use crate::wire::{LeaseAsk, MAX_LEASES, MAX_REPORTERS, Report, Return};

/// What a key holds.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) bucket: Bucket,
    /// In the order of their grants.
    leases: Vec<Lease>,
    /// In the order in which they were last heard of.
    reporters: Vec<Reporter>,
}

/// A lease that is out: granted, not returned, not ended.
#[derive(Clone, Debug)]
struct Lease {
    holder: String,
    id: u64,
    tokens: u64,
    granted: Instant,
    ttl_us: u64,
}

/// A holder that reports.
#[derive(Clone, Debug)]
struct Reporter {
    holder: String,
    /// The number of the last token that was charged.
    counted: u64,
    seen: Instant,
    ttl_us: u64,
}

impl State {
    pub(super) const fn full(quota: &TokenBucket, now: Instant) -> Self {
        Self { bucket: Bucket::full(quota, now), leases: Vec::new(), reporters: Vec::new() }
    }

    /// The state at `now`, with the leases that have not ended.
    pub(super) fn settle(&self, quota: &TokenBucket, now: Instant) -> Self {
        let bucket = self.bucket.settle(quota, now);
        // Time started anew: what is said of it is worth nothing.
        let healed = bucket.updated < self.bucket.updated;
        // What time has refilled since a lease was granted cannot be told any more.
        let rate = |bucket: &Bucket| (bucket.parts_per_token, bucket.parts_per_micro);
        let edited = rate(&bucket) != rate(&self.bucket);
        let lasts = |since: Instant, ttl_us| !healed && bucket.updated.micros_since(since) < ttl_us;
        let out = |lease: &&Lease| !edited && lasts(lease.granted, lease.ttl_us);
        let there = |reporter: &&Reporter| lasts(reporter.seen, reporter.ttl_us);
        Self {
            bucket,
            leases: self.leases.iter().filter(out).cloned().collect(),
            reporters: self.reporters.iter().filter(there).cloned().collect(),
        }
    }

    /// When nothing is lost by forgetting the state; `None` where nothing is lost now. A full bucket is none,
    /// unless holders are to be remembered.
    pub(super) fn matters_until(&self) -> Option<Instant> {
        let reporters =
            self.reporters.iter().map(|reporter| reporter.seen.after_micros(reporter.ttl_us)).max();
        let bucket = (self.bucket.spent > 0).then(|| self.bucket.full_at());
        bucket.into_iter().chain(reporters).max()
    }

    /// Takes back what `ask` returns; whether any of it was out.
    pub(super) fn take_back(&mut self, ask: &LeaseAsk, quota: &TokenBucket) -> bool {
        let before = self.leases.len();
        for back in &ask.returns {
            let lease = self.leases.iter().position(|lease| lease.is(&ask.holder, back.id));
            if let Some(lease) = lease.map(|index| self.leases.remove(index)) {
                let credit = lease.credit(*back, quota, self.bucket.updated);
                self.bucket.spent = self.bucket.spent.saturating_sub(credit);
            }
        }
        self.leases.len() < before
    }

    /// Charges what `report` says, as far as that was not charged before; whether that changes the state.
    pub(super) fn take_in(&mut self, report: &Report, quota: &TokenBucket) -> bool {
        let known = self.reporters.iter().position(|reporter| reporter.holder == report.holder);
        let counted = known.and_then(|index| self.reporters.get(index)).map_or(0, |known| known.counted);
        let tokens = report.to.saturating_sub(report.from.max(counted));
        self.bucket = self.bucket.owe(quota, tokens);
        let now = self.bucket.updated;
        if let Some(index) = known {
            // A holder that is there all the time is not written down each time.
            let is_fresh = self.reporters.get(index).is_some_and(|known| {
                known.ttl_us == report.ttl_us && now.micros_since(known.seen) < known.ttl_us.div_ceil(2)
            });
            if tokens == 0 && is_fresh {
                return false;
            }
            self.reporters.remove(index);
        } else if self.reporters.len() >= MAX_REPORTERS {
            return tokens > 0;
        }
        self.reporters.push(Reporter {
            holder: report.holder.clone(),
            counted: counted.max(report.to),
            seen: now,
            ttl_us: report.ttl_us,
        });
        true
    }

    /// The holders that are remembered, and the one of `report`.
    pub(super) fn proxies(&self, report: &Report) -> u64 {
        let is_known = self.reporters.iter().any(|reporter| reporter.holder == report.holder);
        self.reporters.len() as u64 + u64::from(!is_known)
    }

    /// Grants what can be spared of what `ask` wants; how many tokens that are.
    pub(super) fn grant(&mut self, ask: &LeaseAsk, quota: &TokenBucket) -> u64 {
        // A request that came twice is granted once.
        if self.leases.len() >= MAX_LEASES || self.leases.iter().any(|lease| lease.is(&ask.holder, ask.id)) {
            return 0;
        }
        let holders = self.leases.iter().map(|lease| lease.holder.as_str());
        let others: BTreeSet<_> = holders.filter(|holder| *holder != ask.holder).collect();
        let left = quota.parts().saturating_sub(self.bucket.spent) / quota.parts_per_token();
        let tokens = ask.want.min(left / (2 * (others.len() as u64 + 1)));
        if tokens > 0 {
            self.bucket = self.bucket.charge(quota, tokens);
            self.leases.push(Lease {
                holder: ask.holder.clone(),
                id: ask.id,
                tokens,
                granted: self.bucket.updated,
                ttl_us: ask.ttl_us,
            });
        }
        tokens
    }
}

impl Lease {
    fn is(&self, holder: &str, id: u64) -> bool {
        self.holder == holder && self.id == id
    }

    /// The parts that a return at `now` gives back to the bucket.
    ///
    /// Time has refilled the bucket for what was out, too. Giving that back would hand out this time
    /// twice: what can still be given back must never be more than what is spent.
    fn credit(&self, back: Return, quota: &TokenBucket, now: Instant) -> u64 {
        // A capacity that was lowered bounds the tokens too, as it does the spent ones.
        let tokens = back.tokens.min(self.tokens).min(quota.capacity());
        let refilled = now.micros_since(self.granted).saturating_mul(quota.parts_per_micro());
        (tokens * quota.parts_per_token()).saturating_sub(refilled)
    }
}
