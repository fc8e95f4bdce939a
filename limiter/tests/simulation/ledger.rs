//! What was taken at the store, seen from outside: every question with its answer.

use std::collections::BTreeMap;

use limiter::policy::Policy;
use limiter::quota::MAX_PARTS;
use limiter::wire::{
    Charge, Charged, Limit, MAX_BATCH_CHARGES, MAX_BODY_BYTES, MAX_CHARGES, MAX_HOLDER_BYTES, MAX_LEASE_ID,
    MAX_RETURNS, MAX_TAKES, MAX_TTL_US, Take, TakeRequest, Taken,
};

use crate::meter::Meter;
use crate::plan::quota;

/// The books of one store key.
#[derive(Default)]
struct Account {
    /// Tokens taken, for a request or as a lease, less those given back.
    taken: u64,
    /// Tokens taken for requests alone.
    costs: u64,
    /// Tokens of requests that were let pass.
    admitted: u64,
    /// Tokens charged by reports.
    reported: u64,
    /// Tokens that may be reported again: their holder was away for so long that the store has forgotten it.
    excused: u64,
    /// When a holder reported last.
    heard_us: BTreeMap<String, u64>,
    /// Leases that are out: their tokens and when they end.
    out: BTreeMap<(String, u64), (u64, u64)>,
    /// From when the bucket is full, so that the store forgets what is out.
    full_us: u64,
}

/// The books.
#[derive(Default)]
pub(crate) struct Ledger {
    accounts: BTreeMap<String, Account>,
    /// Of keys that no leases are taken of: what the store lets pass.
    meters: BTreeMap<String, Meter>,
    /// What the store takes before does not count for them.
    from_us: u64,
    /// Whether requests pass as soon as they are counted, so that none is reported that does not pass.
    checks_reports: bool,
    pub(crate) calls: u64,
    pub(crate) granted: u64,
    pub(crate) returned: u64,
}

impl Ledger {
    pub(crate) fn new(checks_reports: bool) -> Self {
        Self { checks_reports, ..Self::default() }
    }

    /// Notes what the store has answered.
    ///
    /// `full_us`: microseconds until each bucket of the take was full, before.
    pub(crate) fn note(
        &mut self,
        take: &Take,
        taken: &Taken,
        full_us: &[u64],
        now_us: u64,
    ) -> Result<(), String> {
        let Taken::Decided { admitted, charges } = taken else { return Ok(()) };
        for ((charge, charged), full_us) in take.charges.iter().zip(charges).zip(full_us) {
            self.note_report(charge, *charged, *admitted, (*full_us, now_us))?;
            self.note_charge(charge, *charged, *admitted, now_us)?;
        }
        Ok(())
    }

    /// What reports charge must have been let through. Seen where nothing else of the same charge moves the
    /// bucket but its cost.
    fn note_report(
        &mut self,
        charge: &Charge,
        charged: Charged,
        is_admitted: bool,
        (full_us, now_us): (u64, u64),
    ) -> Result<(), String> {
        let Some(report) = charge.report.as_ref().filter(|_| charge.lease.is_none()) else { return Ok(()) };
        let Limit::TokenBucket(bucket) = charge.limit;
        let (micro, token) = (u128::from(bucket.parts_per_micro()), u128::from(bucket.parts_per_token()));
        let parts = u128::from(charged.full_us.saturating_sub(full_us)) * micro;
        // The spans are rounded up to microseconds, in which far less than a token comes back.
        let tokens = u64::try_from((parts + token / 2) / token).unwrap();
        let cost = if is_admitted && charged.wait_us == Some(0) { charge.cost } else { 0 };
        let account = self.accounts.entry(charge.key.clone()).or_default();
        account.reported += tokens.saturating_sub(cost);
        let heard_us = account.heard_us.insert(report.holder.clone(), now_us);
        if heard_us.is_some_and(|heard_us| now_us - heard_us >= report.ttl_us / 2) {
            account.excused += report.to - report.from;
        }
        if self.checks_reports && account.reported > account.admitted + account.excused {
            let (reported, admitted) = (account.reported, account.admitted);
            return Err(format!(
                "{reported} tokens of {} are reported, {admitted} were let through",
                charge.key
            ));
        }
        Ok(())
    }

