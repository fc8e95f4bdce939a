//! The values of the fields: Structured Field Lists (RFC 9651) in their canonical form, and the one
//! policy that the older families have room for.

use core::fmt::Write as _;
use core::time::Duration;

use super::upstream::Names;
use super::{Item, State};
use crate::decision::Verdict;

/// The greatest Integer of a Structured Field. What is greater is told as this.
const MAX_INTEGER: u64 = 999_999_999_999_999;

const MICROS_PER_SECOND: u64 = 1_000_000;

/// Whole seconds, rounded up: a client that comes back early is refused again.
pub(crate) const fn seconds(micros: u64) -> u64 {
    micros.div_ceil(MICROS_PER_SECOND)
}

/// Writes a name between quotes. Structured Fields and JSON escape printable ASCII alike.
pub(crate) fn push_quoted(out: &mut String, name: &str) {
    out.push('"');
    for char in name.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            ' '..='~' => out.push(char),
            // A valid name has none of these. If one comes here, the rest of the field must stay readable.
            _ => out.push('_'),
        }
    }
    out.push('"');
}

/// `RateLimit-Policy`: every policy that applies.
pub(super) fn policies(out: &mut String, items: &[Item<'_>], names: &Names) {
    out.clear();
    for (index, item) in items.iter().enumerate() {
        separate(out);
        push_quoted(out, names.get(index).unwrap_or(item.name));
        push_parameter(out, 'q', item.advertised.quota);
        if let Some(window_s) = item.advertised.window_s {
            push_parameter(out, 'w', window_s);
        }
    }
}

/// `RateLimit-Policy` of draft 06, which knows no names.
pub(super) fn plain_policies(out: &mut String, items: &[Item<'_>]) {
    out.clear();
    for item in items {
        separate(out);
        push_integer(out, item.advertised.quota);
        // This draft requires a window. Nothing in a second is as true as nothing at all.
        push_parameter(out, 'w', item.advertised.window_s.unwrap_or(1));
    }
}

/// `RateLimit`: empty where no state is to be told, as a list without members is not sent.
pub(super) fn states(out: &mut String, items: &[Item<'_>], names: &Names, verdict: Verdict) {
    out.clear();
    for (index, item) in items.iter().enumerate() {
        let Some(told) = Told::of(item, verdict) else { continue };
        separate(out);
        push_quoted(out, names.get(index).unwrap_or(item.name));
        push_parameter(out, 'r', told.remaining);
        if let Some(reset_us) = told.reset_us {
            push_parameter(out, 't', seconds(reset_us));
        }
    }
}

/// A field that is a number.
pub(super) fn integer(out: &mut String, number: u64) -> &[u8] {
    out.clear();
    push_integer(out, number);
    out.as_bytes()
}

/// The policy that an older family tells of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Binding {
    pub(super) quota: u64,
    pub(super) remaining: u64,
    reset_us: Option<u64>,
}

impl Binding {
    /// Seconds until the reset; `None` where there is none.
    pub(super) fn delta(&self) -> Option<u64> {
        self.reset_us.map(|reset_us| seconds(reset_us).min(MAX_INTEGER))
    }

    /// The reset in seconds since 1970. Rounded once, from the exact sum: rounding both parts could be
    /// a second late.
    pub(super) fn epoch(&self, unix_now: Duration) -> Option<u64> {
        let reset = unix_now.saturating_add(Duration::from_micros(self.reset_us?));
        let started = u64::from(reset.subsec_nanos() > 0);
        Some(reset.as_secs().saturating_add(started).min(MAX_INTEGER))
    }
}

/// The told policy with the least remaining; among equals the one that resets last, then the first.
pub(super) fn binding(items: &[Item<'_>], verdict: Verdict) -> Option<Binding> {
    let told = items.iter().filter_map(|item| Some((item, Told::of(item, verdict)?)));
    // A reset that never comes is later than any other.
    let rank = |told: &Told| (told.remaining, u64::MAX - told.reset_us.unwrap_or(u64::MAX));
    let (item, told) = told.min_by_key(|(_, told)| rank(told))?;
    Some(Binding {
        quota: item.advertised.quota.min(MAX_INTEGER),
        remaining: told.remaining.min(MAX_INTEGER),
        reset_us: told.reset_us,
    })
}

/// What a response tells of a policy's state.
struct Told {
    remaining: u64,
    reset_us: Option<u64>,
}

impl Told {
    fn of(item: &Item<'_>, verdict: Verdict) -> Option<Self> {
        let (remaining, reset_us) = match (verdict, item.state) {
            (Verdict::Unavailable { .. }, _)
            | (_, State::Unknown)
            | (Verdict::Refuse, State::Passed { .. }) => {
                return None;
            }
            (Verdict::Admit, State::Passed { remaining, reset_us }) => (remaining, Some(reset_us)),
            (_, State::Violated { remaining, wait_us }) => (remaining, wait_us),
            (_, State::Closed(_)) => (0, None),
        };
        // More left than the limit has would be read as an error.
        Some(Self { remaining: remaining.min(item.advertised.quota), reset_us })
    }
}

fn separate(out: &mut String) {
    if !out.is_empty() {
        out.push_str(", ");
    }
}

fn push_parameter(out: &mut String, key: char, number: u64) {
    out.extend([';', key, '=']);
    push_integer(out, number);
}

fn push_integer(out: &mut String, number: u64) {
    // Writing to a string does not fail.
    let _ = write!(out, "{}", number.min(MAX_INTEGER));
}
