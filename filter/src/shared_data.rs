//! The slot table's memory: the proxy's shared data, which all workers reach and which outlives a VM.

use core::fmt::Write as _;
use std::hash::{BuildHasher, Hasher, RandomState};

use limiter::table::{Conflict, Slots, Table};

use crate::host;

/// The version of what the slots hold; state of another version is never read.
const SCHEMA: &str = "2";

/// What a slot takes in the proxy beyond the text of its key and its value: a node of a hash map with two strings,
/// their rounding and its part of the map. Measured on Envoy 1.40, as the third below.
const SLOT_OVERHEAD_BYTES: u64 = 160;

/// The digits of the greatest number of a slot.
const MAX_SLOT_DIGITS: u64 = 10;

/// Slots in shared data under the plugin's own prefix: all plugins of a proxy may share one map.
pub(crate) struct SharedSlots {
    prefix: String,
    /// The key of the slot that is asked for, in a buffer that every request uses again.
    key: String,
}

impl SharedSlots {
    /// The slots of the plugin that is being configured, told apart by its name and root id, and by how many
    /// there are: the same number leads to another slot in a table of another size, where an entry would be
    /// lost to one reader and be evicted by the other.
    pub(crate) fn of_this_plugin(slots: u32) -> Self {
        let property = |name| host::property(name).unwrap_or_default();
        let (name, root) = (property("plugin_name"), property("plugin_root_id"));
        let [name, root] = [&name, &root].map(|text| String::from_utf8_lossy(text));
        Self { prefix: format!("tidegate/{SCHEMA}/{name}/{root}/{slots}/"), key: String::new() }
    }

    /// The seed of the table's hash: random, and the same for all workers of this proxy.
    pub(crate) fn seed(&self) -> [u8; 16] {
        let key = format!("{}seed", self.prefix);
        let mut seed = [0; 16];
        for half in seed.chunks_exact_mut(8) {
            half.copy_from_slice(&RandomState::new().build_hasher().finish().to_le_bytes());
        }
        // Whoever is first wins; the others take over its seed.
        if host::set_shared_data(&key, &seed, None).is_ok() {
            return seed;
        }
        let first = host::shared_data(&key).and_then(|(seed, _)| seed.try_into().ok());
        first.unwrap_or(seed)
    }

    /// The most memory that a table in these slots takes of the proxy.
    pub(crate) fn max_bytes(&self, table: &Table) -> u64 {
        let key_bytes = self.prefix.len() as u64 + MAX_SLOT_DIGITS;
        // The proxy's allocator rounds a value up, at the most by a third.
        let value_bytes = table.max_bytes() + table.max_bytes() / 3;
        value_bytes + u64::from(table.slots()) * (key_bytes + SLOT_OVERHEAD_BYTES)
    }

    fn key(&mut self, slot: u32) -> &str {
        self.key.clone_from(&self.prefix);
        // Writing to a string does not fail.
        let _ = write!(self.key, "{slot}");
        &self.key
    }
}

impl Slots for SharedSlots {
    fn load(&mut self, slot: u32) -> Option<(Vec<u8>, u32)> {
        host::shared_data(self.key(slot))
    }

    fn store(&mut self, slot: u32, bytes: &[u8], version: Option<u32>) -> Result<(), Conflict> {
        host::set_shared_data(self.key(slot), bytes, version).map_err(|_| Conflict)
    }
}
