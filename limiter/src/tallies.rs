//! Tallies as one worker keeps them: requests are counted in what its proxy shares, and the store is told in
//! the background, by whichever worker has counted.

use core::time::Duration;
use std::collections::BTreeMap;

use crate::bucket::{Fate, Fit, Standing};
use crate::errand::Errand;
use crate::proxy::Proxy;
use crate::purse::MAX_REFUSAL;
use crate::quota::TokenBucket;
use crate::tally::{Debit, Heard, PRESENCE, Tally, interval};
use crate::time::Instant;
use crate::wire::Report;

/// The most keys of which one worker has yet to report; beyond them it reports what it counts at once.
pub(crate) const MAX_DUE: usize = 4096;

/// How much longer than its patience a request waits at most: until the next tick, and that may be late.
const MAX_LATE: Duration = Duration::from_millis(50);

/// The most keys that one tick looks at; the rest follow with the next.
const MAX_LOOKS: usize = 256;

/// For how long the number of proxies that one key showed holds for keys that nothing is known of.
const FLEET_FOR: Duration = Duration::from_mins(1);

/// What comes of a request.
pub(crate) struct Tallied {
    pub(crate) standing: Standing,
    /// What was taken, where it passes.
    pub(crate) debit: Option<Debit>,
}

/// What one worker has to report, and its way to what its proxy has counted.
#[derive(Debug)]
pub(crate) struct Tallies {
    holder: String,
    /// How long an answer is waited for.
    patience: Duration,
    due: BTreeMap<String, Due>,
    /// Keys that are asked about as soon as it is known what becomes of the request that was counted.
    urgent: Vec<(String, TokenBucket)>,
    fleet: Fleet,
}

/// A key that is looked at then.
#[derive(Clone, Copy, Debug)]
struct Due {
    quota: TokenBucket,
    at: Instant,
}

/// The most proxies that a key has shown lately.
#[derive(Clone, Copy, Debug, Default)]
struct Fleet {
    proxies: u64,
    seen: Instant,
}

impl Tallies {
    pub(crate) fn new(holder: String, patience: Duration) -> Self {
        Self { holder, patience, due: BTreeMap::new(), urgent: Vec::new(), fleet: Fleet::default() }
    }

    /// Questions that have come up and that no request waits for, at most `room`. None while the store cannot be
    /// asked; what is to be told stays so.
    pub(crate) fn errands(&mut self, proxy: &mut Proxy<'_>, is_away: bool, room: usize) -> Vec<Errand> {
        let mut errands = Vec::new();
        for (key, quota) in core::mem::take(&mut self.urgent) {
            if is_away {
                continue;
            }
            // A question that is noted and does not leave would make the store look silent.
            if errands.len() < room {
                errands.extend(self.errand(proxy, &key, &quota));
            } else if self.due.len() < MAX_DUE || self.due.contains_key(&key) {
                self.due.insert(key, Due { quota, at: proxy.now });
            }
        }
        errands
    }

    /// True while there is something to report.
    pub(crate) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Lets a request of `cost` tokens through, or not, by what is known here. `is_away`: the store cannot be
    /// asked.
    pub(crate) fn take(
        &mut self,
        proxy: &mut Proxy<'_>,
        key: &str,
        quota: &TokenBucket,
        cost: u64,
        is_away: bool,
    ) -> Tallied {
        let (now, patience, fleet) = (proxy.now, self.patience, self.fleet.proxies);
        let done = proxy.tally(key, quota, |tally| {
            let is_alone = is_away || tally.is_unheard(patience, now);
            tally.is_alone |= is_alone;
            tally.pay_back(quota, fleet);
            let weight = tally.weight(fleet, is_alone);
            let standing = tally.standing(quota, cost, weight, now);
            let debit = (standing.fit == Fit::Now).then(|| tally.count(quota, cost, weight));
            let standing = match debit {
                Some(_) => Standing { fit: Fit::Now, ..tally.standing(quota, cost, weight, now) },
                None => standing,
            };
            // A client that is refused costs no more questions than elsewhere.
            let pause = if debit.is_some() { interval(quota) } else { MAX_REFUSAL };
            let asks = !is_away && now >= tally.asked_until && now >= tally.heard.after(pause);
            let next = tally.heard.after(interval(quota)).max(tally.asked_until);
            ((standing, debit, asks, next), debit.is_some())
        });
        let Some((standing, debit, asks, next)) = done else {
            // Other workers were faster each time: nothing was taken, so nothing may pass.
            let standing = Standing { remaining: 0, fit: Fit::After(1), full_us: 1 };
            return Tallied { standing, debit: None };
        };
        if asks {
            self.urgent.push((key.to_owned(), *quota));
        }
        if debit.is_some() {
            self.tell_after(next, key, quota);
        }
        Tallied { standing, debit }
    }

