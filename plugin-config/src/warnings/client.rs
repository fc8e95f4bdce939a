//! What is left to clients: who they are, which plan they have, what they cost, and how many paths there are.

use limiter::matching::PathMatch;
use limiter::policy::{Cost, KeyPart, Policy, Scope, Source};

use super::subject::{Subject, buckets, key};
use super::{Concern, Warning};
use crate::Config;
use crate::error::Remedy;
use crate::place::Step;

const ANY_PATH: &str = "match a template such as {\"template\": \"/users/{id}\"}, or leave \"path\" out";
const MADE_UP: &str =
    "add a policy with the key [\"ip\"], unless what is made up is refused before it comes here";
const WATCHED: &str =
    "take \"shadow\" off that one first, unless what is made up is refused before it comes here";
const CHOSEN: &str =
    "use \"claim\" or \"metadata\", unless what stands before the filter sets or removes what clients send";

pub(super) fn warn(subject: &Subject<'_>, config: &Config, warnings: &mut Vec<Warning>) {
    let policy = subject.policy;
    if let Some(plan) = &policy.plan
        && plan.from.iter().any(is_written_by_clients)
    {
        let steps = [key("plan"), key("from")];
        warnings.push(subject.warning(&steps, None, Concern::ChosenPlan, Remedy::Do(CHOSEN)));
    }
    if subject.smallest_capacity().is_none() {
        return;
    }
    let path = policy.key.iter().position(|part| *part == KeyPart::Scope(Scope::Path));
    if let Some(index) = path
        && !matches!(policy.matcher.conditions.path, Some(PathMatch::Template(_) | PathMatch::Exact(_)))
    {
        let steps = [key("key"), Step::Index(index)];
        warnings.push(subject.warning(&steps, None, Concern::AnyPath, Remedy::Do(ANY_PATH)));
    }
    warn_of_identities(subject, config, warnings);
    warn_of_cost(subject, warnings);
}

/// Of what clients make up. A policy by address holds it; that one may be in shadow where both are, as when a
/// configuration is tried before it binds.
fn warn_of_identities(subject: &Subject<'_>, config: &Config, warnings: &mut Vec<Warning>) {
    let holders = || config.policies.iter().enumerate().filter(|(_, other)| counts_by_address(other));
    let is_held = holders().any(|(_, holder)| !holder.shadow || subject.policy.shadow);
    if is_held || !is_made_up(subject.policy) {
        return;
    }
    let watcher = holders().next().map(|(index, _)| index);
    let remedy = Remedy::Do(if watcher.is_some() { WATCHED } else { MADE_UP });
    warnings.push(subject.warning(&[key("key")], None, Concern::MadeUp { watcher }, remedy));
}

fn warn_of_cost(subject: &Subject<'_>, warnings: &mut Vec<Warning>) {
    let (Cost::Told(told), Some(capacity)) = (&subject.policy.cost, subject.smallest_capacity()) else {
        return;
    };
    if told.max > capacity {
        let steps = [key("cost"), key("max")];
        let remedy = Remedy::AtMostOr(capacity, "a greater capacity");
        let default = told.max.to_string();
        warnings.push(subject.warning(&steps, Some(&default), Concern::NeverFits { capacity }, remedy));
    }
}

const fn is_written_by_clients(source: &Source) -> bool {
    matches!(source, Source::Header(_) | Source::Cookie(_) | Source::Query(_))
}

/// Whether clients can make up who they are.
fn is_made_up(policy: &Policy) -> bool {
    // Who has an address is counted by that, whatever he says besides.
    let up_to_address = |sources: &Vec<Source>| {
        let mut before = sources.iter().take_while(|source| **source != Source::Ip);
        before.any(is_written_by_clients)
    };
    identities(policy).any(up_to_address)
}

/// Whether a policy limits by addresses what any identity lets pass, be it in shadow.
fn counts_by_address(policy: &Policy) -> bool {
    let mut identities = identities(policy).peekable();
    let has_some = identities.peek().is_some();
    has_some && identities.all(|sources| *sources == [Source::Ip]) && buckets(policy).next().is_some()
}

fn identities(policy: &Policy) -> impl Iterator<Item = &Vec<Source>> {
    policy.key.iter().filter_map(|part| match part {
        KeyPart::Identity(sources) => Some(sources),
        KeyPart::Scope(_) => None,
    })
}
