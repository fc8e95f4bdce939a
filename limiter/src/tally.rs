//! What a proxy lets through without asking: its copy of the store's bucket, which it charges itself, and how
//! far it has told the store.
//!
//! Tokens are numbered one after the other, and a report says up to which number the store is to have charged
//! them, as TCP acknowledges bytes: a report that is lost is covered by the next, and one that comes twice
//! charges nothing more.

use core::time::Duration;

use crate::bucket::{Bucket, Fate, Standing};
use crate::quota::{MAX_PARTS, TokenBucket};
use crate::time::Instant;
use crate::wire::MAX_LEASE_ID;

/// How long the store remembers a proxy that it has not heard of: what is a share of the limit does not change
/// with every pause of a client.
pub const PRESENCE: Duration = Duration::from_secs(10);

/// How often a proxy reports what it lets through of a limit: a fiftieth of what fills the bucket, so that the
/// proxies let through little that the others do not know of; not so often that reporting is all that is done.
pub fn interval(quota: &TokenBucket) -> Duration {
    let fill = Duration::from_micros(quota.micros_for(quota.parts()));
    (fill / 50).clamp(Duration::from_millis(100), Duration::from_secs(1))
}

/// What a proxy has let through of one key, and what it knows of the store's bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The store's bucket as it was last heard of, charged with what was let through here since.
    pub bucket: Bucket,
    /// The number of the last token that was let through.
    pub counted: u64,
    /// The number of the last token that the store need not be told of: it has said to have charged it, or time has
    /// paid it back while the store was not heard of.
    pub reported: u64,
    /// Proxies that the store knew of then.
    pub proxies: u64,
    /// When the question left whose answer was taken in last.
    pub heard: Instant,
    /// Since when the store owes an answer; zero where it owes none.
    pub owed_since: Instant,
    /// Until when no other question leaves.
    pub asked_until: Instant,
    /// The parts of the bucket that the store knows to be spent.
    pub known: u64,
    /// What has come back beyond that since the store was heard of.
    pub spare: u64,
    /// Whether requests have been charged by this proxy's share since the store was heard of.
    pub is_alone: bool,
    /// When it is known of all requests that tokens are held for whether they pass.
    pub held_until: Instant,
}

/// What was taken of a tally, to be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Debit {
    /// How many times its cost a request was charged.
    weight: u64,
}

/// An answer of the store about a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    /// When the question left.
    pub(crate) sent_at: Instant,
    /// The number of the last token that is charged.
    pub(crate) reported: u64,
    /// Microseconds until the bucket is full.
    pub(crate) full_us: u64,
    /// Proxies that the store knows of.
    pub(crate) proxies: u64,
}

impl Tally {
    /// Of a key that nothing is known of.
    pub fn new(bucket: Bucket, now: Instant) -> Self {
        // Numbers start at the clock, so that a tally that was forgotten does not lend its numbers to another.
        let counted = now.as_micros();
        let never = Instant::default();
        Self {
            bucket,
            counted,
            reported: counted,
            proxies: 1,
            heard: never,
            owed_since: never,
            asked_until: never,
            known: 0,
            spare: 0,
            is_alone: false,
            held_until: never,
        }
    }

    /// The tally at `now`, in the parts of `quota`.
    #[must_use]
    pub fn settle(self, quota: &TokenBucket, now: Instant) -> Self {
        let rate = |bucket: &Bucket| (bucket.parts_per_token, bucket.parts_per_micro);
        let bucket = self.bucket.settle(quota, now);
        if rate(&bucket) != rate(&self.bucket) {
            // What is known less of is charged more of, on the safe side.
            return Self { bucket, known: bucket.spent, spare: 0, ..self };
        }
        let back = now.micros_since(self.bucket.updated).saturating_mul(quota.parts_per_micro());
        let known = self.known.saturating_sub(back);
        let spare = self.spare.saturating_add(back - (self.known - known)).min(MAX_PARTS);
        Self { bucket, known, spare, ..self }
    }

    /// Lets time pay back what this proxy has let through by its share, as it would have at the store: by this
    /// proxy's part of what came back, and no more than there is to pay.
    pub(crate) fn pay_back(&mut self, quota: &TokenBucket, fleet: u64) {
        let a_token = quota.parts_per_token().saturating_mul(self.share_of(fleet));
        let pending = self.counted.saturating_sub(self.reported);
        // Time is not saved for what comes later.
        self.spare = self.spare.min(pending.saturating_mul(a_token));
        if self.is_alone {
            let tokens = self.spare / a_token;
            self.reported += tokens;
            self.spare -= tokens * a_token;
        }
    }

    /// How many proxies share what there is.
    fn share_of(&self, fleet: u64) -> u64 {
        self.proxies.max(fleet).max(1)
    }

    /// Whether there is something to tell the store.
    pub fn has_news(&self) -> bool {
        self.counted > self.reported
    }