    /// How a key stands towards a request that something else has denied already. Changes nothing.
    pub(crate) fn standing(
        &self,
        proxy: &mut Proxy<'_>,
        key: &str,
        quota: &TokenBucket,
        cost: u64,
    ) -> Standing {
        let (now, patience, fleet) = (proxy.now, self.patience, self.fleet.proxies);
        let done = proxy.tally(key, quota, |tally| {
            let weight = tally.weight(fleet, tally.is_unheard(patience, now));
            (tally.standing(quota, cost, weight, now), false)
        });
        done.unwrap_or(Standing { remaining: 0, fit: Fit::After(1), full_us: 1 })
    }

    /// Changes what becomes of what was taken for a request.
    pub(crate) fn adjust(
        &mut self,
        proxy: &mut Proxy<'_>,
        key: &str,
        quota: &TokenBucket,
        cost: u64,
        debit: Debit,
        fate: Fate,
    ) {
        let held_until = proxy.now.after(self.patience).after(MAX_LATE);
        // Where other workers are faster each time, tokens that are not given back are lost on the safe side.
        let _ = proxy.tally(key, quota, |tally| {
            tally.adjust(quota, cost, debit, fate);
            if fate == Fate::Hold {
                tally.hold_until(held_until);
            }
            ((), true)
        });
        if fate == Fate::Confirm {
            self.tell_after(proxy.now.after(interval(quota)), key, quota);
        }
    }

    /// The report that goes with a question for a request.
    pub(crate) fn report_along(
        &self,
        proxy: &mut Proxy<'_>,
        key: &str,
        quota: &TokenBucket,
    ) -> Option<Report> {
        proxy.tally(key, quota, |tally| (self.report_of(tally, quota), false))
    }

    /// The store has answered a question that carried a report.
    pub(crate) fn on_heard(&mut self, proxy: &mut Proxy<'_>, key: &str, quota: &TokenBucket, heard: Heard) {
        let now = proxy.now;
        let is_over = now > self.fleet.seen.after(FLEET_FOR);
        if heard.proxies >= self.fleet.proxies || is_over {
            self.fleet = Fleet { proxies: heard.proxies, seen: now };
        }
        // Where other workers are faster each time, the next answer says it again.
        let _ = proxy.tally(key, quota, |tally| {
            tally.hear(quota, heard, now);
            ((), true)
        });
    }

    /// Time has passed: what is due and is not reported yet is to be, of so many keys at a time, those first that
    /// have waited longest.
    pub(crate) fn on_tick(&mut self, proxy: &mut Proxy<'_>) {
        let now = proxy.now;
        let mut due: Vec<(&String, &Due)> = self.due.iter().filter(|(_, due)| due.at <= now).collect();
        due.sort_by_key(|(_, due)| due.at);
        let keys: Vec<(String, TokenBucket)> =
            due.into_iter().take(MAX_LOOKS).map(|(key, due)| (key.clone(), due.quota)).collect();
        for (key, quota) in keys {
            let has_news = proxy.tally(&key, &quota, |tally| (tally.has_news(), false));
            if has_news.is_none_or(|has_news| !has_news) {
                self.due.remove(&key);
                continue;
            }
            // It is looked at again, to see whether the report has arrived.
            let at = now.after(interval(&quota).max(self.patience));
            self.urgent.push((key.clone(), quota));
            self.due.insert(key, Due { quota, at });
        }
    }

    /// A report that leaves by itself, unless another one has just left.
    fn errand(&self, proxy: &mut Proxy<'_>, key: &str, quota: &TokenBucket) -> Option<Errand> {
        let (now, patience) = (proxy.now, self.patience);
        let done = proxy.tally(key, quota, |tally| {
            let asks = now >= tally.asked_until;
            if asks {
                tally.ask(patience, now);
            }
            (asks.then(|| self.report_of(tally, quota)), asks)
        });
        done.flatten().map(|report| Errand {
            key: key.to_owned(),
            quota: *quota,
            lease: None,
            report: Some(report),
        })
    }

    fn report_of(&self, tally: &mut Tally, quota: &TokenBucket) -> Report {
        tally.pay_back(quota, self.fleet.proxies);
        let ttl_us = u64::try_from(PRESENCE.as_micros()).unwrap_or(u64::MAX);
        Report { holder: self.holder.clone(), from: tally.reported, to: tally.counted, ttl_us }
    }

    /// Has a key looked at then, or now where there is no room to come back to it.
    fn tell_after(&mut self, at: Instant, key: &str, quota: &TokenBucket) {
        if self.due.contains_key(key) {
            return;
        }
        if self.due.len() < MAX_DUE {
            self.due.insert(key.to_owned(), Due { quota: *quota, at });
        } else {
            self.urgent.push((key.to_owned(), *quota));
        }
    }
}
