//! What a request is told that does not go through: 429 where a limit refused it, 503 where the limit could
//! not be checked. The two are different types, so that neither is taken for the other.
//!
//! The rate limit fields are not among a reply's headers: the proxy shows its own replies to the filter
//! as any response, and [`crate::fields::write`] adds them there.

use core::fmt::Write as _;
use core::time::Duration;

use crate::decision::{Decision, Outcome, Verdict};
use crate::fields::{Item, State, push_quoted, seconds};
use crate::policy::Policy;

#[cfg(test)]
mod tests;

/// An answer of the proxy's own, in place of upstream's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalReply {
    /// The HTTP status. For gRPC, Envoy turns it into 200.
    pub status: u16,
    /// Names in lower case, and their values.
    pub headers: Vec<(&'static str, String)>,
    /// JSON; for gRPC a short text, which becomes `grpc-message`.
    pub body: String,
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
pub fn reply(decision: &Decision, policies: &[Policy], protocol: Protocol) -> Option<LocalReply> {
    let marked = || decision.marks.iter().filter_map(|mark| Some((policies.get(mark.policy)?, mark)));
    match decision.verdict {
        Verdict::Admit => None,
        Verdict::Refuse => {
            let items: Vec<_> = marked().filter_map(|(policy, mark)| Item::of(policy, mark)).collect();
            // The verdict holds even if no mark tells why.
            let refusal = Refusal::of(&items).unwrap_or(Refusal { policy: "", wait_us: None, blocked: true });
            Some(refusal.reply(protocol))
        }
        Verdict::Unavailable { retry_after } => {
            let failed = marked().find(|(_, mark)| mark.outcome == Outcome::Unavailable);
            let policy = failed.map_or("", |(policy, _)| policy.name.as_str());
            Some(Unavailable { policy, retry_after }.reply(protocol))
        }
    }
}

/// `RESOURCE_EXHAUSTED`.
const GRPC_RESOURCE_EXHAUSTED: i32 = 8;

/// `UNAVAILABLE`.
const GRPC_UNAVAILABLE: i32 = 14;

/// Why a limit refused a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal<'a> {
    /// The policy that binds: the violated one with the longest wait, the first among equals.
    pub policy: &'a str,
    /// Microseconds until the request may pass; `None` where it never may.
    pub wait_us: Option<u64>,
    blocked: bool,
}

impl<'a> Refusal<'a> {
    /// The refusal by the violated ones of `items`; `None` where none is violated.
    ///
    /// Every violated policy must let the request pass, so the longest wait counts; one that never lets
    /// it pass outweighs all others.
    pub fn of(items: &[Item<'a>]) -> Option<Self> {
        let violated = items.iter().filter_map(|item| match item.state {
            State::Violated { wait_us, .. } => Some((item, wait_us)),
            State::Unknown | State::Passed { .. } => None,
        });
        // The first of the greatest is the first of the least when counted from the far end.
        let (item, wait_us) =
            violated.min_by_key(|(_, wait_us)| wait_us.map_or(0, |wait_us| u64::MAX - wait_us))?;
        Some(Self { policy: item.name, wait_us, blocked: item.advertised.quota == 0 })
    }

    /// `Retry-After` in whole seconds, at least 1; `None` where waiting does not help.
    pub fn retry_after_s(&self) -> Option<u64> {
        self.wait_us.map(|wait_us| seconds(wait_us).max(1))
    }

    /// The answer: 429, or `RESOURCE_EXHAUSTED`.
    pub fn reply(&self, protocol: Protocol) -> LocalReply {
        let Self { policy, wait_us, blocked } = self;
        let retry_after_s = self.retry_after_s();
        let message = match retry_after_s {
            Some(seconds) => format!("too many requests for policy \"{policy}\"; retry after {seconds} s"),
            None if *blocked => format!("policy \"{policy}\" lets no request pass"),
            None => format!("the request costs more than policy \"{policy}\" ever allows"),
        };
        let pushback = match wait_us {
            Some(wait_us) => wait_us.div_ceil(1_000).max(1).to_string(),
            // Tells the client not to retry.
            None => "-1".to_owned(),
        };
        Told { error: "rate_limit_exceeded", message, policy, retry_after_s, pushback }.reply(
            protocol,
            429,
            GRPC_RESOURCE_EXHAUSTED,
            details("tidegate_denied", policy),
        )
    }
}

/// That a limit could not be checked, and is configured to refuse then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unavailable<'a> {
    /// The policy that could not be checked.
    pub policy: &'a str,
    /// When to try again, as configured.
    pub retry_after: Duration,
}

impl Unavailable<'_> {
    /// `Retry-After` in whole seconds, at least 1.
    pub fn retry_after_s(&self) -> u64 {
        let started = u64::from(self.retry_after.subsec_nanos() > 0);
        self.retry_after.as_secs().saturating_add(started).max(1)
    }

    /// The answer: 503, or `UNAVAILABLE`.
    pub fn reply(&self, protocol: Protocol) -> LocalReply {
        let policy = self.policy;
        let retry_after_s = self.retry_after_s();
        let message = format!("policy \"{policy}\" cannot be checked now; retry after {retry_after_s} s");
        // gRPC clients retry this status at once unless they are told when.
        let pushback = retry_after_s.saturating_mul(1_000).to_string();
        let retry_after_s = Some(retry_after_s);
        Told { error: "rate_limiter_unavailable", message, policy, retry_after_s, pushback }.reply(
            protocol,
            503,
            GRPC_UNAVAILABLE,
            details("tidegate_unavailable", policy),
        )
    }
}

/// What both answers say, each in its protocol's form.
struct Told<'a> {
    error: &'static str,
    message: String,
    policy: &'a str,
    retry_after_s: Option<u64>,
    pushback: String,
}

impl Told<'_> {
    fn reply(self, protocol: Protocol, status: u16, grpc_status: i32, details: String) -> LocalReply {
        let mut headers = Vec::with_capacity(2);
        if let Some(seconds) = self.retry_after_s {
            headers.push(("retry-after", seconds.to_string()));
        }
        match protocol {
            Protocol::Http => {
                headers.push(("content-type", "application/json".to_owned()));
                LocalReply { status, headers, body: self.json(), grpc_status: None, details }
            }
            Protocol::Grpc => {
                headers.push(("grpc-retry-pushback-ms", self.pushback));
                LocalReply { status, headers, body: self.message, grpc_status: Some(grpc_status), details }
            }
        }
    }

    fn json(&self) -> String {
        let mut out = String::with_capacity(192);
        out.push_str("{\"error\":");
        push_quoted(&mut out, self.error);
        out.push_str(",\"message\":");
        push_quoted(&mut out, &self.message);
        out.push_str(",\"policy\":");
        push_quoted(&mut out, self.policy);
        if let Some(seconds) = self.retry_after_s {
            // Writing to a string does not fail.
            let _ = write!(out, ",\"retry_after\":{seconds}");
        }
        out.push('}');
        out
    }
}

/// `reason{policy}`. Envoy allows no blanks there: they would split an access log's line.
fn details(reason: &str, policy: &str) -> String {
    let policy = policy.chars().map(|char| if char.is_ascii_graphic() { char } else { '_' });
    let mut out = String::with_capacity(reason.len() + policy.size_hint().1.unwrap_or(0) + 2);
    out.push_str(reason);
    out.push('{');
    out.extend(policy);
    out.push('}');
    out
}
