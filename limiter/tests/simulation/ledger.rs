//! What was taken at the store, seen from outside: every question with its answer.

use std::collections::BTreeMap;

use limiter::policy::Policy;
use limiter::wire::{
    Charge, Charged, Limit, MAX_BODY_BYTES, MAX_CHARGES, MAX_HOLDER_BYTES, MAX_LEASE_ID, MAX_RETURNS,
    MAX_TAKES, MAX_TTL_US, TakeReply, TakeRequest, Taken,
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
    pub(crate) calls: u64,
    pub(crate) granted: u64,
    pub(crate) returned: u64,
}

impl Ledger {
    /// Notes what the store has answered.
    pub(crate) fn note(
        &mut self,
        request: &TakeRequest,
        reply: &TakeReply,
        now_us: u64,
    ) -> Result<(), String> {
        self.calls += 1;
        for (take, taken) in request.takes.iter().zip(&reply.takes) {
            let Taken::Decided { admitted, charges } = taken else { continue };
            for (charge, charged) in take.charges.iter().zip(charges) {
                self.note_charge(charge, *charged, *admitted, now_us)?;
            }
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

    /// Notes that a request has passed: what it costs must have been taken before.
    pub(crate) fn admit(&mut self, key: &str, cost: u64) -> Result<(), String> {
        let account = self.accounts.entry(key.to_owned()).or_default();
        account.admitted += cost;
        if account.admitted > account.taken {
            return Err(format!(
                "{} tokens of {key} are spent, {} were taken",
                account.admitted, account.taken
            ));
        }
        Ok(())
    }

    /// Notes that the store's clock has stepped back: it may have dropped what is out.
    pub(crate) fn step_back(&mut self) {
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
        self.accounts.get(key).map_or(0, |account| account.costs - account.admitted)
    }

    /// Tokens that were taken and nobody has spent.
    pub(crate) fn unspent(&self) -> u64 {
        self.accounts.values().map(|account| account.taken - account.admitted).sum()
    }
}

/// Whether a question keeps the bounds of the messages.
pub(crate) fn check_bounds(request: &TakeRequest, bytes: usize) -> Result<(), String> {
    let is_within = bytes <= MAX_BODY_BYTES
        && (1..=MAX_TAKES).contains(&request.takes.len())
        && request.takes.iter().all(|take| (1..=MAX_CHARGES).contains(&take.charges.len()));
    let leases =
        request.takes.iter().flat_map(|take| &take.charges).filter_map(|charge| charge.lease.as_ref());
    let are_leases_within = leases.into_iter().all(|ask| {
        (1..=MAX_HOLDER_BYTES).contains(&ask.holder.len())
            && ask.id <= MAX_LEASE_ID
            && (1..=MAX_TTL_US).contains(&ask.ttl_us)
            && ask.returns.len() <= MAX_RETURNS
    });
    if is_within && are_leases_within {
        Ok(())
    } else {
        Err(format!("a question beyond the bounds: {request:?}"))
    }
}