    fn note_charge(
        &mut self,
        charge: &Charge,
        charged: Charged,
        is_admitted: bool,
        now_us: u64,
    ) -> Result<(), String> {
        let account = self.accounts.entry(charge.key.clone()).or_default();
        if now_us >= account.full_us {
            account.out.clear();
        }
        account.full_us = now_us + charged.full_us;
        for back in charge.lease.iter().flat_map(|ask| ask.returns.iter().map(move |back| (ask, back))) {
            if let Some((tokens, _)) = account.out.remove(&(back.0.holder.clone(), back.1.id)) {
                account.taken -= tokens.min(back.1.tokens);
                self.returned += tokens.min(back.1.tokens);
            }
        }
        if !is_admitted || charged.wait_us != Some(0) {
            return if charged.granted == 0 { Ok(()) } else { Err("a refused take grants".to_owned()) };
        }
        account.taken += charge.cost + charged.granted;
        account.costs += charge.cost;
        if let Some(ask) = charge.lease.as_ref().filter(|_| charged.granted > 0) {
            self.granted += charged.granted;
            let lease = (charged.granted, now_us + ask.ttl_us);
            let before = account.out.insert((ask.holder.clone(), ask.id), lease);
            if before.is_some_and(|(_, ends_us)| ends_us > now_us) {
                return Err(format!("lease {} of {} is granted twice", ask.id, charge.key));
            }
        }
        if charge.lease.is_some() || now_us < self.from_us {
            return Ok(());
        }
        let Limit::TokenBucket(bucket) = charge.limit;
        let meter = self.meters.entry(charge.key.clone()).or_insert_with(|| Meter::new(bucket, 0, 0));
        match meter.admit(charge.cost, now_us) {
            Err(excess) => Err(format!("the store takes {excess} parts of {} too many", charge.key)),
            Ok(()) => Ok(()),
        }
    }

    /// Notes that a request has passed.
    ///
    /// Where it `must_ask`, what it costs must have been taken before.
    pub(crate) fn admit(&mut self, key: &str, cost: u64, must_ask: bool) -> Result<(), String> {
        let account = self.accounts.entry(key.to_owned()).or_default();
        account.admitted += cost;
        if must_ask && account.admitted > account.taken {
            return Err(format!(
                "{} tokens of {key} are spent, {} were taken",
                account.admitted, account.taken
            ));
        }
        Ok(())
    }

    /// Notes that the store's clock has stepped back: it may have dropped what is out.
    pub(crate) fn step_back(&mut self) {
        // Spans until a bucket is full count what the clock is behind, and not only what is spent.
        self.checks_reports = false;
        self.accounts.values_mut().for_each(|account| account.full_us = 0);
    }

    /// Notes that a policy has another limit, which counts alone from `from_us`.
    pub(crate) fn edit(&mut self, policy: &Policy, now_us: u64, from_us: u64) {
        let is_edited = |key: &String| key.ends_with(&format!(":{}", policy.name));
        for (_, account) in self.accounts.iter_mut().filter(|(key, _)| is_edited(key)) {
            account.full_us = 0;
        }
        if from_us > now_us {
            self.meters.retain(|key, _| !is_edited(key));
            self.from_us = self.from_us.max(from_us);
        }
        for (_, meter) in self.meters.iter_mut().filter(|(key, _)| is_edited(key)) {
            meter.edit(quota(policy), 0);
        }
    }

    /// What was taken of a key for requests alone, less what requests have passed with: what refused ones
    /// were charged.
    pub(crate) fn charged_in_vain(&self, key: &str) -> u64 {
        self.accounts.get(key).map_or(0, |account| account.costs.saturating_sub(account.admitted))
    }

    /// Tokens that were taken and nobody has spent.
    pub(crate) fn unspent(&self) -> u64 {
        self.accounts.values().map(|account| account.taken.saturating_sub(account.admitted)).sum()
    }
}

/// Whether a question keeps the bounds of the messages.
pub(crate) fn check_bounds(request: &TakeRequest, bytes: usize) -> Result<(), String> {
    let is_within = bytes <= MAX_BODY_BYTES
        && (1..=MAX_TAKES).contains(&request.takes.len())
        && request.takes.iter().all(|take| (1..=MAX_CHARGES).contains(&take.charges.len()))
        && request.takes.iter().map(|take| take.charges.len()).sum::<usize>() <= MAX_BATCH_CHARGES;
    let charges = || request.takes.iter().flat_map(|take| &take.charges);
    let are_costs_within =
        charges().all(|charge| charge.cost > 0 || charge.lease.is_some() || charge.report.is_some());
    let are_reports_within = charges().filter_map(|charge| charge.report.as_ref()).all(|report| {
        (1..=MAX_HOLDER_BYTES).contains(&report.holder.len())
            && report.from <= report.to
            && report.to <= MAX_LEASE_ID
            && (1..=MAX_TTL_US).contains(&report.ttl_us)
    });
    let leases = charges().filter_map(|charge| charge.lease.as_ref());
    let are_leases_within = leases.into_iter().all(|ask| {
        (1..=MAX_HOLDER_BYTES).contains(&ask.holder.len())
            && ask.id <= MAX_LEASE_ID
            && ask.want <= MAX_PARTS
            && (1..=MAX_TTL_US).contains(&ask.ttl_us)
            && ask.returns.len() <= MAX_RETURNS
    });
    if is_within && are_costs_within && are_leases_within && are_reports_within {
        Ok(())
    } else {
        Err(format!("a question beyond the bounds: {request:?}"))
    }
}
