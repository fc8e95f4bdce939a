//! What a slot's bytes hold: a few entries, each a fingerprint and what is held under it.

use crate::bucket::Bucket;
use crate::lease::Lease;
use crate::purse::{MAX_PIECES, Piece, Purse};
use crate::quota::TAG_BITS;
use crate::tally::Tally;
use crate::time::Instant;

/// Entries in one slot.
pub const ENTRIES_PER_SLOT: usize = 8;

/// The most bytes of one entry: a fingerprint, a kind with the group above it, and the numbers of a lease, 64-bit little-endian each.
pub const MAX_ENTRY_BYTES: usize = 8 * (2 + LEASE_NUMBERS);

const BUCKET_NUMBERS: usize = 5;
const LEASE_NUMBERS: usize = 7 + 3 * MAX_PIECES;
const TALLY_NUMBERS: usize = BUCKET_NUMBERS + 10;

const BUCKET: u64 = 1;
const LEASE: u64 = 2;
const TALLY: u64 = 3;

/// Below the group stand the kind, and above it the tag of the limit that a lease was refused by.
const KIND_BITS: u32 = 8;
const KIND_MASK: u64 = (1 << KIND_BITS) - 1;
const TAG_MASK: u64 = (1 << TAG_BITS) - 1;
const _: () = assert!(KIND_BITS + TAG_BITS == 32);

/// What is held for one client under one policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// A local bucket.
    Bucket(Bucket),
    /// Tokens leased from the store.
    Lease(Lease),
    /// What is let through without asking.
    Tally(Tally),
}

/// Where an entry is found, and among which it may have to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name {
    /// Tells the entries of a slot apart.
    pub(super) fingerprint: u64,
    /// Tells policies apart.
    pub(super) group: u32,
}

/// An entry of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: Name,
    pub(super) held: Held,
}

impl Held {
    /// The worth of what may go without a trace.
    pub(super) const WORTHLESS: (u8, Instant) = (0, Instant::from_micros(0));

    /// What losing it forgives, for comparison within a policy: nothing where it is worth nothing any more;
    /// nothing, but a question to the store, where it is a lease; and of buckets the more, the later they are
    /// full.
    pub(super) fn worth(&self, now: Instant) -> (u8, Instant) {
        match self {
            Self::Bucket(bucket) if bucket.full_at() > now => (2, bucket.full_at()),
            Self::Lease(lease) if lease.matters_until() > now => (1, lease.matters_until()),
            // What the store has not heard of yet would never be charged.
            Self::Tally(tally) if tally.has_news() => (3, tally.matters_until()),
            Self::Tally(tally) if tally.matters_until() > now => (2, tally.matters_until()),
            Self::Bucket(_) | Self::Lease(_) | Self::Tally(_) => Self::WORTHLESS,
        }
    }
}

pub(super) fn encode(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.len() * MAX_ENTRY_BYTES);
    let mut push =
        |numbers: &[u64]| numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    for Entry { name: Name { fingerprint, group }, held } in entries {
        let kind = |kind: u64| u64::from(*group) << 32 | kind;
        match held {
            Held::Bucket(bucket) => {
                push(&[*fingerprint, kind(BUCKET)]);
                push(&numbers_of(bucket));
            }
            Held::Tally(tally) => {
                push(&[*fingerprint, kind(TALLY)]);
                push(&numbers_of(&tally.bucket));
                push(&[tally.counted, tally.reported, tally.proxies]);
                push(&[tally.heard.as_micros(), tally.owed_since.as_micros(), tally.asked_until.as_micros()]);
                push(&[tally.known, tally.spare, u64::from(tally.is_alone), tally.held_until.as_micros()]);
            }
            Held::Lease(Lease { purse, next_id, asked_until }) => {
                let tagged = kind(LEASE) | u64::from(purse.refused_by) << KIND_BITS;
                push(&[*fingerprint, tagged, *next_id, asked_until.as_micros()]);
                for Piece { id, tokens, ends } in purse.pieces {
                    push(&[id, tokens, ends.as_micros()]);
                }
                push(&[purse.stock, purse.added_at.as_micros(), purse.refused_until.as_micros()]);
                push(&[purse.next_at.as_micros(), purse.rest]);
            }
        }
    }
    bytes
}

