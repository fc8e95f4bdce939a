//! The keys of the memory store: strings that expire, bounded in number.

use indexmap::IndexMap;
use indexmap::map::Entry as Slot;

/// The most keys that the memory store holds, of which each takes about 250 bytes with its state.
pub const MAX_KEYS: usize = 1_000_000;

/// How many keys each script call looks at, and each new key once more, to find expired ones: more than can
/// be added, so that memory follows the live keys without a pause to collect the dead.
const SWEPT_PER_CALL: usize = 8;
const SWEPT_PER_NEW_KEY: usize = 2;

/// How many keys a script call looks at while the keyspace is full.
const SWEPT_WHEN_FULL: usize = 1_000;

/// The keys, as one script call after another sees them.
#[derive(Debug)]
pub struct Keyspace {
    entries: IndexMap<Box<[u8]>, Entry>,
    max_keys: usize,
    now_us: u64,
    /// Where the sweep goes on.
    hand: usize,
    /// What the call found when it began, where that was a full keyspace.
    full: Option<FullCall>,
}

/// A call that began in a full keyspace.
#[derive(Debug, Default)]
struct FullCall {
    /// What its writes replaced, the first first; `None` where a key was not there.
    replaced: Vec<(Box<[u8]>, Option<Entry>)>,
    /// A new key was refused, and with it everything of this call.
    refused: bool,
}

#[derive(Debug)]
struct Entry {
    value: Box<[u8]>,
    expires_ms: Option<u64>,
}

/// A write that was refused because the keyspace is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl Entry {
    // As Redis has it: a key lives through the millisecond in which it expires.
    fn is_expired(&self, now_ms: u64) -> bool {
        self.expires_ms.is_some_and(|expires_ms| now_ms > expires_ms)
    }
}

impl Keyspace {
    /// An empty keyspace for `max_keys` keys.
    pub fn new(max_keys: usize) -> Self {
        Self { entries: IndexMap::new(), max_keys, now_us: 0, hand: 0, full: None }
    }

    /// Begins a script call at `now_us`, in which time stands still.
    ///
    /// Whether the keyspace is full is found out here, as Redis does it: a call that began with room may end,
    /// and so exceed the maximum by its own keys, once. A full keyspace takes the writes of a call to keys that
    /// it has; at the first new key it undoes those, so that no call is half done.
    pub fn begin(&mut self, now_us: u64) {
        self.now_us = now_us;
        self.sweep(SWEPT_PER_CALL);
        if self.entries.len() >= self.max_keys {
            self.sweep(SWEPT_WHEN_FULL);
        }
        self.full = self.is_full().then(FullCall::default);
    }

    /// True where new keys are refused.
    pub fn is_full(&self) -> bool {
        self.entries.len() >= self.max_keys
    }

    /// The time of this call.
    pub const fn now_us(&self) -> u64 {
        self.now_us
    }

    /// Keys held, expired ones that were not swept yet among them.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The most keys that may be held.
    pub const fn max_keys(&self) -> usize {
        self.max_keys
    }

    /// True where no key is held.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value of a live key.
    pub fn get(&mut self, key: &[u8]) -> Option<&[u8]> {
        self.drop_if_expired(key);
        self.entries.get(key).map(|entry| &*entry.value)
    }

    /// Sets a key, which expires after `lives_ms` or never.
    ///
    /// # Errors
    /// The keyspace is full and the key is new: all writes of this call are undone and no more are taken.
    pub fn set(&mut self, key: &[u8], value: &[u8], lives_ms: Option<u64>) -> Result<(), Full> {
        if self.full.is_some() {
            self.drop_if_expired(key);
        }
        if let Some(full) = &self.full
            && (full.refused || !self.entries.contains_key(key))
        {
            self.undo();
            return Err(Full);
        }
        let expires_ms = lives_ms.map(|lives_ms| self.now_ms().saturating_add(lives_ms));
        let entry = Entry { value: value.into(), expires_ms };
        let replaced = match self.entries.entry(key.into()) {
            Slot::Occupied(mut slot) => Some(slot.insert(entry)),
            Slot::Vacant(slot) => {
                slot.insert(entry);
                None
            }
        };
        if let Some(full) = &mut self.full {
            full.replaced.push((key.into(), replaced));
        } else if replaced.is_none() {
            self.sweep(SWEPT_PER_NEW_KEY);
        }
        Ok(())
    }