    /// When nothing is lost by forgetting it.
    pub fn matters_until(&self) -> Instant {
        self.bucket.full_at()
    }

    /// Whether the store has owed an answer for longer than `patience`.
    pub(crate) fn is_unheard(&self, patience: Duration, now: Instant) -> bool {
        self.owed_since != Instant::default() && now > self.owed_since.after(patience)
    }

    /// How many times its cost a request is charged: once while the store is heard of, so that this proxy may
    /// use all that it knows of; as often as there are proxies while it is not, so that all together use no more.
    pub(crate) fn weight(&self, fleet: u64, is_alone: bool) -> u64 {
        if is_alone { self.share_of(fleet) } else { 1 }
    }

    /// How the settled tally stands towards a request of `cost` tokens that is charged `weight` times.
    ///
    /// A share below one request still lets one through when the bucket is full; what that exceeds the share by
    /// has to come back before the next.
    pub(crate) fn standing(&self, quota: &TokenBucket, cost: u64, weight: u64, now: Instant) -> Standing {
        let needed = cost.saturating_mul(weight).min(quota.capacity().max(cost));
        let standing = self.bucket.standing(quota, needed, now);
        Standing { remaining: standing.remaining / weight.max(1), ..standing }
    }

    /// Lets a request through that fits.
    pub(crate) fn count(&mut self, quota: &TokenBucket, cost: u64, weight: u64) -> Debit {
        self.bucket = self.bucket.owe(quota, cost.saturating_mul(weight));
        self.counted = self.counted.saturating_add(cost).min(MAX_LEASE_ID);
        Debit { weight }
    }

    /// Changes what becomes of tokens that were taken for a request. What is held is not counted yet, so that it
    /// is not reported before it is known to pass.
    pub(crate) fn adjust(&mut self, quota: &TokenBucket, cost: u64, debit: Debit, fate: Fate) {
        self.bucket = fate.of(self.bucket, quota, cost.saturating_mul(debit.weight));
        match fate {
            // What another worker has reported in the meantime stays counted, on the safe side.
            Fate::Hold | Fate::Refund => {
                self.counted = self.counted.saturating_sub(cost).max(self.reported);
            }
            Fate::Confirm => self.counted = self.counted.saturating_add(cost).min(MAX_LEASE_ID),
            Fate::Release => {}
        }
    }

    /// Notes that a request that tokens are held for is decided by then, or never.
    pub(crate) fn hold_until(&mut self, end: Instant) {
        self.held_until = self.held_until.max(end);
    }

    /// Notes that a question leaves.
    pub(crate) fn ask(&mut self, patience: Duration, now: Instant) {
        self.asked_until = now.after(patience);
        if self.owed_since == Instant::default() {
            self.owed_since = now;
        }
    }

