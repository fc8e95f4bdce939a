//! The policies that apply to one request, and what has become of each so far.

use crate::decision::{Decision, Finding, Mark, Outcome, Verdict};
use crate::policy::{OnFailure, Policy, Sync};
use crate::quota::TokenBucket;
use crate::request::{Demand, Terms};
use crate::tally::Debit;
use crate::time::Instant;
use crate::wire::{LeaseAsk, Report};

/// A policy that applies to a request.
#[derive(Debug)]
pub(crate) struct Applied {
    pub(crate) policy: usize,
    pub(crate) key: String,
    pub(crate) terms: Terms,
    pub(crate) cost: u64,
    pub(crate) finding: Finding,
    /// Tokens were taken for it here.
    pub(crate) taken: Option<Hold>,
    /// Whether that may go back later; see [`crate::bucket::Bucket::hold`].
    pub(crate) is_held: bool,
    pub(crate) asks: Asks,
    /// What the store is told with the question.
    pub(crate) report: Option<Report>,
}

/// What was taken here for a request, to be given back where another policy denies it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hold {
    /// Its cost, of a local bucket.
    Bucket,
    /// Its cost, of leases of which the first ends then.
    Lease { ends: Instant },
    /// What a tally was charged.
    Tally(Debit),
}

/// Whether the store is asked about a policy.
#[derive(Debug)]
pub(crate) enum Asks {
    /// It need not be.
    No,
    /// It is, or would have to be, for the cost alone.
    Cost,
    /// It is, for the cost and a lease.
    Lease(LeaseAsk),
}

impl Applied {
    pub(crate) fn new(demand: Demand) -> Self {
        Self {
            policy: demand.policy,
            key: demand.key,
            terms: demand.terms,
            cost: demand.cost,
            finding: Finding::Unknown,
            taken: None,
            is_held: false,
            asks: Asks::No,
            report: None,
        }
    }

    /// Forgets all but what applies, to be asked for again.
    pub(crate) fn start_anew(&mut self) {
        (self.finding, self.taken, self.asks) = (Finding::Unknown, None, Asks::No);
        (self.is_held, self.report) = (false, None);
    }

    pub(crate) fn is_asked(&self) -> bool {
        !matches!(self.asks, Asks::No)
    }

    /// How the policy counts, where it counts at all.
    pub(crate) fn counted<'a>(&self, policies: &'a [Policy]) -> Option<Counted<'a>> {
        let policy = policies.get(self.policy)?;
        match self.terms {
            Terms::Bucket { part, .. } => {
                Some(Counted { policy, quota: part, cost: self.cost, sync: policy.sync })
            }
            Terms::Blocked | Terms::NoIdentity => None,
        }
    }

    fn is_shadow(&self, policies: &[Policy]) -> bool {
        policies.get(self.policy).is_some_and(|policy| policy.shadow)
    }

    /// True where this policy keeps the request from passing.
    pub(crate) fn refuses(&self, policies: &[Policy]) -> bool {
        self.finding.denies() && !self.is_shadow(policies)
    }

    /// What a policy that could not be asked wants, where it closes.
    fn closes(&self, policies: &[Policy]) -> Option<core::time::Duration> {
        let counted = self.counted(policies).filter(|counted| self.is_asked() && !counted.policy.shadow)?;
        match counted.sync.on_failure() {
            Some(OnFailure::Closed { retry_after }) => Some(retry_after),
            _ => None,
        }
    }
}

impl Counted<'_> {
    /// Whether this proxy uses its share while the store cannot be asked.
    pub(crate) fn shares(&self) -> bool {
        self.sync.on_failure() == Some(OnFailure::Share)
    }
}

/// A policy with a bucket.
#[derive(Clone, Copy)]
pub(crate) struct Counted<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) quota: TokenBucket,
    pub(crate) cost: u64,
    pub(crate) sync: Sync,
}

pub(crate) fn admitted(applied: &[Applied]) -> Decision {
    decision(Verdict::Admit, applied, passed)
}

pub(crate) fn refused(applied: &[Applied], policies: &[Policy]) -> Decision {
    decision(Verdict::Refuse, applied, |one| match (one.finding.denies(), one.is_shadow(policies)) {
        (true, false) => Outcome::Refused,
        (true, true) => Outcome::ShadowRefused,
        (false, _) => Outcome::Spared,
    })
}

/// The store could not be asked: each policy's `on_failure` says what becomes of the request.
pub(crate) fn failed(applied: &[Applied], policies: &[Policy]) -> Decision {
    match applied.iter().filter_map(|one| one.closes(policies)).max() {
        None => {
            decision(
                Verdict::Admit,
                applied,
                |one| {
                    if one.is_asked() { Outcome::Unprotected } else { passed(one) }
                },
            )
        }
        Some(retry_after) => decision(Verdict::Unavailable { retry_after }, applied, |one| {
            if one.closes(policies).is_some() { Outcome::Unavailable } else { Outcome::Spared }
        }),
    }
}

/// The outcome of a policy for a request that passes.
fn passed(one: &Applied) -> Outcome {
    if one.finding.denies() { Outcome::ShadowRefused } else { Outcome::Admitted }
}

fn decision(verdict: Verdict, applied: &[Applied], outcome: impl Fn(&Applied) -> Outcome) -> Decision {
    let marks = applied
        .iter()
        .map(|one| {
            let outcome = outcome(one);
            // What was given back no longer stands as it was noted.
            let standing =
                if one.taken.is_some() && outcome == Outcome::Spared { None } else { one.finding.standing() };
            Mark { policy: one.policy, terms: one.terms, outcome, standing }
        })
        .collect();
    Decision { verdict, marks }
}
