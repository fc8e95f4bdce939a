//! Charges of a random history: planned before it begins, carried out in view of what went before.

use limiter::quota::TokenBucket;
use limiter::wire::{Charge, LeaseAsk, MAX_LEASE_ID, MAX_TTL_US, Report, Return};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::script::{charge, quota};

// Few enough for the sweep of one call to see them all, so that a key is gone as soon as it has expired.
pub(crate) const KEYS: usize = 4;

/// Names that begin like each other, and few, so that most come again while they are out.
pub(crate) const HOLDERS: [&str; 4] = ["a", "a1", "A", "b"];
pub(crate) const IDS: [u64; 3] = [1, 11, (1 << 53) - 1];

/// Common ones, odd ones, and those at the edge of what doubles count.
pub(crate) fn quotas() -> Vec<TokenBucket> {
    vec![
        quota(1, "1/s"),
        quota(5, "2/s"),
        quota(5, "7/s"),
        quota(100, "100/m"),
        quota(100, "100/h"),
        quota(7, "3/s"),
        quota(1_000, "999983/d"),
        quota(52_124, "999983/d"),
        quota(52_124, "86399/d"),
        quota(1, "1/d"),
        quota(1 << 52, "1000000000/s"),
        quota((1 << 52) - 1, "1000000/s"),
        quota(4_503_599_627, "999999937/s"),
        quota(75_059_993, "59/m"),
    ]
}

/// What planned charges are carried out in view of.
pub(crate) struct Past {
    pub(crate) limits: [TokenBucket; KEYS],
    /// Of each key, by holder.
    pub(crate) reported: [[Reported; HOLDERS.len()]; KEYS],
}

/// The numbers of a holder's last report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reported {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) key: usize,
    edit: bool,
    quota: usize,
    cost: Amount,
    /// At no cost, where it asks for leases or reports.
    alone: bool,
    shadow: bool,
    lease: Option<PlannedLease>,
    report: Option<PlannedReport>,
}

#[derive(Clone, Debug)]
struct PlannedLease {
    holder: usize,
    id: usize,
    want: Amount,
    ttl_us: u64,
    returns: Vec<(usize, Amount)>,
}

#[derive(Clone, Debug)]
struct PlannedReport {
    holder: usize,
    begin: Begin,
    tokens: Amount,
    ttl_us: u64,
}

/// Where a report begins, in view of its holder's last one.
#[derive(Clone, Copy, Debug)]
enum Begin {
    /// Where that ended.
    AfterLast,
    /// Where that began, for its answer was lost.
    WithLast,
    /// So far after that: what is between is known to be charged.
    Beyond(u64),
    /// At nothing: the holder has lost its count.
    Anew,
    /// The network brings the last one again, or one that is older by so much.
    Late(u64),
}

/// An amount of tokens in view of a quota.
#[derive(Clone, Copy, Debug)]
enum Amount {
    Nothing,
    Tokens(u64),
    Share(u64),
    Whole,
    TooMuch(u64),
}

impl Amount {
    fn of(self, quota: &TokenBucket) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Tokens(tokens) => tokens,
            Self::Share(parts) => quota.capacity().div_ceil(parts),
            Self::Whole => quota.capacity(),
            Self::TooMuch(more) => quota.capacity().saturating_add(more),
        }
    }
}

impl Planned {
    /// The charge as it is now; an edit changes the limits, a report what its holder goes on from.
    pub(crate) fn carry_out(&self, past: &mut Past) -> Charge {
        if self.edit {
            past.limits[self.key] = quotas()[self.quota];
        }
        let quota = past.limits[self.key];
        let lease = self.lease.as_ref().map(|lease| lease.carry_out(&quota));
        let report = self.report.as_ref().map(|report| {
            let last = &mut past.reported[self.key][report.holder];
            report.carry_out(&quota, last)
        });
        let cost = if self.alone && (lease.is_some() || report.is_some()) { 0 } else { self.cost.of(&quota) };
        Charge { shadow: self.shadow, lease, report, ..charge(&self.key.to_string(), quota, cost) }
    }
}

impl PlannedLease {
    fn carry_out(&self, quota: &TokenBucket) -> LeaseAsk {
        LeaseAsk {
            holder: HOLDERS[self.holder].to_owned(),
            id: IDS[self.id],
            want: self.want.of(quota),
            ttl_us: self.ttl_us,
            returns: self
                .returns
                .iter()
                .map(|(id, tokens)| Return { id: IDS[*id], tokens: tokens.of(quota) })
                .collect(),
        }
    }
}