    /// Takes in what the store says. Answers that were overtaken say nothing new.
    pub(crate) fn hear(&mut self, quota: &TokenBucket, heard: Heard, now: Instant) {
        if heard.sent_at < self.heard {
            return;
        }
        self.heard = heard.sent_at;
        self.proxies = heard.proxies.max(1);
        (self.owed_since, self.asked_until) = (Instant::default(), Instant::default());
        (self.spare, self.is_alone) = (0, false);
        self.reported = self.reported.max(heard.reported);
        // What was given back after another worker had reported it stays counted.
        self.counted = self.counted.max(self.reported);
        let spent = heard.full_us.saturating_mul(quota.parts_per_micro()).min(MAX_PARTS);
        // Time counts from now on: what came back on the way is not known to have come back.
        let bucket = Bucket { spent, ..Bucket::full(quota, now) };
        self.known = spent;
        let bucket = bucket.owe(quota, self.counted.saturating_sub(self.reported));
        // The store does not know of what is held. What a worker that has died held is held no more.
        let held = if now < self.held_until { self.bucket.held } else { 0 };
        self.bucket = Bucket { spent: bucket.spent.saturating_add(held).min(MAX_PARTS), held, ..bucket };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::from_micros(1_000_000);
    const PATIENCE: Duration = Duration::from_millis(50);

    fn quota() -> TokenBucket {
        TokenBucket::new(100, "10/s".parse().unwrap()).unwrap()
    }

    fn tally() -> Tally {
        Tally::new(Bucket::full(&quota(), START), START)
    }

    fn heard(reported: u64, spent: u64, proxies: u64, sent_at: Instant) -> Heard {
        Heard { sent_at, reported, full_us: spent * 100_000, proxies }
    }

    fn left(tally: &Tally, now: Instant) -> u64 {
        tally.settle(&quota(), now).standing(&quota(), 1, 1, now).remaining
    }

    #[test]
    fn an_answer_takes_the_place_of_what_was_known_and_keeps_what_it_does_not_know_of() {
        let mut tally = tally();
        tally.count(&quota(), 30, 1);
        let reported = tally.counted;
        tally.count(&quota(), 5, 1);
        tally.hear(&quota(), heard(reported, 60, 2, START), START);
        assert_eq!(left(&tally, START), 35);
        assert!(tally.has_news());
    }

    #[test]
    fn an_answer_that_was_overtaken_says_nothing() {
        let mut tally = tally();
        let later = START.after_micros(10);
        tally.hear(&quota(), heard(tally.counted, 60, 2, later), later);
        let before = tally;
        tally.hear(&quota(), heard(tally.counted, 10, 1, START), later);
        assert_eq!(tally, before);
    }

    #[test]
    fn what_is_held_is_not_reported_and_not_forgotten() {
        let mut tally = tally();
        let debit = tally.count(&quota(), 30, 1);
        tally.adjust(&quota(), 30, debit, Fate::Hold);
        tally.hold_until(START.after(PATIENCE));
        assert!(!tally.has_news());
        tally.hear(&quota(), heard(tally.counted, 10, 1, START), START);
        assert_eq!(left(&tally, START), 60);
        let mut confirmed = tally;
        confirmed.adjust(&quota(), 30, debit, Fate::Confirm);
        assert_eq!((confirmed.counted - confirmed.reported, left(&confirmed, START)), (30, 60));
        tally.adjust(&quota(), 30, debit, Fate::Release);
        assert_eq!((tally.has_news(), left(&tally, START)), (false, 90));
    }

    #[test]
    fn a_report_never_ends_before_it_begins() {
        let mut tally = tally();
        let debit = tally.count(&quota(), 30, 1);
        let reported = tally.counted;
        // Another worker has reported what this one gives back.
        tally.adjust(&quota(), 30, debit, Fate::Refund);
        tally.hear(&quota(), heard(reported, 30, 1, START), START);
        assert_eq!(tally.counted, tally.reported);
        for _ in 0..3 {
            tally.count(&quota(), MAX_LEASE_ID / 2, 1);
        }
        assert_eq!(tally.counted, MAX_LEASE_ID);
    }

    #[test]
    fn time_pays_back_a_share_of_what_came_back_and_never_in_advance() {
        for proxies in [1, 2, 5] {
            let mut tally = tally();
            tally.hear(&quota(), heard(tally.counted, 0, proxies, START), START);
            // A second before anything was let through pays for nothing.
            let mut now = START.after(Duration::from_secs(1));
            tally = tally.settle(&quota(), now);
            tally.is_alone = true;
            tally.pay_back(&quota(), 1);
            tally.count(&quota(), 20, proxies);
            now = now.after(Duration::from_secs(1));
            tally = tally.settle(&quota(), now);
            tally.pay_back(&quota(), 1);
            assert_eq!(tally.counted - tally.reported, 20 - 10 / proxies);
            // Nor is anything paid twice.
            tally.pay_back(&quota(), 1);
            assert_eq!(tally.counted - tally.reported, 20 - 10 / proxies);
        }
    }

    #[test]
    fn an_answer_to_an_earlier_report_does_not_undo_what_time_has_paid_back() {
        let mut tally = tally();
        let first = tally.counted;
        tally.count(&quota(), 20, 1);
        tally.is_alone = true;
        let later = START.after(Duration::from_secs(1));
        tally = tally.settle(&quota(), later);
        tally.pay_back(&quota(), 1);
        tally.hear(&quota(), heard(first, 0, 1, START), later);
        assert_eq!(tally.counted - tally.reported, 10);
    }

    #[test]
    fn what_the_store_knows_comes_back_first() {
        let mut tally = tally();
        tally.hear(&quota(), heard(tally.counted, 50, 1, START), START);
        tally.count(&quota(), 20, 1);
        tally.is_alone = true;
        // Of six seconds at ten a second, five are the store's.
        let now = START.after(Duration::from_secs(6));
        let mut tally = tally.settle(&quota(), now);
        tally.pay_back(&quota(), 1);
        assert_eq!(tally.counted - tally.reported, 10);
    }

    #[test]
    fn it_is_unheard_when_an_answer_is_owed_for_longer_than_it_is_waited_for() {
        let mut tally = tally();
        let late = START.after(PATIENCE).after_micros(1);
        assert!(!tally.is_unheard(PATIENCE, late));
        tally.ask(PATIENCE, START);
        tally.ask(PATIENCE, START.after(PATIENCE));
        assert!(!tally.is_unheard(PATIENCE, START.after(PATIENCE)));
        assert!(tally.is_unheard(PATIENCE, late));
        tally.hear(&quota(), heard(tally.counted, 0, 3, START), late);
        assert!(!tally.is_unheard(PATIENCE, late));
        assert_eq!((tally.weight(1, true), tally.weight(7, true), tally.weight(7, false)), (3, 7, 1));
    }
}
