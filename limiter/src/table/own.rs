//! Slots in this process' own memory, which nobody else writes.

use std::collections::BTreeMap;

use super::{Conflict, Slots};

/// Slots for who has no proxy: explanations and tests.
#[derive(Clone, Debug, Default)]
pub struct OwnSlots(pub(super) BTreeMap<u32, (Vec<u8>, u32)>);

impl Slots for OwnSlots {
    fn load(&mut self, slot: u32) -> Option<(Vec<u8>, u32)> {
        self.0.get(&slot).cloned()
    }

    fn store(&mut self, slot: u32, bytes: &[u8], version: Option<u32>) -> Result<(), Conflict> {
        let current = self.0.get(&slot).map(|(_, version)| *version);
        if current != version {
            return Err(Conflict);
        }
        self.0.insert(slot, (bytes.to_vec(), current.map_or(1, |version| version.wrapping_add(1))));
        Ok(())
    }
}