/// The entries of a slot. What only a foreign writer leaves ends them.
pub(super) fn decode(bytes: &[u8]) -> Vec<Entry> {
    let mut numbers = bytes.chunks_exact(8).map(|number| number.try_into().map_or(0, u64::from_le_bytes));
    let mut entries = Vec::with_capacity(ENTRIES_PER_SLOT + 1);
    while entries.len() < ENTRIES_PER_SLOT {
        let (Some(fingerprint), Some(second)) = (numbers.next(), numbers.next()) else { break };
        let (kind, tag, group) = (second & KIND_MASK, second >> KIND_BITS & TAG_MASK, second >> 32);
        let wanted = match kind {
            BUCKET => BUCKET_NUMBERS,
            LEASE => LEASE_NUMBERS,
            TALLY => TALLY_NUMBERS,
            _ => break,
        };
        if numbers.len() < wanted {
            break;
        }
        let mut next = || numbers.next().unwrap_or(0);
        let held = match kind {
            BUCKET => Held::Bucket(bucket(&mut next)),
            LEASE => Held::Lease(lease(tag, &mut next)),
            _ => Held::Tally(tally(&mut next)),
        };
        let name = Name { fingerprint, group: u32::try_from(group).unwrap_or(0) };
        entries.push(Entry { name, held });
    }
    entries
}

fn numbers_of(bucket: &Bucket) -> [u64; BUCKET_NUMBERS] {
    let Bucket { spent, parts_per_token, parts_per_micro, updated, held } = *bucket;
    [spent, parts_per_token, parts_per_micro, updated.as_micros(), held]
}

fn bucket(next: &mut dyn FnMut() -> u64) -> Bucket {
    Bucket {
        spent: next(),
        parts_per_token: next(),
        parts_per_micro: next(),
        updated: Instant::from_micros(next()),
        held: next(),
    }
}

fn lease(tag: u64, next: &mut dyn FnMut() -> u64) -> Lease {
    let (next_id, asked_until) = (next(), Instant::from_micros(next()));
    let mut piece = || Piece { id: next(), tokens: next(), ends: Instant::from_micros(next()) };
    let pieces = core::array::from_fn(|_| piece());
    let purse = Purse {
        pieces,
        stock: next(),
        added_at: Instant::from_micros(next()),
        refused_until: Instant::from_micros(next()),
        refused_by: u32::try_from(tag).unwrap_or(0),
        next_at: Instant::from_micros(next()),
        rest: next(),
    };
    Lease { purse, next_id, asked_until }
}

fn tally(next: &mut dyn FnMut() -> u64) -> Tally {
    Tally {
        bucket: bucket(next),
        counted: next(),
        reported: next(),
        proxies: next(),
        heard: Instant::from_micros(next()),
        owed_since: Instant::from_micros(next()),
        asked_until: Instant::from_micros(next()),
        known: next(),
        spare: next(),
        is_alone: next() == 1,
        held_until: Instant::from_micros(next()),
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::quota::TokenBucket;

    #[test]
    fn what_is_known_of_a_refusal_is_the_same_for_all_workers() {
        let quota = TokenBucket::new(10, "6/m".parse().unwrap()).unwrap();
        let (mut lease, now) = (Lease::default(), Instant::from_micros(5));
        lease.purse.refuse(&quota, 7, now.after(Duration::from_secs(35)), 3, now);
        let name = Name { fingerprint: u64::MAX, group: u32::MAX };
        let entry = Entry { name, held: Held::Lease(lease) };
        assert_eq!(decode(&encode(&[entry])), [entry]);
        assert_ne!(lease.purse.refused_by, 0);
    }
}
