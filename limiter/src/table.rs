//! The slot table: local buckets and leases in memory that all workers of a proxy share, of a fixed size.
//!
//! The memory is reached by slot number with compare-and-swap, as a proxy's shared data is. An entry is
//! found by hash: the slot from one half, a fingerprint in the slot from the other.
//!
//! When a slot is full, a new entry takes the place of the one of its own policy whose loss forgives least: a
//! flood of one policy's clients is the other policies' business at most once a slot, and never that of a
//! client of its own policy who has spent more than the flood's.

mod entry;
mod own;

use core::cell::Cell;
use core::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher13};

use crate::bucket::{Bucket, Fate, Fit, Standing};
use crate::key::policy_part;
use crate::lease::Lease;
use crate::quota::TokenBucket;
use crate::tally::Tally;
use crate::time::Instant;
use entry::{Entry, Held, Name, decode, encode};

pub use entry::{ENTRIES_PER_SLOT, MAX_ENTRY_BYTES};
pub use own::OwnSlots;

/// Memory in numbered slots, shared by several writers.
pub trait Slots {
    /// A slot's bytes and the version to swap against; `None` for a slot never written.
    fn load(&mut self, slot: u32) -> Option<(Vec<u8>, u32)>;

    /// Writes a slot if its version is still `version`, or, with `None`, if it was never written.
    ///
    /// # Errors
    /// [`Conflict`] where another writer was first; nothing was written.
    fn store(&mut self, slot: u32, bytes: &[u8], version: Option<u32>) -> Result<(), Conflict>;
}

/// Another writer was first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict;

/// Attempts to swap a slot before a writer gives up. With a quarter of the swaps failing, as with several
/// workers on one slot and nothing else to do, giving up has a probability below 10⁻¹⁹.
const MAX_ATTEMPTS: usize = 32;

/// Where buckets are in the slots. Holds no bucket itself.
#[derive(Clone, Debug)]
pub struct Table {
    slots: u32,
    seed: [u8; 16],
    /// Entries given up that were worth something.
    evictions: Cell<u64>,
}

impl Table {
    /// A table of `slots` slots, at least one. The seed keeps clients from choosing whose slot they fall
    /// into; all who share the slots must use the same.
    pub const fn new(slots: u32, seed: [u8; 16]) -> Self {
        Self { slots: if slots == 0 { 1 } else { slots }, seed, evictions: Cell::new(0) }
    }

    /// A name for all who share the slots, as long as they do: letters and digits. It tells nothing about the
    /// seed.
    pub fn name(&self) -> String {
        let (_, name) = self.hash(|hasher| hasher.write(b"the name of this table"));
        format!("{name:016x}")
    }

    /// How many slots it has.
    pub const fn slots(&self) -> u32 {
        self.slots
    }

    /// The most bytes that are in the slots, without what it costs to keep them.
    pub const fn max_bytes(&self) -> u64 {
        self.slots as u64 * (ENTRIES_PER_SLOT * MAX_ENTRY_BYTES) as u64
    }

    /// Entries given up for others that were worth something, since this was last asked.
    pub const fn take_evictions(&self) -> u64 {
        self.evictions.replace(0)
    }

    /// How a bucket stands towards a request of `cost` tokens. Changes nothing.
    pub fn standing(
        &self,
        slots: &mut dyn Slots,
        key: &str,
        quota: &TokenBucket,
        cost: u64,
        now: Instant,
    ) -> Standing {
        let (slot, name) = self.place(key);
        let bytes = slots.load(slot).map(|(bytes, _)| bytes).unwrap_or_default();
        settled(find(&decode(&bytes), name), quota, now).standing(quota, cost, now)
    }

    /// Takes `cost` tokens if they fit. How the bucket stands after that, or, where it was refused, without it.
    pub fn charge(
        &self,
        slots: &mut dyn Slots,
        key: &str,
        quota: &TokenBucket,
        cost: u64,
        now: Instant,
    ) -> Standing {
        let mut standing = Bucket::full(quota, now).standing(quota, cost, now);
        let done = self.update(slots, self.place(key), now, &mut |held| {
            let bucket = settled(held, quota, now);
            standing = bucket.standing(quota, cost, now);
            (standing.fit == Fit::Now).then(|| {
                let charged = bucket.charge(quota, cost);
                standing = Standing { fit: Fit::Now, ..charged.standing(quota, cost, now) };
                Held::Bucket(charged)
            })
        });
        match done {
            // Nothing was taken, so nothing may pass.
            Err(Conflict) if standing.fit == Fit::Now => Standing { fit: Fit::After(1), ..standing },
            Ok(()) | Err(Conflict) => standing,
        }
    }

    /// Changes what becomes of tokens that were taken from a bucket. One that was given up meanwhile stays so.
    pub fn adjust(
        &self,
        slots: &mut dyn Slots,
        key: &str,
        quota: &TokenBucket,
        tokens: u64,
        fate: Fate,
        now: Instant,
    ) {
        // Where other writers are faster each time, tokens that are not given back are lost on the safe side.
        let _ = self.update(slots, self.place(key), now, &mut |held| {
            let bucket = settled(held, quota, now);
            (bucket.spent > 0).then(|| Held::Bucket(fate.of(bucket, quota, tokens)))
        });
    }