impl PlannedReport {
    fn carry_out(&self, quota: &TokenBucket, last: &mut Reported) -> Report {
        let to = |from: u64| from.saturating_add(self.tokens.of(quota)).min(MAX_LEASE_ID);
        let (from, to) = match self.begin {
            Begin::AfterLast => (last.to, to(last.to)),
            Begin::WithLast => (last.from, to(last.to)),
            Begin::Beyond(gap) => {
                let from = last.to.saturating_add(gap).min(MAX_LEASE_ID);
                (from, to(from))
            }
            Begin::Anew => (0, to(0)),
            Begin::Late(by) => (last.from.saturating_sub(by), last.to.saturating_sub(by)),
        };
        if !matches!(self.begin, Begin::Late(_)) {
            *last = Reported { from, to };
        }
        Report { holder: HOLDERS[self.holder].to_owned(), from, to, ttl_us: self.ttl_us }
    }
}

pub(crate) fn charges() -> impl Strategy<Value = Planned> {
    let cost = prop_oneof![
        6 => (1..4_u64).prop_map(Amount::Tokens),
        3 => (1..9_u64).prop_map(Amount::Share),
        2 => Just(Amount::Whole),
        1 => prop_oneof![1..3_u64, (1_u64 << 53)..u64::MAX].prop_map(Amount::TooMuch),
    ];
    let [edit, alone, shadow] = [0.1, 0.4, 0.2].map(prop::bool::weighted);
    let lease = prop::option::weighted(0.7, leases());
    let report = prop::option::weighted(0.4, reports());
    (0..KEYS, edit, 0..quotas().len(), cost, alone, shadow, lease, report).prop_map(
        |(key, edit, quota, cost, alone, shadow, lease, report)| Planned {
            key,
            edit,
            quota,
            cost,
            alone,
            shadow,
            lease,
            report,
        },
    )
}

fn ttls() -> impl Strategy<Value = u64> {
    prop_oneof![1 => 1..10_u64, 2 => 1..3_000_000_u64, 4 => 1..=MAX_TTL_US, 2 => Just(MAX_TTL_US)]
}

fn leases() -> impl Strategy<Value = PlannedLease> {
    let want = prop_oneof![
        1 => Just(Amount::Nothing),
        2 => (1..9_u64).prop_map(Amount::Tokens),
        3 => (1..9_u64).prop_map(Amount::Share),
    ];
    let tokens = prop_oneof![
        1 => (0..9_u64).prop_map(Amount::Tokens),
        1 => (1..9_u64).prop_map(Amount::Share),
        2 => prop_oneof![Just(1_u64), Just(u64::MAX)].prop_map(Amount::TooMuch),
    ];
    let returns = vec((0..IDS.len(), tokens), 0..4);
    (0..HOLDERS.len(), 0..IDS.len(), want, ttls(), returns).prop_map(
        |(holder, id, want, ttl_us, mut returns)| {
            returns.sort_by_key(|(id, _)| *id);
            returns.dedup_by_key(|(id, _)| *id);
            PlannedLease { holder, id, want, ttl_us, returns }
        },
    )
}

fn reports() -> impl Strategy<Value = PlannedReport> {
    let gap = prop_oneof![6 => 1..9_u64, 1 => 0..=MAX_LEASE_ID];
    let begin = prop_oneof![
        4 => Just(Begin::AfterLast),
        4 => Just(Begin::WithLast),
        1 => gap.clone().prop_map(Begin::Beyond),
        1 => Just(Begin::Anew),
        1 => Just(Begin::Late(0)),
        1 => gap.prop_map(Begin::Late),
    ];
    // Nothing comes back from the greatest debts, so that they are few.
    let tokens = prop_oneof![
        80 => Just(Amount::Nothing),
        160 => (1..9_u64).prop_map(Amount::Tokens),
        60 => (1..9_u64).prop_map(Amount::Share),
        20 => (0..3_u64).prop_map(Amount::TooMuch),
        1 => ((1_u64 << 40)..u64::MAX).prop_map(Amount::TooMuch),
    ];
    (0..HOLDERS.len(), begin, tokens, ttls()).prop_map(|(holder, begin, tokens, ttl_us)| PlannedReport {
        holder,
        begin,
        tokens,
        ttl_us,
    })
}