    /// Removes a key; true where it lived.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        self.drop_if_expired(key);
        let removed = self.entries.swap_remove(key);
        let lived = removed.is_some();
        if let (Some(full), Some(entry)) = (&mut self.full, removed) {
            full.replaced.push((key.into(), Some(entry)));
        }
        lived
    }

    /// Brings back what the writes of this call replaced, the last first.
    fn undo(&mut self) {
        let Some(full) = &mut self.full else { return };
        full.refused = true;
        for (key, entry) in full.replaced.drain(..).rev() {
            match entry {
                Some(entry) => self.entries.insert(key, entry),
                None => self.entries.swap_remove(&key),
            };
        }
    }

    const fn now_ms(&self) -> u64 {
        self.now_us / 1000
    }

    fn drop_if_expired(&mut self, key: &[u8]) {
        let now_ms = self.now_ms();
        if self.entries.get(key).is_some_and(|entry| entry.is_expired(now_ms)) {
            self.entries.swap_remove(key);
        }
    }

    /// Looks at the next `count` keys and drops the expired ones.
    ///
    /// A round goes from the last key to the first: the place of a dropped key is taken by the last one,
    /// which this round has seen.
    fn sweep(&mut self, count: usize) {
        let now_ms = self.now_ms();
        // Twice over all is enough for a round to begin and to end.
        for _ in 0..count.min(2 * self.entries.len()) {
            if self.hand == 0 {
                self.start_round();
            }
            self.hand = self.hand.min(self.entries.len()).saturating_sub(1);
            if self.entries.get_index(self.hand).is_some_and(|(_, entry)| entry.is_expired(now_ms)) {
                self.entries.swap_remove_index(self.hand);
            }
        }
    }

    fn start_round(&mut self) {
        self.hand = self.entries.len();
        // Once a round, so that the cost of moving the rest is spread over all that was swept.
        if self.entries.capacity() > 1024 && self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to(self.entries.len() * 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_US: u64 = 1_000_000;

    #[test]
    fn a_key_lives_through_its_last_millisecond_and_not_one_more() {
        let mut keyspace = Keyspace::new(10);
        keyspace.begin(SECOND_US);
        keyspace.set(b"k", b"v", Some(5)).unwrap();
        keyspace.begin(SECOND_US + 5_999);
        assert_eq!(keyspace.get(b"k"), Some(&b"v"[..]));
        keyspace.begin(SECOND_US + 6_000);
        assert_eq!(keyspace.get(b"k"), None);
        assert!(!keyspace.remove(b"k"));
    }

    #[test]
    fn memory_follows_the_live_keys_without_anybody_reading_the_dead() {
        let mut keyspace = Keyspace::new(MAX_KEYS);
        let mut longest = 0;
        for step in 0..200_000_u64 {
            keyspace.begin(step * 100);
            keyspace.set(format!("k{step}").as_bytes(), b"v", Some(100)).unwrap();
            longest = longest.max(keyspace.len());
        }
        // A thousand keys live at a time.
        assert!(longest < 2_000, "{longest}");
        keyspace.begin(u64::MAX / 2);
        while !keyspace.is_empty() {
            keyspace.begin(u64::MAX / 2);
        }
        keyspace.begin(u64::MAX / 2);
        keyspace.set(b"k", b"v", None).unwrap();
        keyspace.begin(u64::MAX / 2);
        keyspace.begin(u64::MAX / 2);
        assert!(keyspace.entries.capacity() <= 1024, "{}", keyspace.entries.capacity());
    }

    /// A keyspace for two keys with three, of which `gone` is about to expire.
    fn full() -> Keyspace {
        let mut keyspace = Keyspace::new(2);
        keyspace.begin(0);
        keyspace.set(b"a", b"1", Some(100)).unwrap();
        keyspace.set(b"b", b"1", Some(100)).unwrap();
        // Begun with room, so it may end: half a call would be worse than a key too many.
        keyspace.set(b"gone", b"1", Some(1)).unwrap();
        keyspace
    }

    #[test]
    fn a_full_keyspace_writes_and_removes_the_keys_that_it_has() {
        let mut keyspace = full();
        keyspace.begin(0);
        assert!(keyspace.is_full());
        assert_eq!(keyspace.set(b"a", b"2", Some(100)), Ok(()));
        assert!(keyspace.remove(b"b"));
        keyspace.begin(0);
        assert_eq!(keyspace.len(), 2);
        assert_eq!(keyspace.get(b"a"), Some(&b"2"[..]));
        assert_eq!(keyspace.set(b"c", b"1", None), Err(Full));
        keyspace.begin(2_000);
        assert_eq!(keyspace.set(b"d", b"1", Some(1)), Ok(()), "one has expired");
    }

    #[test]
    fn a_new_key_in_a_full_keyspace_undoes_its_whole_call() {
        let mut keyspace = full();
        keyspace.begin(0);
        assert_eq!(keyspace.set(b"a", b"2", Some(100)), Ok(()));
        assert_eq!(keyspace.set(b"a", b"3", Some(100)), Ok(()));
        assert!(keyspace.remove(b"b"));
        assert_eq!(keyspace.set(b"c", b"1", None), Err(Full));
        assert_eq!(keyspace.set(b"a", b"4", Some(100)), Err(Full), "nothing more of this call");
        for key in [b"a", b"b"] {
            assert_eq!(keyspace.get(key), Some(&b"1"[..]));
        }
        assert_eq!(keyspace.len(), 3);
        assert_eq!(keyspace.get(b"c"), None);
        keyspace.begin(0);
        assert_eq!(keyspace.set(b"a", b"2", Some(100)), Ok(()), "the next call is for itself");
    }

    #[test]
    fn an_expired_key_is_a_new_one() {
        let mut keyspace = full();
        keyspace.set(b"z", b"1", Some(1)).unwrap();
        keyspace.begin(0);
        // The sweep of a call's beginning has gone by when the key expires in it.
        keyspace.now_us = 3_000;
        assert_eq!(keyspace.set(b"gone", b"2", Some(100)), Err(Full));
    }
}
