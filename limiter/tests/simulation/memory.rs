//! A proxy's shared data: what the workers of a proxy have in common, and what a reload leaves as it is.

use limiter::table::{Conflict, ENTRIES_PER_SLOT, MAX_ENTRY_BYTES, Slots};

use crate::random::Random;

/// Slots in memory.
pub(crate) struct Memory {
    slots: Vec<Option<(Vec<u8>, u32)>>,
    version: u32,
    random: Random,
    /// How often another worker is faster.
    conflicts_per_mille: u64,
    /// How often a slot has lost what it held: a broken variant.
    pub(crate) forgets_per_mille: u64,
    pub(crate) operations: u64,
}

impl Memory {
    pub(crate) fn new(slots: u32, conflicts_per_mille: u64, random: Random) -> Self {
        Self {
            slots: vec![None; slots as usize],
            version: 0,
            random,
            conflicts_per_mille,
            forgets_per_mille: 0,
            operations: 0,
        }
    }

    /// Empties a slot.
    pub(crate) fn forget(&mut self, slot: usize) {
        let count = self.slots.len();
        self.slots[slot % count] = None;
    }
}

impl Slots for Memory {
    fn load(&mut self, slot: u32) -> Option<(Vec<u8>, u32)> {
        self.operations += 1;
        if self.random.chance(self.forgets_per_mille) {
            self.forget(slot as usize);
        }
        self.slots[slot as usize].clone()
    }

    fn store(&mut self, slot: u32, bytes: &[u8], version: Option<u32>) -> Result<(), Conflict> {
        self.operations += 1;
        assert!(bytes.len() <= ENTRIES_PER_SLOT * MAX_ENTRY_BYTES, "a slot grows beyond its bound");
        let current = self.slots[slot as usize].as_ref().map(|(_, version)| *version);
        if current != version || self.random.chance(self.conflicts_per_mille) {
            return Err(Conflict);
        }
        self.version += 1;
        self.slots[slot as usize] = Some((bytes.to_vec(), self.version));
        Ok(())
    }
}
