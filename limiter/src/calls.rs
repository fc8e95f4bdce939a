//! Callouts of one worker: a lone request leaves at once, others share the next call.
//!
//! While fewer than [`MAX_CALLS`] calls are under way, what waits is sent. Beyond that requests queue and
//! leave together when a call ends, so that the load on the companion does not grow with the requests.

use std::collections::{BTreeMap, VecDeque};

use crate::time::Instant;
use crate::wire::MAX_TAKES;

/// Names a call to whoever makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId(pub u32);

/// Names a request to whoever holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(pub u32);

/// The most calls that one worker has under way.
pub const MAX_CALLS: usize = 4;

/// The most requests that wait in one worker, under way or not; another one is answered as a failure.
pub const MAX_WAITING: usize = 4096;

/// Requests that are to be asked for, and those that are under way.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    queue: VecDeque<RequestId>,
    under_way: BTreeMap<CallId, UnderWay>,
    last_call: u32,
}

#[derive(Debug)]
struct UnderWay {
    requests: Vec<RequestId>,
    /// When the answer counts as lost, should whoever makes the call never say.
    lost_at: Instant,
}

impl Calls {
    pub(crate) fn push(&mut self, request: RequestId) {
        self.queue.push_back(request);
    }

    /// Takes a request that has not been sent out of the queue; false where it was sent.
    pub(crate) fn withdraw(&mut self, request: RequestId) -> bool {
        let before = self.queue.len();
        self.queue.retain(|queued| *queued != request);
        self.queue.len() < before
    }

    /// The next call to make, if there is one and it may be made.
    pub(crate) fn next(&mut self, lost_at: Instant) -> Option<(CallId, Vec<RequestId>)> {
        if self.queue.is_empty() || self.under_way.len() >= MAX_CALLS {
            return None;
        }
        self.last_call = self.last_call.wrapping_add(1);
        let call = CallId(self.last_call);
        let requests: Vec<_> = self.queue.drain(..self.queue.len().min(MAX_TAKES)).collect();
        self.under_way.insert(call, UnderWay { requests: requests.clone(), lost_at });
        Some((call, requests))
    }

    /// The requests of a call that has ended; `None` for one that is unknown, as when it ends twice.
    pub(crate) fn end(&mut self, call: CallId) -> Option<Vec<RequestId>> {
        self.under_way.remove(&call).map(|under_way| under_way.requests)
    }

    /// Forgets calls of which nobody said that they ended.
    pub(crate) fn forget_lost(&mut self, now: Instant) {
        self.under_way.retain(|_, under_way| under_way.lost_at > now);
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.under_way.is_empty()
    }
}
