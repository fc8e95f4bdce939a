//! Leases as one worker keeps them: it draws slices of what its proxy holds, has the store asked for more, and
//! gives back what is left.

use core::time::Duration;
use std::collections::BTreeMap;

use crate::bucket::{Fit, Standing};
use crate::errand::Errand;
use crate::lease::{Lease, ttl};
use crate::proxy::Proxy;
use crate::purse::{Piece, Purse};
use crate::quota::TokenBucket;
use crate::time::Instant;
use crate::wire::{LeaseAsk, MAX_RETURNS, Return};

/// The most keys of which one worker holds tokens of its own; beyond them it takes from its proxy's each time.
pub const MAX_SLICES: usize = 1024;

/// How often a worker whose slices are all in use looks for those that hold nothing any more.
const LOOK_THROUGH_EVERY: Duration = Duration::from_millis(10);

/// What a worker draws lasts about so long at the demand it has seen.
const SLICE_HORIZON: Duration = Duration::from_millis(25);

/// What a request finds of a leased limit.
#[derive(Debug)]
pub(crate) enum Found {
    /// Its cost was taken from leased tokens, of which the first end then.
    Taken(Standing, Instant),
    /// The store has refused, and cannot have changed its mind yet.
    Denied(Standing),
    /// The store must be asked, for the cost and for this lease.
    Ask(LeaseAsk),
    /// The store would have to be asked, and is not.
    Nothing,
}

/// A lease that is looked at before it ends, to give back what is left of it: first what workers hold goes
/// back to their proxy, then what the proxy holds to the store.
#[derive(Clone, Copy, Debug)]
struct Due {
    quota: TokenBucket,
    ends: Instant,
    at: Instant,
}

impl Due {
    /// When a worker gives back.
    fn for_worker(quota: &TokenBucket, ends: Instant) -> Self {
        Self { quota: *quota, ends, at: ends.before(ttl(quota) * 3 / 8) }
    }

    /// When a proxy does.
    fn for_proxy(self) -> Self {
        Self { at: self.ends.before(ttl(&self.quota) / 4), ..self }
    }
}

/// What comes of drawing from a proxy's purse.
struct Drawn {
    found: Found,
    slice: Purse,
    renewal: Option<LeaseAsk>,
}

/// What an answer of the store says about a lease that was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    /// What was granted, perhaps nothing.
    pub(crate) piece: Piece,
    /// Whether anything was wanted.
    pub(crate) is_wanted: bool,
    /// Tokens left in the store.
    pub(crate) rest: u64,
}

/// What one worker holds, and its way to what its proxy holds.
#[derive(Debug)]
pub(crate) struct Leases {
    holder: String,
    /// For how long a question that is under way keeps others from being asked in the background.
    patience: Duration,
    slices: BTreeMap<String, Purse>,
    /// When there was last made room among them.
    looked_through: Instant,
    /// What this worker gives back, and when.
    due: BTreeMap<String, Due>,
    errands: Vec<Errand>,
}

impl Leases {
    pub(crate) fn new(holder: String, patience: Duration) -> Self {
        Self {
            holder,
            patience,
            slices: BTreeMap::new(),
            looked_through: Instant::default(),
            due: BTreeMap::new(),
            errands: Vec::new(),
        }
    }

    /// Questions that have come up and that no request waits for.
    pub(crate) fn take_errands(&mut self) -> Vec<Errand> {
        core::mem::take(&mut self.errands)
    }

    /// The question about a key that has just come up, if one has.
    pub(crate) fn last_errand_about(&mut self, key: &str) -> Option<&mut Errand> {
        self.errands.last_mut().filter(|errand| errand.key == key)
    }

    /// True while leases are out that will be looked at.
    pub(crate) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Takes `cost` tokens from what is held, the worker's first. Where `may_ask` is false the answer is
    /// never [`Found::Ask`].
    pub(crate) fn take(
        &mut self,
        proxy: &mut Proxy<'_>,
        key: &str,
        quota: &TokenBucket,
        cost: u64,
        may_ask: bool,
    ) -> Found {
        let now = proxy.now;
        if let Some(slice) = self.slices.get_mut(key)
            && let Some(ends) = slice.spend(cost, now)
        {
            return Found::Taken(Standing { fit: Fit::Now, ..slice.standing(quota, cost, now) }, ends);
        }
        let slice = self.slices.get(key).copied().unwrap_or_default();
        if cost > quota.capacity() || slice.fits_at(quota, cost, now).is_some() {
            return Found::Denied(slice.standing(quota, cost, now));
        }
        let drawn = proxy.lease(key, quota, |lease| {
            let drawn = self.draw(lease, slice, quota, cost, may_ask, now);
            let is_changed = !matches!(drawn.found, Found::Denied(_) | Found::Nothing);
            (drawn, is_changed)
        });
        // Where other workers were faster each time, the store is asked; it decides without their tokens.
        let Drawn { found, slice, renewal } = drawn.unwrap_or_else(|| {
            let ask = Lease::default().ask(&self.holder, quota, 0, self.patience, now);
            let found = if may_ask { Found::Ask(ask) } else { Found::Nothing };
            Drawn { found, slice, renewal: None }
        });
        if let Some(ends) = slice.first_end(now) {
            self.will_be_due(key, Due::for_worker(quota, ends));
        }
        self.keep(key, slice, now);
        if let Some(ask) = renewal {
            self.tell(key, quota, ask);
        }
        found
    }

