//! One flight for each leased key: while a request of this worker asks about it, others wait for that answer.

use std::collections::{BTreeMap, VecDeque};

use crate::calls::RequestId;

/// Leased keys that a request is asking about, and the requests that wait for its answer, first come first served.
#[derive(Debug, Default)]
pub(super) struct Flights(BTreeMap<String, VecDeque<RequestId>>);

impl Flights {
    /// Whether a request is asking about this key.
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// A request asks about this key.
    pub(super) fn begin(&mut self, key: &str) {
        self.0.entry(key.to_owned()).or_default();
    }

    /// A request waits for the answer about this key.
    pub(super) fn join(&mut self, key: String, request: RequestId) {
        self.0.entry(key).or_default().push_back(request);
    }

    /// Nobody asks about this key any more: those who waited for the answer.
    pub(super) fn end(&mut self, key: &str) -> VecDeque<RequestId> {
        self.0.remove(key).unwrap_or_default()
    }

    /// A request waits no longer; false where it did not.
    pub(super) fn leave(&mut self, request: RequestId) -> bool {
        let mut has_left = false;
        for behind in self.0.values_mut() {
            let before = behind.len();
            behind.retain(|other| *other != request);
            has_left |= behind.len() < before;
        }
        has_left
    }

    /// Nobody waits any longer, and only these keys are still asked about.
    pub(super) fn dismiss(&mut self, is_asked: impl Fn(&str) -> bool) {
        self.0.retain(|key, _| is_asked(key));
        self.0.values_mut().for_each(VecDeque::clear);
    }
}
