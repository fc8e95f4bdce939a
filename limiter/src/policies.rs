//! All policies of a configuration, compiled: the list, and what finds those that apply to a request.

use core::ops::Deref;

use crate::matching::Values;
use crate::policy::{Limit, MAX_POLICIES, Policy};
use crate::request::Request;
use crate::sieve::{Set, Sieve, members, only};

/// Policies that requests are checked against, in their order.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    list: Vec<Policy>,
    /// Those with a limit that can refuse or be charged.
    binding: Set,
    matches: Sieve,
    /// The first exceptions of all policies, the second ones, and so on, each with the policies that have one.
    exceptions: Vec<(Set, Sieve)>,
}

/// More policies than [`MAX_POLICIES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyPolicies;

impl Policies {
    /// The indices of the policies that apply to a request, in their order, as far as the request's conditions decide.
    /// Those that never limit anything are left out.
    pub(crate) fn applying<'a>(&'a self, request: &mut Request<'a>) -> impl Iterator<Item = usize> + use<'a> {
        let mut set = self.matches.sift(self.binding, request, Values::Any);
        for (excepting, sieve) in &self.exceptions {
            if set & excepting != 0 {
                set &= !sieve.sift(set & excepting, request, Values::All);
            }
        }
        members(set)
    }
}

impl TryFrom<Vec<Policy>> for Policies {
    type Error = TooManyPolicies;

    fn try_from(list: Vec<Policy>) -> Result<Self, TooManyPolicies> {
        if list.len() > MAX_POLICIES {
            return Err(TooManyPolicies);
        }
        let mut policies = Self { list, ..Self::default() };
        for (index, policy) in policies.list.iter().enumerate() {
            if policy.limits().any(|limit| limit != Limit::Unlimited) {
                policies.binding |= only(index);
            }
            policies.matches.add(index, &policy.matcher.conditions);
            let exceptions = &policy.matcher.except;
            let known = policies.exceptions.len().max(exceptions.len());
            policies.exceptions.resize_with(known, Default::default);
            for (except, (excepting, sieve)) in exceptions.iter().zip(&mut policies.exceptions) {
                *excepting |= only(index);
                sieve.add(index, except);
            }
        }
        Ok(policies)
    }
}

impl Deref for Policies {
    type Target = [Policy];

    fn deref(&self) -> &[Policy] {
        &self.list
    }
}

impl PartialEq for Policies {
    fn eq(&self, other: &Self) -> bool {
        // The rest is made of it.
        self.list == other.list
    }
}