    /// Takes `cost` tokens from what the proxy holds, and as many more as this worker will soon use.
    fn draw(
        &self,
        lease: &mut Lease,
        mut slice: Purse,
        quota: &TokenBucket,
        cost: u64,
        may_ask: bool,
        now: Instant,
    ) -> Drawn {
        let ttl = ttl(quota);
        if slice.live(now).saturating_add(lease.purse.live(now)) < cost {
            if lease.purse.fits_at(quota, cost, now).is_some() {
                slice.learn_refusal(&lease.purse);
                return Drawn {
                    found: Found::Denied(slice.standing(quota, cost, now)),
                    slice,
                    renewal: None,
                };
            }
            if !may_ask {
                return Drawn { found: Found::Nothing, slice, renewal: None };
            }
            let want = lease.purse.demand(ttl / 2, now);
            lease.purse.see(now);
            let ask = lease.ask(&self.holder, quota, want, self.patience, now);
            return Drawn { found: Found::Ask(ask), slice, renewal: None };
        }
        // Half of what is there stays for the other workers, as long as that is enough for this request.
        let missing = cost - slice.live(now).min(cost);
        let mut wanted = slice.demand(SLICE_HORIZON, now).min(lease.purse.live(now) / 2).max(missing);
        while wanted > 0 {
            let Some(piece) = lease.purse.draw(wanted, now) else { break };
            wanted -= piece.tokens;
            slice.add(piece, now);
        }
        // There was enough, and a purse never drops what it was given.
        let ends = slice.spend(cost, now).unwrap_or(now);
        slice.rest = lease.purse.live(now).saturating_add(lease.purse.rest);
        let standing = Standing { fit: Fit::Now, ..slice.standing(quota, cost, now) };
        // Asked for before it is needed, so that a steady client never waits.
        let is_low = lease.purse.is_low(ttl * 3 / 8, now);
        let renewal = (is_low && lease.purse.has_room(now) && now >= lease.asked_until).then(|| {
            let want = lease.purse.demand(ttl / 2, now);
            lease.ask(&self.holder, quota, want, self.patience, now)
        });
        Drawn { found: Found::Taken(standing, ends), slice, renewal }
    }

    /// Gives back tokens that were taken for a request that another policy denied, and that end at `ends`.
    pub(crate) fn put_back(&mut self, key: &str, cost: u64, ends: Instant, now: Instant) {
        if let Some(slice) = self.slices.get_mut(key) {
            slice.put_back(cost, ends, now);
        }
    }

    /// The store has granted a lease, perhaps of nothing, and has `rest` tokens left.
    pub(crate) fn on_granted(&mut self, proxy: &mut Proxy<'_>, key: &str, quota: &TokenBucket, grant: Grant) {
        let (now, Grant { piece, is_wanted, rest }) = (proxy.now, grant);
        if !is_wanted && piece.live(now) == 0 {
            return;
        }
        // Where other workers were faster each time, the lease is lost, on the safe side.
        let _ = proxy.lease(key, quota, |lease| {
            lease.purse.rest = rest;
            if piece.live(now) > 0 {
                lease.purse.add(piece, now);
                lease.asked_until = Instant::default();
            } else if is_wanted {
                // There was nothing to spare. Requests go on asking for themselves.
                lease.asked_until = now.after(ttl(quota) / 4);
            }
            ((), true)
        });
        // What this worker knew of a refusal is older.
        if let Some(slice) = self.slices.get_mut(key) {
            slice.rest = rest;
            if piece.live(now) > 0 {
                slice.refused_until = Instant::default();
            }
        }
        if piece.live(now) > 0 {
            self.will_be_due(key, Due::for_worker(quota, piece.ends));
        }
    }

    /// The store has refused `cost` tokens, which fit at `fits_at`, and has `rest`.
    pub(crate) fn on_refused(
        &mut self,
        proxy: &mut Proxy<'_>,
        key: &str,
        quota: &TokenBucket,
        cost: u64,
        fits_at: Instant,
        rest: u64,
    ) {
        let now = proxy.now;
        let _ = proxy.lease(key, quota, |lease| {
            lease.purse.refuse(quota, cost, fits_at, rest, now);
            ((), true)
        });
        let mut slice = self.slices.get(key).copied().unwrap_or_default();
        slice.refuse(quota, cost, fits_at, rest, now);
        self.keep(key, slice, now);
    }

