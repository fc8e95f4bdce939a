//! The slot table: local buckets in memory that all workers of a proxy share, of a fixed size.
//!
//! The memory is reached by slot number with compare-and-swap, as a proxy's shared data is. A bucket is
//! found by hash: the slot from one half, a fingerprint in the slot from the other. When a slot is full,
//! the bucket that is fullest soonest is given up, the new one among them: its loss forgives least.

use core::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher13};

use crate::bucket::{Bucket, Fit, Standing};
use crate::quota::TokenBucket;
use crate::time::Instant;

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

/// Buckets in one slot.
pub const ENTRIES_PER_SLOT: usize = 8;

/// Bytes of one bucket: the fingerprint and the four numbers of [`Bucket`], 64-bit little-endian each.
pub const ENTRY_BYTES: usize = 40;

/// Attempts to swap a slot before a writer gives up. With a quarter of the swaps failing, as with several
/// workers on one slot and nothing else to do, giving up has a probability below 10⁻¹⁹.
const MAX_ATTEMPTS: usize = 32;

/// Where buckets are in the slots. Holds no bucket itself.
#[derive(Clone, Debug)]
pub struct Table {
    slots: u32,
    seed: [u8; 16],
}

/// What a change to a bucket came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// How the bucket stands after the change, or, where it was refused, without it.
    pub standing: Standing,
    /// Whether another client's bucket that was not full yet had to be given up.
    pub evicted: bool,
}

impl Table {
    /// A table of `slots` slots, at least one. The seed keeps clients from choosing whose slot they fall
    /// into; all who share the slots must use the same.
    pub const fn new(slots: u32, seed: [u8; 16]) -> Self {
        Self { slots: if slots == 0 { 1 } else { slots }, seed }
    }

    /// The most bytes that the table's buckets take.
    pub const fn max_bytes(&self) -> u64 {
        self.slots as u64 * (ENTRIES_PER_SLOT * ENTRY_BYTES) as u64
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
        let (slot, fingerprint) = self.place(key);
        let bytes = slots.load(slot).map(|(bytes, _)| bytes).unwrap_or_default();
        find(&decode(&bytes), fingerprint, quota, now).standing(quota, cost, now)
    }

    /// Takes `cost` tokens if they fit; says in [`Change::standing`] whether they did.
    pub fn charge(
        &self,
        slots: &mut dyn Slots,
        key: &str,
        quota: &TokenBucket,
        cost: u64,
        now: Instant,
    ) -> Change {
        self.change(slots, key, quota, cost, now, |bucket, standing| {
            (standing.fit == Fit::Now).then(|| bucket.charge(quota, cost))
        })
    }

    /// Gives back `cost` tokens that were taken. A bucket that was given up meanwhile gets nothing.
    pub fn refund(&self, slots: &mut dyn Slots, key: &str, quota: &TokenBucket, cost: u64, now: Instant) {
        self.change(slots, key, quota, cost, now, |bucket, _| {
            (bucket.spent > 0).then(|| bucket.refund(quota, cost))
        });
    }

    fn change(
        &self,
        slots: &mut dyn Slots,
        key: &str,
        quota: &TokenBucket,
        cost: u64,
        now: Instant,
        apply: impl Fn(Bucket, Standing) -> Option<Bucket>,
    ) -> Change {
        let (slot, fingerprint) = self.place(key);
        let mut last = Bucket::full(quota, now).standing(quota, cost, now);
        for _ in 0..MAX_ATTEMPTS {
            let loaded = slots.load(slot);
            let (bytes, version) = match &loaded {
                Some((bytes, version)) => (bytes.as_slice(), Some(*version)),
                None => (&[][..], None),
            };
            let mut entries = decode(bytes);
            let bucket = find(&entries, fingerprint, quota, now);
            last = bucket.standing(quota, cost, now);
            let Some(changed) = apply(bucket, last) else {
                return Change { standing: last, evicted: false };
            };
            let after = Standing { fit: last.fit, ..changed.standing(quota, cost, now) };
            let evicted = put(&mut entries, Entry { fingerprint, bucket: changed }, now);
            if slots.store(slot, &encode(&entries), version).is_ok() {
                return Change { standing: after, evicted };
            }
        }
        // Nothing was taken, so nothing may pass.
        let fit = if last.fit == Fit::Now { Fit::After(1) } else { last.fit };
        Change { standing: Standing { fit, ..last }, evicted: false }
    }

