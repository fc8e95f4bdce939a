//! What becomes of a request, and what each policy had to do with it.

use core::time::Duration;

use crate::bucket::{Fit, Standing};
use crate::request::Terms;

/// What becomes of a request. Denied and broken are different things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It passes.
    Admit,
    /// A policy denies it: 429.
    Refuse,
    /// A policy that fails closed could not be asked: 503.
    Unavailable {
        /// The longest that the policies ask for, in whole seconds.
        retry_after: Duration,
    },
}

/// What a policy had to do with a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It admitted and charged the request.
    Admitted,
    /// It denied the request.
    Refused,
    /// It would have denied the request, but is only watched.
    ShadowRefused,
    /// Another policy denied the request, or failed closed: nothing was charged here.
    Spared,
    /// It could not be asked and let the request through.
    Unprotected,
    /// It could not be asked and denied the request.
    Unavailable,
}

/// One policy's part in a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Index of the policy.
    pub policy: usize,
    /// The limit that held for the request.
    pub terms: Terms,
    /// What it had to do with the decision.
    pub outcome: Outcome,
    /// How its bucket stands after the decision, where that is known.
    pub standing: Option<Standing>,
}

/// What becomes of a request, with a mark for every policy that applies, in the policies' order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What becomes of it.
    pub verdict: Verdict,
    /// Why.
    pub marks: Vec<Mark>,
}

/// How a policy stands towards a request, before it is known what becomes of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// It answered.
    Stands(Standing),
    /// It denies everything.
    Blocks,
    /// It was not asked: not yet, not any more, or in vain.
    Unknown,
}

impl Finding {
    /// True where the request does not fit.
    pub(crate) fn denies(self) -> bool {
        match self {
            Self::Stands(standing) => standing.fit != Fit::Now,
            Self::Blocks => true,
            Self::Unknown => false,
        }
    }

    pub(crate) fn standing(self) -> Option<Standing> {
        match self {
            Self::Stands(standing) => Some(standing),
            Self::Blocks => Some(Standing { remaining: 0, fit: Fit::Never, full_us: 0 }),
            Self::Unknown => None,
        }
    }
}