    /// Gives back what is left of leases that are about to end.
    pub(crate) fn on_tick(&mut self, proxy: &mut Proxy<'_>) {
        let now = proxy.now;
        let is_due = |due: &Due| due.at <= now;
        let keys: Vec<String> =
            self.due.iter().filter(|(_, due)| is_due(due)).map(|(key, _)| key.clone()).collect();
        for key in keys {
            let Some(due) = self.due.remove(&key) else { continue };
            self.empty_slice(proxy, &key, due);
            if is_due(&due.for_proxy()) {
                self.return_lease(proxy, &key, &due.quota);
                // Others end later, and are looked at then.
                let shared = proxy.lease(&key, &due.quota, |lease| (lease.purse.first_end(now), false));
                let own = self.slices.get(&key).and_then(|slice| slice.first_end(now));
                if let Some(ends) = shared.flatten().into_iter().chain(own).min() {
                    self.will_be_due(&key, Due::for_worker(&due.quota, ends));
                }
            } else {
                self.due.insert(key, due.for_proxy());
            }
        }
    }

    /// A worker gives back to its proxy.
    fn empty_slice(&mut self, proxy: &mut Proxy<'_>, key: &str, due: Due) {
        let now = proxy.now;
        let Some(slice) = self.slices.get_mut(key) else { return };
        let pieces: Vec<Piece> = slice.end_before(due.ends, now).collect();
        if pieces.is_empty() {
            return;
        }
        // Where other workers are faster each time, the tokens are lost, on the safe side.
        let homeless = proxy.lease(key, &due.quota, |lease| {
            let gone = |piece: &&Piece| !lease.purse.rejoin(**piece, now);
            let homeless: Vec<Piece> = pieces.iter().filter(gone).copied().collect();
            let is_changed = homeless.len() < pieces.len();
            (homeless, is_changed)
        });
        // A lease that has made room for others at the proxy is still known to the store.
        let named = homeless.into_iter().flatten().filter(|piece| piece.id > 0);
        let returns: Vec<Return> =
            named.map(|piece| Return { id: piece.id, tokens: piece.tokens }).take(MAX_RETURNS).collect();
        if !returns.is_empty() {
            let question = Lease::default().question(&self.holder, &due.quota, now);
            self.tell(key, &due.quota, LeaseAsk { returns, ..question });
        }
    }

    /// A proxy gives back to the store.
    fn return_lease(&mut self, proxy: &mut Proxy<'_>, key: &str, quota: &TokenBucket) {
        let now = proxy.now;
        let ask = proxy.lease(key, quota, |lease| {
            let ask = lease.give_back(&self.holder, quota, now);
            let is_changed = ask.is_some();
            (ask, is_changed)
        });
        if let Some(Some(ask)) = ask {
            self.tell(key, quota, ask);
        }
    }

    /// A question that takes, wants and returns nothing.
    pub(crate) fn probe(&self, key: &str, quota: &TokenBucket, now: Instant) -> Errand {
        let ask = Lease::default().question(&self.holder, quota, now);
        Errand { key: key.to_owned(), quota: *quota, lease: Some(ask), report: None }
    }

    fn tell(&mut self, key: &str, quota: &TokenBucket, ask: LeaseAsk) {
        self.errands.push(Errand { key: key.to_owned(), quota: *quota, lease: Some(ask), report: None });
    }

    fn will_be_due(&mut self, key: &str, due: Due) {
        if let Some(known) = self.due.get_mut(key) {
            if due.at < known.at {
                *known = due;
            }
        } else if self.due.len() < MAX_SLICES {
            // What is not looked at is lost with its lease, on the safe side.
            self.due.insert(key.to_owned(), due);
        }
    }

    fn keep(&mut self, key: &str, slice: Purse, now: Instant) {
        let is_worthless = |slice: &Purse| slice.live(now) == 0 && slice.refused_until <= now;
        if let Some(kept) = self.slices.get_mut(key) {
            *kept = slice;
            return;
        }
        // What was never drawn says nothing, not even of the demand.
        if slice.stock == 0 && is_worthless(&slice) {
            return;
        }
        if self.slices.len() >= MAX_SLICES && now >= self.looked_through.after(LOOK_THROUGH_EVERY) {
            self.looked_through = now;
            self.slices.retain(|_, slice| !is_worthless(slice));
        }
        // A worker that is full takes from its proxy each time. What it has drawn in excess is lost, on the
        // safe side.
        if self.slices.len() < MAX_SLICES {
            self.slices.insert(key.to_owned(), slice);
        }
    }
}
