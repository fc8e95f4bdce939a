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
    /// Those that except something.
    excepting: Set,
    excepts: Sieve,
}

/// More policies than [`MAX_POLICIES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyPolicies;

impl Policies {
    /// The indices of the policies that apply to a request, in their order, as far as the request's conditions decide.
    /// Those that never limit anything are left out.
    pub(crate) fn applying<'a>(&'a self, request: &mut Request<'a>) -> impl Iterator<Item = usize> + use<'a> {
        let mut set = self.matches.sift(self.binding, request, Values::Any);
        if set & self.excepting != 0 {
            set &= !self.excepts.sift(set & self.excepting, request, Values::All);
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
            if let Some(except) = &policy.matcher.except {
                policies.excepting |= only(index);
                policies.excepts.add(index, except);
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
