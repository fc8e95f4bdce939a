//! The response fields that tell a client how it stands: `RateLimit` and `RateLimit-Policy` as the drafts
//! of the IETF's HTTPAPI group write them (draft-ietf-httpapi-ratelimit-headers), and two older families.
//!
//! Which policies apply and how they stand comes in as [`Item`]s; how a response's headers are reached
//! comes in as [`ResponseHeaders`]. The answer to a refused request itself is in [`crate::answer`].

mod item;
#[cfg(test)]
mod properties;
mod render;
#[cfg(test)]
mod samples;
mod upstream;
#[cfg(test)]
mod vectors;

use core::time::Duration;

use crate::decision::Verdict;

pub use item::{Advertised, Closed, Item, State};
pub(crate) use render::{push_quoted, seconds};

/// A wire form of the fields, named by its generation: the draft is not a standard yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// `RateLimit-Policy` and `RateLimit` as the drafts 08 to 11 write them.
    Draft11,
    /// `RateLimit-Limit`, `-Remaining`, `-Reset` and `RateLimit-Policy` as draft 06 writes them.
    Draft06,
    /// `X-RateLimit-Limit`, `-Remaining`, `-Reset`.
    XRateLimit {
        /// What the reset counts.
        reset: Reset,
    },
}

impl Family {
    /// Whether this family's values name a point in time, so that [`write`] must be told the wall clock.
    pub const fn needs_wall_clock(self) -> bool {
        matches!(self, Self::XRateLimit { reset: Reset::Epoch })
    }
}

/// What `X-RateLimit-Reset` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    /// Seconds from now.
    Delta,
    /// Seconds since 1970.
    Epoch,
}

/// The headers of one response. Names are in lower case, as HTTP/2 wants them.
pub trait ResponseHeaders {
    /// The field's value, all its lines joined with commas: what is not handed out here is lost when the
    /// field is set. `None` where the response has no such field.
    fn get(&mut self, name: &'static str) -> Option<Vec<u8>>;

    /// Puts one line in place of all lines of the field.
    fn set(&mut self, name: &'static str, value: &[u8]);

    /// Takes all lines of the field away.
    fn remove(&mut self, name: &'static str);
}

/// Whether a response of this status that names another place sends the client there. Such a response does not
/// carry the fields: `r=0` may keep a client from following it.
pub const fn is_redirect(status: u16) -> bool {
    matches!(status, 300..=399)
}

/// Writes the fields of all `families` to a response, at most once each.
///
/// `items` are the policies that apply to the request, in the configuration's order, without unlimited
/// and shadow ones; see [`Item::of`]. Of a refusal only the violated ones are told how they stand, of a
/// failure none. `unix_now` is the time since 1970; without it, a family that needs it leaves its
/// reset out.
///
/// What upstream sent is never lost: lists are appended to, under names that upstream does not use. Of
/// the older families, which have room for one policy, ours is told only where it is shown to be the more
/// restrictive: where it has less left than upstream's, upstream says nothing, or the request was refused.
pub fn write(
    families: &[Family],
    items: &[Item<'_>],
    verdict: Verdict,
    unix_now: Option<Duration>,
    headers: &mut dyn ResponseHeaders,
) {
    if items.is_empty() {
        return;
    }
    // One buffer for all values, since every response is written to.
    let out = &mut String::with_capacity(items.len() * MEMBER_BYTES);
    let draft_06 = families.contains(&Family::Draft06);
    if families.contains(&Family::Draft11) {
        write_lists(out, items, verdict, headers);
    } else if draft_06 {
        // Both generations share the name of this field, but not its form: one response cannot carry
        // both, and the newer form says more.
        render::plain_policies(out, items);
        let theirs = headers.get(POLICY);
        set_joined(POLICY, theirs, out, headers);
    }
    let binding = render::binding(items, verdict);
    if let Some(ours) = binding.filter(|_| draft_06) {
        write_triple(out, &DRAFT_06, &ours, ours.delta(), verdict, headers);
    }
    let x_reset = families.iter().find_map(|family| match family {
        Family::XRateLimit { reset } => Some(*reset),
        _ => None,
    });
    if let Some((ours, reset)) = binding.zip(x_reset) {
        let reset = match reset {
            Reset::Delta => ours.delta(),
            Reset::Epoch => unix_now.and_then(|now| ours.epoch(now)),
        };
        write_triple(out, &X_RATE_LIMIT, &ours, reset, verdict, headers);
    }
}

/// What one policy mostly takes in a list; more is no harm.
const MEMBER_BYTES: usize = 64;

const POLICY: &str = "ratelimit-policy";
const STATE: &str = "ratelimit";

/// The three fields of an older family.
struct Triple {
    limit: &'static str,
    remaining: &'static str,
    reset: &'static str,
}

const DRAFT_06: Triple =
    Triple { limit: "ratelimit-limit", remaining: "ratelimit-remaining", reset: "ratelimit-reset" };

const X_RATE_LIMIT: Triple =
    Triple { limit: "x-ratelimit-limit", remaining: "x-ratelimit-remaining", reset: "x-ratelimit-reset" };

fn write_lists(out: &mut String, items: &[Item<'_>], verdict: Verdict, headers: &mut dyn ResponseHeaders) {
    let (their_policies, their_states) = (headers.get(POLICY), headers.get(STATE));
    // A name joins the two fields, so it must be free in both.
    let names = upstream::distinct_names(items, their_policies.as_deref(), their_states.as_deref());
    render::policies(out, items, &names);
    set_joined(POLICY, their_policies, out, headers);
    render::states(out, items, &names, verdict);
    if !out.is_empty() {
        set_joined(STATE, their_states, out, headers);
    }
}

fn set_joined(name: &'static str, theirs: Option<Vec<u8>>, ours: &str, headers: &mut dyn ResponseHeaders) {
    match theirs {
        // An empty field is a list without members; a comma after nothing would break it.
        Some(mut list) if !list.trim_ascii().is_empty() => {
            list.extend_from_slice(b", ");
            list.extend_from_slice(ours.as_bytes());
            headers.set(name, &list);
        }
        _ => headers.set(name, ours.as_bytes()),
    }
}

fn write_triple(
    out: &mut String,
    names: &Triple,
    ours: &render::Binding,
    reset: Option<u64>,
    verdict: Verdict,
    headers: &mut dyn ResponseHeaders,
) {
    // Nothing restricts more than a refusal, so there upstream's need not be read.
    let refused = verdict == Verdict::Refuse;
    // An empty field says nothing.
    let restricts =
        |theirs: Vec<u8>| !theirs.trim_ascii().is_empty() && !upstream::is_looser(&theirs, ours.remaining);
    if !refused && headers.get(names.remaining).is_some_and(restricts) {
        return;
    }
    headers.set(names.limit, render::integer(out, ours.quota));
    headers.set(names.remaining, render::integer(out, ours.remaining));
    match reset {
        Some(reset) => headers.set(names.reset, render::integer(out, reset)),
        // Upstream's reset beside our limit would be told of the wrong policy.
        None => headers.remove(names.reset),
    }
}
