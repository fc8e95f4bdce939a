//! Whether the memory store is full, told to operators when that changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::keyspace::Keyspace;

/// Shared between the store's thread, which notes it, and those who ask.
#[derive(Clone, Debug, Default)]
pub(super) struct Fullness {
    full: Arc<AtomicBool>,
}

impl Fullness {
    /// True from when the store is full until it has room worth its name.
    pub(super) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Looks at the keyspace after a call, and logs what has changed.
    pub(super) fn note(&self, keyspace: &Keyspace) {
        match self.change(keyspace.len(), keyspace.max_keys()) {
            Some(true) => {
                tracing::warn!(keys = keyspace.len(), "the memory store is full: takes on new keys fail");
            }
            Some(false) => tracing::info!(keys = keyspace.len(), "the memory store has room again"),
            None => {}
        }
    }

    /// The new state where it is another. A hundredth must be free before it ends: keys come and go, and a line
    /// for each would fill a disk.
    fn change(&self, keys: usize, max_keys: usize) -> Option<bool> {
        let full = keys >= max_keys || (self.is_full() && keys > max_keys - max_keys / 100);
        (self.full.swap(full, Ordering::Relaxed) != full).then_some(full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_told_once_and_ends_only_with_room_to_spare() {
        let fullness = Fullness::default();
        let changes = [999, 1_000, 1_001, 999, 1_000, 991, 990, 999].map(|keys| fullness.change(keys, 1_000));
        assert_eq!(changes, [None, Some(true), None, None, None, None, Some(false), None]);
    }
}
