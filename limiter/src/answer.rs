//! What a request is told that does not go through: 429, or what the policy says instead, where a limit refused
//! it, 503 where the limit could not be checked. The two are different types, so that neither is taken for the
//! other. How an answer is put into words and headers is in [`told`].
//!
//! The rate limit fields are not among a reply's headers: the proxy shows its own replies to the filter
//! as any response, and [`crate::fields::write`] adds them there.

mod told;

use core::time::Duration;
use std::borrow::Cow;

use crate::decision::{Decision, Outcome, Verdict};
use crate::fields::{Closed, Item, State, seconds};
use crate::policy::{Body, OnFailure, Policy, Response};
use told::Told;

#[cfg(test)]
mod tests;

/// An answer of the proxy's own, in place of upstream's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalReply<'a> {
    /// The HTTP status. For gRPC, Envoy turns it into 200.
    pub status: u16,
    /// Names in lower case, and their values.
    pub headers: Vec<(&'a str, Cow<'a, str>)>,
    /// What the policy says, or nothing; for gRPC a short text, which becomes `grpc-message`.
    pub body: Cow<'a, str>,
    /// The gRPC status, for gRPC alone. Envoy's own choice for 429 is 14, an outage.
    pub grpc_status: Option<i32>,
    /// What access logs show as `%RESPONSE_CODE_DETAILS%`: ASCII without blanks.
    pub details: String,
}

/// How the caller wants to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Plain HTTP.
    Http,
    /// gRPC.
    Grpc,
}

impl Protocol {
    /// The protocol of a request with this `content-type`.
    ///
    /// The test is Envoy's own, which decides the form of the reply: `application/grpc` alone or with a
    /// codec behind a plus. `application/grpc-web` is plain HTTP.
    pub fn of(content_type: Option<&[u8]>) -> Self {
        match content_type.and_then(|value| value.strip_prefix(b"application/grpc")) {
            Some([] | [b'+', ..]) => Self::Grpc,
            _ => Self::Http,
        }
    }
}

/// The answer to a decided request; `None` for one that passes. The marks are of these `policies`.
pub fn reply<'a>(decision: &Decision, policies: &'a [Policy], protocol: Protocol) -> Option<LocalReply<'a>> {
    let marked = || decision.marks.iter().filter_map(|mark| Some((policies.get(mark.policy)?, mark)));
    match decision.verdict {
        Verdict::Admit => None,
        Verdict::Refuse => {
            let items: Vec<_> = marked().filter_map(|(policy, mark)| Item::of(policy, mark)).collect();
            // The verdict holds even if no mark tells why.
            let refusal = Refusal::of(&items).unwrap_or_default();
            let binding = marked().map(|(policy, _)| policy).find(|policy| policy.name == refusal.policy);
            Some(refusal.reply(binding.map_or(&UNSAID, |policy| &policy.response), protocol))
        }
        Verdict::Unavailable { retry_after } => {
            let failed: Vec<_> = marked()
                .filter_map(|(policy, mark)| (mark.outcome == Outcome::Unavailable).then_some(policy))
                .collect();
            let longest = Some(OnFailure::Closed { retry_after });
            let binding = failed.iter().find(|policy| policy.sync.on_failure() == longest).or(failed.first());
            let policies = failed.iter().map(|policy| policy.name.as_str()).collect();
            let unavailable =
                Unavailable { policy: binding.map_or("", |policy| &policy.name), policies, retry_after };
            Some(unavailable.reply(binding.map_or(&UNSAID, |policy| &policy.response), protocol))
        }
    }
}

/// How a request is answered where no policy says it.
static UNSAID: Response = Response { status: 429, body: Body::Json, headers: Vec::new() };

/// Why limits refused a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal<'a> {
    /// The policy that binds: the violated one with the longest wait, the first among equals.
    pub policy: &'a str,
    /// Why that one refused it.
    pub reason: Reason,
    /// All violated policies, in their order.
    pub policies: Vec<&'a str>,
}

/// Why a policy refused a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The limit is used up.
    Exceeded {
        /// Microseconds until the request may pass.
        wait_us: u64,
    },
    /// The request costs more than the limit ever has.
    TooCostly,
    /// The policy does not count the request.
    Closed(Closed),
}

impl Reason {
    /// Microseconds until the request may pass; `None` where it never may.
    const fn wait_us(self) -> Option<u64> {
        match self {
            Self::Exceeded { wait_us } => Some(wait_us),
            Self::TooCostly | Self::Closed(_) => None,
        }
    }

    fn of(state: State) -> Option<Self> {
        match state {
            State::Violated { wait_us, .. } => {
                Some(wait_us.map_or(Self::TooCostly, |wait_us| Self::Exceeded { wait_us }))
            }
            State::Closed(closed) => Some(Self::Closed(closed)),
            State::Unknown | State::Passed { .. } => None,
        }
    }
}

impl<'a> Refusal<'a> {
    /// The refusal by the violated ones of `items`; `None` where none is violated.
    ///
    /// Every violated policy must let the request pass, so the longest wait counts; one that never lets
    /// it pass outweighs all others.
    pub fn of(items: &[Item<'a>]) -> Option<Self> {
        let violated = || items.iter().filter_map(|item| Some((item.name, Reason::of(item.state)?)));
        // The first of the greatest is the first of the least when counted from the far end.
        let (policy, reason) =
            violated().min_by_key(|(_, reason)| reason.wait_us().map_or(0, |wait_us| u64::MAX - wait_us))?;
        Some(Self { policy, reason, policies: violated().map(|(name, _)| name).collect() })
    }

    /// `Retry-After` in whole seconds, at least 1; `None` where waiting does not help.
    pub fn retry_after_s(&self) -> Option<u64> {
        self.reason.wait_us().map(|wait_us| seconds(wait_us).max(1))
    }

    /// The answer, as the binding policy's `response` says it.
    pub fn reply(self, response: &'a Response, protocol: Protocol) -> LocalReply<'a> {
        Told::refusal(self).reply(response, protocol)
    }
}

impl Default for Refusal<'_> {
    /// A refusal by nobody, which nobody can wait for.
    fn default() -> Self {
        Self { policy: "", reason: Reason::Closed(Closed::Blocked), policies: Vec::new() }
    }
}

/// That limits could not be checked, and are configured to refuse then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable<'a> {
    /// The policy whose configured wait is the longest, the first among equals.
    pub policy: &'a str,
    /// All policies that could not be checked and refuse then, in their order.
    pub policies: Vec<&'a str>,
    /// When to try again, as configured.
    pub retry_after: Duration,
}

impl<'a> Unavailable<'a> {
    /// `Retry-After` in whole seconds, at least 1.
    pub fn retry_after_s(&self) -> u64 {
        let started = u64::from(self.retry_after.subsec_nanos() > 0);
        self.retry_after.as_secs().saturating_add(started).max(1)
    }

    /// The answer, with the body and the headers of that policy's `response`.
    pub fn reply(self, response: &'a Response, protocol: Protocol) -> LocalReply<'a> {
        Told::unavailable(self).reply(response, protocol)
    }
}
