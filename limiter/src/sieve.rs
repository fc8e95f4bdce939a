//! Which of all policies apply to a request, tried at once.
//!
//! A set of policies is a word, a bit for each. Every kind of condition is one step, which reads what it needs only
//! where a policy that is still in the set asks for it, looks it up, and takes out those that do not hold. So the
//! policies of other paths cost a request next to nothing, and no attribute is read for them.

use core::net::IpAddr;

use crate::matching::{Cidr, Conditions, HeaderCondition, HostMatch, PathMatch, Values, is_ambiguous};
use crate::policy::MAX_POLICIES;
use crate::request::Request;

/// A set of policies, by their indices.
pub(crate) type Set = u64;

const _: () = assert!(MAX_POLICIES <= Set::BITS as usize);

/// The set of one policy.
pub(crate) const fn only(index: usize) -> Set {
    // There are no more policies than bits.
    1 << (index % MAX_POLICIES)
}

/// The policies of a set, in their order.
pub(crate) fn members(mut set: Set) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let index = set.trailing_zeros();
        set &= set.checked_sub(1)?;
        Some(index as usize)
    })
}

/// The conditions of all policies, by their kinds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sieve {
    methods: Texts,
    exact_paths: Sorted,
    prefixes: Vec<(String, Set)>,
    /// Templates and regular expressions.
    patterns: Vec<(PathMatch, Set)>,
    has_path: Set,
    exact_hosts: Sorted,
    wildcards: Vec<(HostMatch, Set)>,
    has_host: Set,
    routes: Texts,
    headers: Vec<(String, Vec<(HeaderCondition, Set)>)>,
    cidrs: Vec<(Cidr, Set)>,
    has_cidr: Set,
}

/// A kind of condition on a text as it is, and the policies that have it.
#[derive(Clone, Debug, Default)]
struct Texts {
    has: Set,
    by: Sorted,
}

/// Policies by a text.
#[derive(Clone, Debug, Default)]
struct Sorted(Vec<(Vec<u8>, Set)>);

impl Sorted {
    fn add(&mut self, text: &str, set: Set) {
        match self.position(text.as_bytes()) {
            Ok(at) => {
                if let Some((_, there)) = self.0.get_mut(at) {
                    *there |= set;
                }
            }
            Err(at) => self.0.insert(at, (text.as_bytes().to_vec(), set)),
        }
    }

    fn get(&self, text: &[u8]) -> Set {
        self.position(text).ok().and_then(|at| self.0.get(at)).map_or(0, |(_, set)| *set)
    }

    fn position(&self, text: &[u8]) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.as_slice().cmp(text))
    }
}

impl Sieve {
    /// Adds the conditions of the policy with this index.
    pub(crate) fn add(&mut self, index: usize, conditions: &Conditions) {
        let set = only(index);
        let Conditions { methods, hosts, path, headers, routes, cidrs } = conditions;
        for method in methods {
            self.methods.has |= set;
            self.methods.by.add(method, set);
        }
        for host in hosts {
            self.has_host |= set;
            match host {
                HostMatch::Exact(name) => self.exact_hosts.add(name, set),
                HostMatch::Below(_) => merge(&mut self.wildcards, host, set),
            }
        }
        if let Some(path) = path {
            self.has_path |= set;
            match path {
                PathMatch::Exact(path) => self.exact_paths.add(path, set),
                PathMatch::Prefix(prefix) => merge(&mut self.prefixes, prefix, set),
                PathMatch::Template(_) | PathMatch::Regex(_) => merge(&mut self.patterns, path, set),
            }
        }
        for header in headers {
            match self.headers.iter_mut().find(|(name, _)| *name == header.name) {
                Some((_, conditions)) => merge(conditions, &header.condition, set),
                None => self.headers.push((header.name.clone(), vec![(header.condition.clone(), set)])),
            }
        }
        for route in routes {
            self.routes.has |= set;
            self.routes.by.add(route, set);
        }
        for cidr in cidrs {
            self.has_cidr |= set;
            merge(&mut self.cidrs, cidr, set);
        }
    }

    /// Those of a set whose conditions hold. `values`: how many values of a header must fit.
    pub(crate) fn sift<'a>(&'a self, mut set: Set, request: &mut Request<'a>, values: Values) -> Set {
        if set & self.methods.has != 0 {
            set &= !self.methods.has | self.methods.by.get(request.method());
        }
        if set & self.has_path != 0 {
            set &= !self.has_path | self.of_path(set, request.path(), values);
        }
        if set & self.has_host != 0 {
            set &= !self.has_host | self.of_host(set, request.host());
        }
        if set & self.routes.has != 0 {
            set &= !self.routes.has | self.routes.by.get(request.route());
        }
        for (name, conditions) in &self.headers {
            for (condition, asking) in conditions {
                if set & asking != 0 && !condition.holds(request.header(name), values) {
                    set &= !asking;
                }
            }
        }
        if set & self.has_cidr != 0 {
            set &= !self.has_cidr | request.address().map_or(0, |address| self.of_address(address));
        }
        set
    }

    fn of_path(&self, set: Set, path: &[u8], values: Values) -> Set {
        if values == Values::All && is_ambiguous(path) {
            // As each of the others says by itself.
            return self.exact_paths.get(path);
        }
        let prefixes = self.prefixes.iter().filter(|(prefix, _)| path.starts_with(prefix.as_bytes()));
        let found = self.exact_paths.get(path) | union(prefixes);
        // These cost more, and are tried only for policies that can still apply.
        let asked = self.patterns.iter().filter(|(_, asking)| set & asking & !found != 0);
        found | union(asked.filter(|(pattern, _)| pattern.holds(path, values)))
    }

    fn of_host(&self, set: Set, host: &[u8]) -> Set {
        let asked = self.wildcards.iter().filter(|(_, asking)| set & asking != 0);
        self.exact_hosts.get(host) | union(asked.filter(|(wildcard, _)| wildcard.holds(host)))
    }

    fn of_address(&self, address: IpAddr) -> Set {
        union(self.cidrs.iter().filter(|(cidr, _)| cidr.contains(address)))
    }
}

/// Conditions that are written twice are tried once.
fn merge<T: Clone + PartialEq>(list: &mut Vec<(T, Set)>, condition: &T, set: Set) {
    match list.iter_mut().find(|(known, _)| known == condition) {
        Some((_, there)) => *there |= set,
        None => list.push((condition.clone(), set)),
    }
}

fn union<'a, T: 'a>(entries: impl Iterator<Item = &'a (T, Set)>) -> Set {
    entries.fold(0, |union, (_, set)| union | set)
}