    fn place(&self, key: &str) -> (u32, u64) {
        let mut hasher = SipHasher13::new_with_key(&self.seed);
        hasher.write(key.as_bytes());
        let hash = hasher.finish128();
        #[expect(clippy::cast_possible_truncation, reason = "a remainder of a 32-bit number fits in 32 bits")]
        let slot = (hash.h1 % u64::from(self.slots)) as u32;
        (slot, hash.h2)
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    fingerprint: u64,
    bucket: Bucket,
}

/// The client's bucket, settled; full where there is none.
fn find(entries: &[Entry], fingerprint: u64, quota: &TokenBucket, now: Instant) -> Bucket {
    entries
        .iter()
        .find(|entry| entry.fingerprint == fingerprint)
        .map_or_else(|| Bucket::full(quota, now), |entry| entry.bucket.settle(quota, now))
}

/// Puts an entry into its slot; true where a bucket that was not full yet had to go.
fn put(entries: &mut Vec<Entry>, new: Entry, now: Instant) -> bool {
    entries.retain(|entry| entry.fingerprint != new.fingerprint);
    entries.push(new);
    if entries.len() <= ENTRIES_PER_SLOT {
        return false;
    }
    let Some(soonest) =
        (0..entries.len()).min_by_key(|&index| entries.get(index).map(|entry| entry.bucket.full_at()))
    else {
        return false;
    };
    entries.swap_remove(soonest).bucket.full_at() > now
}

fn encode(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.len() * ENTRY_BYTES);
    for Entry { fingerprint, bucket } in entries {
        let fields = [
            *fingerprint,
            bucket.spent,
            bucket.parts_per_token,
            bucket.parts_per_micro,
            bucket.updated.as_micros(),
        ];
        for field in fields {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
    }
    bytes
}

/// The entries of a slot. Bytes that are none, which only a foreign writer leaves, are passed over.
fn decode(bytes: &[u8]) -> Vec<Entry> {
    let mut entries = Vec::with_capacity(ENTRIES_PER_SLOT + 1);
    for chunk in bytes.chunks_exact(ENTRY_BYTES).take(ENTRIES_PER_SLOT) {
        let mut fields = chunk.chunks_exact(8).map(|field| field.try_into().map_or(0, u64::from_le_bytes));
        let mut next = || fields.next().unwrap_or(0);
        entries.push(Entry {
            fingerprint: next(),
            bucket: Bucket {
                spent: next(),
                parts_per_token: next(),
                parts_per_micro: next(),
                updated: Instant::from_micros(next()),
            },
        });
    }
    entries
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Slots in memory; `interfere` makes the next so many stores fail, as another writer does.
    #[derive(Default)]
    pub(crate) struct Memory {
        slots: BTreeMap<u32, (Vec<u8>, u32)>,
        pub(crate) interfere: usize,
        pub(crate) operations: usize,
    }

    impl Slots for Memory {
        fn load(&mut self, slot: u32) -> Option<(Vec<u8>, u32)> {
            self.operations += 1;
            self.slots.get(&slot).cloned()
        }

        fn store(&mut self, slot: u32, bytes: &[u8], version: Option<u32>) -> Result<(), Conflict> {
            self.operations += 1;
            if self.interfere > 0 {
                self.interfere -= 1;
                return Err(Conflict);
            }
            let current = self.slots.get(&slot).map(|(_, version)| *version);
            if current != version {
                return Err(Conflict);
            }
            self.slots.insert(slot, (bytes.to_vec(), current.map_or(1, |version| version + 1)));
            Ok(())
        }
    }

    const NOW: Instant = Instant::from_micros(5_000_000_000);

    fn quota(capacity: u64, rate: &str) -> TokenBucket {
        TokenBucket::new(capacity, rate.parse().unwrap()).unwrap()
    }

    fn remaining(table: &Table, slots: &mut Memory, key: &str, quota: &TokenBucket) -> u64 {
        table.standing(slots, key, quota, 1, NOW).remaining
    }

    #[test]
    fn a_charge_is_seen_by_the_next_reader() {
        let (table, mut slots, quota) = (Table::new(4, [7; 16]), Memory::default(), quota(3, "1/m"));
        for left in [2, 1, 0] {
            let change = table.charge(&mut slots, "a", &quota, 1, NOW);
            assert_eq!((change.standing.fit, change.standing.remaining), (Fit::Now, left));
        }
        let refused = table.charge(&mut slots, "a", &quota, 1, NOW);
        assert_eq!(refused.standing.fit, Fit::After(60_000_000));
        assert_eq!(remaining(&table, &mut slots, "b", &quota), 3);
        table.refund(&mut slots, "a", &quota, 2, NOW);
        assert_eq!(remaining(&table, &mut slots, "a", &quota), 2);
    }

    #[test]
    fn a_lost_race_is_tried_again_and_counts_once() {
        let (table, quota) = (Table::new(1, [7; 16]), quota(3, "1/m"));
        let mut slots = Memory { interfere: 3, ..Memory::default() };
        assert_eq!(table.charge(&mut slots, "a", &quota, 1, NOW).standing.remaining, 2);
        assert_eq!(remaining(&table, &mut slots, "a", &quota), 2);
    }

    #[test]
    fn a_race_without_end_admits_nothing() {
        let (table, quota) = (Table::new(1, [7; 16]), quota(3, "1/m"));
        let mut slots = Memory { interfere: usize::MAX, ..Memory::default() };
        assert_eq!(table.charge(&mut slots, "a", &quota, 1, NOW).standing.fit, Fit::After(1));
        assert!(slots.operations <= 2 * MAX_ATTEMPTS);
    }

    #[test]
    fn a_flood_of_new_clients_does_not_forgive_a_known_one() {
        let (table, mut slots, quota) = (Table::new(16, [7; 16]), Memory::default(), quota(100, "100/m"));
        table.charge(&mut slots, "known", &quota, 60, NOW);
        let evictions = (0..10_000)
            .filter(|client| table.charge(&mut slots, &format!("flood-{client}"), &quota, 1, NOW).evicted)
            .count();
        assert_eq!(remaining(&table, &mut slots, "known", &quota), 40);
        assert!(evictions >= 10_000 - 16 * ENTRIES_PER_SLOT);
        let bytes: usize = slots.slots.values().map(|(bytes, _)| bytes.len()).sum();
        assert!(bytes as u64 <= table.max_bytes());
    }

    #[test]
    fn bytes_of_a_foreign_writer_do_no_harm() {
        let (table, mut slots, quota) = (Table::new(1, [7; 16]), Memory::default(), quota(3, "1/m"));
        for garbage in [vec![], vec![255; 7], vec![255; ENTRY_BYTES * 20 + 3], vec![0; ENTRY_BYTES]] {
            slots.slots.insert(0, (garbage, 9));
            assert_eq!(table.charge(&mut slots, "a", &quota, 1, NOW).standing.remaining, 2);
        }
    }
}
