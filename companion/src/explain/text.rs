//! An explanation for people.

use std::fmt::Write as _;

use limiter::explain::{Answer, Counted, Explained, Explanation, Part, Unmet};

use super::Now;

/// The explanation, a paragraph for each policy, and the answer at the end. `now`: how the buckets stand, where a store was
/// asked.
pub(super) fn shown(explanation: &Explanation, now: Option<&[Option<Now>]>) -> String {
    let mut out = String::new();
    for (index, Explained { policy, part }) in explanation.policies.iter().enumerate() {
        line(&mut out, &format!("{policy}: {}", headline(part)));
        if let Part::Counts(counted) = part {
            counts(&mut out, counted);
            if let Some(now) = now.map(|now| now.get(index).copied().flatten()) {
                line(&mut out, &format!("  now     {}", state(now, counted)));
            }
        }
        out.push('\n');
    }
    answer(&mut out, if now.is_some() { "A request now" } else { "A first request" }, &explanation.answer);
    out
}

fn line(out: &mut String, text: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "{text}");
}

fn headline(part: &Part) -> String {
    match part {
        Part::Counts(Counted { shadow: true, .. }) => "applies, and only watches".to_owned(),
        Part::Counts(_) => "applies".to_owned(),
        Part::Blocks { plan } => format!("applies, and lets no request pass{}", of_plan(plan.as_deref())),
        Part::NoIdentity => "applies, and refuses a request without the identity of its key".to_owned(),
        Part::Unmet(Unmet { condition, wanted, found }) => {
            format!("does not apply: {condition} wants {wanted}; the request has \"{found}\"")
        }
        Part::Excepted => "does not apply: it excepts such requests".to_owned(),
        Part::Skipped => "does not apply: the request lacks the identity of its key".to_owned(),
        Part::Unlimited { plan } => format!("sets no limit{}", of_plan(plan.as_deref())),
    }
}

fn of_plan(plan: Option<&str>) -> String {
    plan.map(|plan| format!(" (plan \"{plan}\")")).unwrap_or_default()
}

fn counts(out: &mut String, counted: &Counted) {
    let Counted { key, shards, limit, plan, unknown_plan, is_anonymous, cost, sync, .. } = counted;
    let shared = if *is_anonymous { ", of all that lack the identity" } else { "" };
    let shards = if *shards > 1 { format!(", the first of {shards} shards") } else { String::new() };
    line(out, &format!("  key     {key}{shards}{shared}"));
    let unknown = unknown_plan.as_deref().map(|plan| format!(" (plan \"{plan}\" is not known)"));
    let plan = unknown.unwrap_or_else(|| of_plan(plan.as_deref()));
    line(out, &format!("  limit   {} at once, {}{plan}", limit.capacity(), limit.rate()));
    line(out, &format!("  cost    {cost}"));
    line(out, &format!("  sync    {sync}"));
}

fn state(now: Option<Now>, counted: &Counted) -> String {
    let Some(Now { remaining, wait_us, .. }) = now else {
        return "counted in the proxy, not in the store".to_owned();
    };
    let shadow = if counted.shadow { ", if the policy bound" } else { "" };
    let fits = match wait_us {
        Some(0) => "the request passes".to_owned(),
        Some(wait_us) => format!("the request passes in {} s{shadow}", wait_us.div_ceil(1_000_000).max(1)),
        None => format!("the request never passes{shadow}: it costs {}", counted.cost),
    };
    format!("{remaining} left; {fits}")
}

fn answer(out: &mut String, which: &str, answer: &Answer) {
    match answer.status {
        None => line(out, &format!("{which} goes on to upstream, and its response carries")),
        Some(status) => line(out, &format!("{which} is answered {status} with")),
    }
    for (name, value) in &answer.headers {
        line(out, &format!("  {name}: {value}"));
    }
    if answer.headers.is_empty() {
        line(out, "  nothing of the policies");
    }
    if !answer.body.is_empty() {
        line(out, &format!("  {}", answer.body));
    }
}
