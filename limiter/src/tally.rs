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
        self.counted = self.counted.saturating_add(cost);
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
            Fate::Confirm => self.counted = self.counted.saturating_add(cost),
            Fate::Release => {}
        }
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
        let spent = heard.full_us.saturating_mul(quota.parts_per_micro()).min(MAX_PARTS);
        // Time counts from now on: what came back on the way is not known to have come back.
        let bucket = Bucket { spent, ..Bucket::full(quota, now) };
        self.known = spent;
        let bucket = bucket.owe(quota, self.counted.saturating_sub(self.reported));
        // The store does not know of what is held.
        let held = self.bucket.held;
        self.bucket = Bucket { spent: bucket.spent.saturating_add(held).min(MAX_PARTS), held, ..bucket };
    }
}