    /// Changes what is leased of a key; `None` where other writers were faster each time, and nothing was
    /// changed. `apply` may run several times; it says whether it has changed the lease.
    ///
    /// A lease is found under its limit too: after an edit the store is asked anew.
    pub(crate) fn lease<R>(
        &self,
        slots: &mut dyn Slots,
        key: &str,
        quota: &TokenBucket,
        now: Instant,
        mut apply: impl FnMut(&mut Lease) -> (R, bool),
    ) -> Option<R> {
        let mut result = None;
        let limit = [quota.capacity(), quota.parts_per_token(), quota.parts_per_micro()];
        let place = self.find_place(key, |hasher| {
            hasher.write(key.as_bytes());
            for number in limit {
                hasher.write(&number.to_le_bytes());
            }
        });
        let done = self.update(slots, place, now, &mut |held| {
            let mut lease = match held {
                Some(Held::Lease(lease)) => lease,
                _ => Lease::default(),
            };
            let (made, is_changed) = apply(&mut lease);
            result = Some(made);
            is_changed.then_some(Held::Lease(lease))
        });
        result.filter(|_| done.is_ok())
    }

    /// Changes what was let through of a key without asking; `None` where other writers were faster each time,
    /// and nothing was changed. `apply` may run several times; it says whether it has changed the tally.
    pub(crate) fn tally<R>(
        &self,
        slots: &mut dyn Slots,
        key: &str,
        quota: &TokenBucket,
        now: Instant,
        mut apply: impl FnMut(&mut Tally) -> (R, bool),
    ) -> Option<R> {
        let mut result = None;
        let done = self.update(slots, self.place(key), now, &mut |held| {
            let mut tally = match held {
                Some(Held::Tally(tally)) => tally.settle(quota, now),
                // What was counted here alone is carried over.
                held => Tally::new(settled(held, quota, now), now),
            };
            let (made, is_changed) = apply(&mut tally);
            result = Some(made);
            is_changed.then_some(Held::Tally(tally))
        });
        result.filter(|_| done.is_ok())
    }

    /// Changes what is held in one place.
    fn update(
        &self,
        slots: &mut dyn Slots,
        (slot, name): (u32, Name),
        now: Instant,
        apply: &mut dyn FnMut(Option<Held>) -> Option<Held>,
    ) -> Result<(), Conflict> {
        for _ in 0..MAX_ATTEMPTS {
            let loaded = slots.load(slot);
            let (bytes, version) = match &loaded {
                Some((bytes, version)) => (bytes.as_slice(), Some(*version)),
                None => (&[][..], None),
            };
            let mut entries = decode(bytes);
            let Some(held) = apply(find(&entries, name)) else { return Ok(()) };
            let evicts = put(&mut entries, Entry { name, held }, now);
            if slots.store(slot, &encode(&entries), version).is_ok() {
                self.evictions.set(self.evictions.get().saturating_add(u64::from(evicts)));
                return Ok(());
            }
        }
        Err(Conflict)
    }

    fn place(&self, key: &str) -> (u32, Name) {
        self.find_place(key, |hasher| hasher.write(key.as_bytes()))
    }

    fn find_place(&self, key: &str, write: impl FnOnce(&mut SipHasher13)) -> (u32, Name) {
        let (slot, fingerprint) = self.hash(write);
        let (group, _) = self.hash(|hasher| hasher.write(policy_part(key).as_bytes()));
        #[expect(clippy::cast_possible_truncation, reason = "a remainder of a 32-bit number fits in 32 bits")]
        let slot = (slot % u64::from(self.slots)) as u32;
        #[expect(clippy::cast_possible_truncation, reason = "a part of a hash is a hash")]
        let group = group as u32;
        (slot, Name { fingerprint, group })
    }

    fn hash(&self, write: impl FnOnce(&mut SipHasher13)) -> (u64, u64) {
        let mut hasher = SipHasher13::new_with_key(&self.seed);
        write(&mut hasher);
        let hash = hasher.finish128();
        (hash.h1, hash.h2)
    }
}

fn find(entries: &[Entry], name: Name) -> Option<Held> {
    entries.iter().find(|entry| entry.name == name).map(|entry| entry.held)
}

/// A client's bucket; full where there is none.
fn settled(held: Option<Held>, quota: &TokenBucket, now: Instant) -> Bucket {
    match held {
        Some(Held::Bucket(bucket) | Held::Tally(Tally { bucket, .. })) => bucket.settle(quota, now),
        _ => Bucket::full(quota, now),
    }
}

/// Puts an entry into its slot; true where one had to go that was worth something.
///
/// The new one stays: were it given up whenever it is worth least, a client among others who have spent more
/// would never be counted at all.
fn put(entries: &mut Vec<Entry>, new: Entry, now: Instant) -> bool {
    entries.retain(|entry| entry.name != new.name);
    let mut forgives = false;
    if entries.len() >= ENTRIES_PER_SLOT {
        // Nothing is given up for what nothing is lost by forgetting.
        let is_worthless = |entry: &Entry| entry.held.worth(now) == Held::WORTHLESS;
        if is_worthless(&new) && !entries.iter().any(is_worthless) {
            return false;
        }
        let is_sibling = |entry: &Entry| entry.name.group == new.name.group;
        let has_sibling = entries.iter().any(is_sibling);
        // What is worth nothing goes first, whosever it is.
        let order = |entry: &Entry| {
            let worth = entry.held.worth(now);
            (worth > Held::WORTHLESS && has_sibling && !is_sibling(entry), worth)
        };
        let least = (0..entries.len()).min_by_key(|index| entries.get(*index).map(order));
        if let Some(least) = least {
            forgives = entries.swap_remove(least).held.worth(now) > Held::WORTHLESS;
        }
    }
    entries.push(new);
    forgives
}

#[cfg(test)]
pub(crate) mod tests;
