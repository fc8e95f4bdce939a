//! Callouts of one worker: a lone question leaves at once, others share the next call.
//!
//! While fewer than [`MAX_CALLS`] calls are under way, what waits is sent. Beyond that questions queue and
//! leave together when a call ends, so that the load on the companion does not grow with the requests.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::errand::Errand;
use crate::quota::TokenBucket;
use crate::time::Instant;
use crate::wire::{MAX_BATCH_CHARGES, MAX_BODY_BYTES, MAX_TAKES};

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

/// The most bytes of store keys in one call. What stands around a key in a body is less than a kilobyte, so
/// that a batch of keys and charges within their bounds is within that of the body.
const MAX_KEY_BYTES_A_CALL: usize = MAX_BODY_BYTES / 2;

/// The most questions that may be queued when an errand joins them; beyond, it is not made: a lease ends by itself,
/// and what was to be reported is reported later.
pub const MAX_ERRANDS: usize = 1024;

/// What is to be asked.
#[derive(Debug)]
pub(crate) enum Question {
    /// For a request that waits.
    Request(RequestId),
    /// For nobody, in the background.
    Errand(Errand),
}

/// What one take of a call asked, for when its answer comes.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) request: Option<RequestId>,
    pub(crate) charges: Vec<SentCharge>,
}

/// What one charge of a take asked.
#[derive(Debug)]
pub(crate) struct SentCharge {
    pub(crate) key: String,
    pub(crate) quota: TokenBucket,
    pub(crate) cost: u64,
    pub(crate) shadow: bool,
    pub(crate) lease: Option<SentLease>,
    /// Up to which number it reported, where it did.
    pub(crate) reported: Option<u64>,
}

/// The lease that a charge asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentLease {
    pub(crate) id: u64,
    /// Whether tokens were asked for, or others only given back.
    pub(crate) is_wanted: bool,
    pub(crate) ttl: Duration,
}

/// A call without an answer.
#[derive(Debug)]
pub(crate) struct UnderWay {
    pub(crate) takes: Vec<Sent>,
    /// From when what the store says in spans of time counts: its own clock ran later.
    pub(crate) sent_at: Instant,
    /// When the answer counts as lost, should whoever makes the call never say.
    lost_at: Instant,
}

/// Questions that are to be asked, and those that are under way.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    queue: VecDeque<Question>,
    under_way: BTreeMap<CallId, UnderWay>,
    last_call: u32,
}

impl Calls {
    pub(crate) fn push(&mut self, request: RequestId) {
        self.queue.push_back(Question::Request(request));
    }

    pub(crate) fn run(&mut self, errands: impl IntoIterator<Item = Errand>) {
        let room = self.errand_room();
        self.queue.extend(errands.into_iter().take(room).map(Question::Errand));
    }

    /// How many errands may join the queue.
    pub(crate) fn errand_room(&self) -> usize {
        MAX_ERRANDS.saturating_sub(self.queue.len())
    }

    /// Takes everything out of the queue.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
    }

    /// Takes a request that has not been sent out of the queue; false where it was sent.
    pub(crate) fn withdraw(&mut self, request: RequestId) -> bool {
        let before = self.queue.len();
        self.queue.retain(|queued| !matches!(queued, Question::Request(queued) if *queued == request));
        self.queue.len() < before
    }

    /// The questions of the next call, if there are some and it may be made. `size_of` says how many charges
    /// a question has, and how many bytes its keys.
    pub(crate) fn next(&mut self, size_of: impl Fn(&Question) -> (usize, usize)) -> Option<Vec<Question>> {
        if self.queue.is_empty() || self.under_way.len() >= MAX_CALLS {
            return None;
        }
        let (mut charges, mut bytes) = (0, 0);
        let fitting = self.queue.iter().take(MAX_TAKES).take_while(|question| {
            let (its_charges, its_bytes) = size_of(question);
            charges += its_charges;
            bytes += its_bytes;
            charges <= MAX_BATCH_CHARGES && bytes <= MAX_KEY_BYTES_A_CALL
        });
        // A single question always fits: its charges are bounded by far less, and so are its keys.
        let count = fitting.count().max(1);
        Some(self.queue.drain(..count).collect())
    }

    /// Notes that a call is made.
    pub(crate) fn begin(&mut self, takes: Vec<Sent>, sent_at: Instant, lost_at: Instant) -> CallId {
        self.last_call = self.last_call.wrapping_add(1);
        let call = CallId(self.last_call);
        self.under_way.insert(call, UnderWay { takes, sent_at, lost_at });
        call
    }

    /// What a call that has ended had asked; `None` for one that is unknown, as when it ends twice.
    pub(crate) fn end(&mut self, call: CallId) -> Option<UnderWay> {
        self.under_way.remove(&call)
    }

    /// Forgets calls of which nobody said that they ended, and returns them.
    pub(crate) fn forget_lost(&mut self, now: Instant) -> Vec<UnderWay> {
        let lost = self.under_way.extract_if(.., |_, under_way| under_way.lost_at <= now);
        lost.map(|(_, under_way)| under_way).collect()
    }

    /// The requests that calls without an answer ask for.
    pub(crate) fn requests_under_way(&self) -> BTreeSet<RequestId> {
        let takes = self.under_way.values().flat_map(|under_way| &under_way.takes);
        takes.filter_map(|sent| sent.request).collect()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.under_way.is_empty()
    }
}
