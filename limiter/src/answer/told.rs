//! The words and the headers of an answer, in the form that its protocol and the policy ask for.

use core::fmt::Write as _;
use std::borrow::Cow;

use super::{LocalReply, Protocol, Reason, Refusal, Unavailable};
use crate::fields::{Closed, push_quoted};
use crate::policy::{Body, Response};

/// What an answer says, whatever its form.
pub(super) struct Told<'a> {
    kind: Kind,
    message: String,
    policy: &'a str,
    policies: Vec<&'a str>,
    retry_after_s: Option<u64>,
    /// Of `grpc-retry-pushback-ms`.
    pushback: String,
    details: String,
}

/// Denied and broken.
#[derive(Clone, Copy)]
enum Kind {
    Refused,
    Unavailable,
}

/// `RESOURCE_EXHAUSTED`.
const GRPC_RESOURCE_EXHAUSTED: i32 = 8;

/// `UNAVAILABLE`.
const GRPC_UNAVAILABLE: i32 = 14;

impl Kind {
    /// The member `error` of the JSON body.
    const fn error(self) -> &'static str {
        match self {
            Self::Refused => "rate_limit_exceeded",
            Self::Unavailable => "rate_limiter_unavailable",
        }
    }

    /// Type and title of the problem, as draft-ietf-httpapi-ratelimit-headers registers them.
    const fn problem(self) -> (&'static str, &'static str) {
        match self {
            Self::Refused => (
                "https://iana.org/assignments/http-problem-types#quota-exceeded",
                "Request cannot be satisfied as assigned quota has been exceeded",
            ),
            Self::Unavailable => (
                "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
                "Request cannot be satisfied due to temporary server capacity constraints",
            ),
        }
    }

    /// The HTTP status. A failure is one whatever its policy says of refusals.
    const fn status(self, response: &Response) -> u16 {
        match self {
            Self::Refused => response.status,
            Self::Unavailable => 503,
        }
    }

    const fn grpc_status(self) -> i32 {
        match self {
            Self::Refused => GRPC_RESOURCE_EXHAUSTED,
            Self::Unavailable => GRPC_UNAVAILABLE,
        }
    }
}

impl<'a> Told<'a> {
    pub(super) fn refusal(refusal: Refusal<'a>) -> Self {
        let retry_after_s = refusal.retry_after_s();
        let Refusal { policy, reason, policies } = refusal;
        let (cause, message) = match reason {
            Reason::Exceeded { .. } => {
                let retry_after_s = retry_after_s.unwrap_or_default();
                let message =
                    format!("too many requests for policy \"{policy}\"; retry after {retry_after_s} s");
                ("tidegate_denied", message)
            }
            Reason::TooCostly => {
                let message = format!("the request costs more than policy \"{policy}\" ever allows");
                ("tidegate_too_costly", message)
            }
            Reason::Closed(Closed::Blocked) => {
                ("tidegate_blocked", format!("policy \"{policy}\" lets no request pass"))
            }
            Reason::Closed(Closed::NoIdentity) => {
                let message =
                    format!("the request does not say who it is from, which policy \"{policy}\" asks for");
                ("tidegate_no_identity", message)
            }
        };
        let pushback = match reason.wait_us() {
            Some(wait_us) => wait_us.div_ceil(1_000).max(1).to_string(),
            // Tells the client not to retry.
            None => "-1".to_owned(),
        };
        let details = details(cause, policy);
        Self { kind: Kind::Refused, message, policy, policies, retry_after_s, pushback, details }
    }

    pub(super) fn unavailable(unavailable: Unavailable<'a>) -> Self {
        let retry_after_s = unavailable.retry_after_s();
        let Unavailable { policy, policies, .. } = unavailable;
        Self {
            kind: Kind::Unavailable,
            message: format!("policy \"{policy}\" cannot be checked now; retry after {retry_after_s} s"),
            policy,
            policies,
            retry_after_s: Some(retry_after_s),
            // gRPC clients retry this status at once unless they are told when.
            pushback: retry_after_s.saturating_mul(1_000).to_string(),
            details: details("tidegate_unavailable", policy),
        }
    }

    pub(super) fn reply(self, response: &'a Response, protocol: Protocol) -> LocalReply<'a> {
        let status = self.kind.status(response);
        let mut headers = Vec::with_capacity(2 + response.headers.len());
        if let Some(seconds) = self.retry_after_s {
            headers.push(("retry-after", Cow::Owned(seconds.to_string())));
        }
        let theirs =
            response.headers.iter().map(|(name, value)| (name.as_str(), Cow::Borrowed(value.as_str())));
        let is_type = |(name, _): &(&str, Cow<'_, str>)| *name == "content-type";
        match protocol {
            Protocol::Http => {
                let (content_type, body) = self.body(response, status);
                headers.extend(theirs);
                if let Some(content_type) = content_type.filter(|_| !headers.iter().any(is_type)) {
                    headers.push(("content-type", Cow::Borrowed(content_type)));
                }
                LocalReply { status, headers, body, grpc_status: None, details: self.details }
            }
            Protocol::Grpc => {
                headers.push(("grpc-retry-pushback-ms", Cow::Owned(self.pushback)));
                // The type is gRPC's own: the proxy would add a text's to it, which makes it none.
                headers.extend(theirs.filter(|header| !is_type(header)));
                let grpc_status = Some(self.kind.grpc_status());
                LocalReply { status, headers, body: self.message.into(), grpc_status, details: self.details }
            }
        }
    }

    /// The body and its type, unless the policy's headers say another.
    fn body(&self, response: &'a Response, status: u16) -> (Option<&'static str>, Cow<'a, str>) {
        match &response.body {
            Body::Json => (Some("application/json"), self.json().into()),
            Body::Problem => (Some("application/problem+json"), self.problem(status).into()),
            Body::Text(text) => (Some("text/plain; charset=utf-8"), text.into()),
            Body::None => (None, "".into()),
        }
    }

    fn json(&self) -> String {
        let mut out = String::with_capacity(BODY_BYTES);
        out.push_str("{\"error\":");
        push_quoted(&mut out, self.kind.error());
        out.push_str(",\"message\":");
        push_quoted(&mut out, &self.message);
        self.push_policy(&mut out);
        out.push('}');
        out
    }

    /// A problem of RFC 9457, with the draft's member `violated-policies`, and our own body's members besides.
    fn problem(&self, status: u16) -> String {
        let (kind, title) = self.kind.problem();
        let mut out = String::with_capacity(2 * BODY_BYTES);
        out.push_str("{\"type\":");
        push_quoted(&mut out, kind);
        out.push_str(",\"title\":");
        push_quoted(&mut out, title);
        // Writing to a string does not fail.
        let _ = write!(out, ",\"status\":{status},\"detail\":");
        push_quoted(&mut out, &self.message);
        out.push_str(",\"violated-policies\":[");
        for (index, policy) in self.policies.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            push_quoted(&mut out, policy);
        }
        out.push(']');
        self.push_policy(&mut out);
        out.push('}');
        out
    }

    /// The policy that binds, and when to come again.
    fn push_policy(&self, out: &mut String) {
        out.push_str(",\"policy\":");
        push_quoted(out, self.policy);
        if let Some(seconds) = self.retry_after_s {
            let _ = write!(out, ",\"retry_after\":{seconds}");
        }
    }
}

/// What our own body mostly takes; more is no harm.
const BODY_BYTES: usize = 192;

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
