//! What is valid, and probably not what was meant. For people who write configurations: the filter never asks.
//!
//! Only what is certain from the configuration alone is told: no warning may be wrong for some requests.

mod client;
mod counting;
mod expression;
mod hidden;
mod subject;

use core::fmt;

use crate::error::Remedy;
use crate::place::Path;
use crate::report::{Errors, Report};
use crate::spot::Spot;
use crate::warnings::subject::Subject;
use crate::{Config, document, read};

/// One thing that works and may surprise, shown as an error is: `path: value concern; remedy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where.
    pub path: Path,
    /// What stands there, as JSON, shortened and with control characters escaped, or holds where nothing does.
    pub value: Option<String>,
    /// What may surprise.
    pub concern: Concern,
    /// What may be meant instead.
    pub remedy: Remedy,
}

/// What may surprise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concern {
    /// A policy that another one makes useless, by blocking all that it applies to.
    BlockedBy {
        /// The index of the other.
        policy: usize,
    },
    /// A policy that another one makes useless, by refusing all that it would.
    NoStricterThan {
        /// The index of the other.
        policy: usize,
    },
    /// An expression that no path fits.
    NoSlash,
    /// An expression that seems to ask for a beginning only.
    NotOnlyBegun,
    /// An expression without any sign of one.
    PlainText,
    /// A bucket for every path that a client can spell.
    AnyPath,
    /// Identities that clients make up.
    MadeUp {
        /// The index of a policy by address that would hold them, and is in shadow.
        watcher: Option<usize>,
    },
    /// A plan that clients choose.
    ChosenPlan,
    /// Costs that never fit.
    NeverFits {
        /// The most that does.
        capacity: u64,
    },
    /// Leases of a bucket too small to lease from.
    TinyLease {
        /// Of a bucket of the policy.
        capacity: u64,
    },
    /// A bucket that fills too fast for the mode.
    SlowReports,
    /// A login without limit while the store is away.
    OpenLogin,
    /// A key that has no effect on a policy that counts nothing.
    NothingCounted,
    /// A key that has no effect on a policy that refuses nothing.
    NothingRefused,
    /// A companion that no policy asks.
    NobodyAsks,
}

const MADE_UP: &str = "counts whoever a client says it is: who makes up values gets a full bucket for each";

/// Reads a configuration as [`crate::parse`] does, and says what may surprise in it.
///
/// # Errors
/// Everything that is wrong with it, at least one error.
pub fn check(bytes: &[u8]) -> Result<(Config, Vec<Warning>), Errors> {
    let root = document::read(bytes)?;
    let mut report = Report::default();
    let config = read(&Spot::root(&root), &mut report);
    let config = report.finish(config)?;
    let mut warnings = Vec::new();
    if config.companion.is_some() && counting::asks_nobody(&config) {
        warnings.push(Warning {
            path: Path(vec![crate::Step::Key("companion".to_owned())]),
            value: None,
            concern: Concern::NobodyAsks,
            remedy: Remedy::Do("remove it, or give a policy another \"sync\" than \"local\""),
        });
    }
    for subject in Subject::all(&root, &config) {
        hidden::warn(&subject, &config, &mut warnings);
        expression::warn(&subject, &mut warnings);
        client::warn(&subject, &config, &mut warnings);
        counting::warn(&subject, &mut warnings);
    }
    Ok((config, warnings))
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path)?;
        if let Some(value) = &self.value {
            write!(f, "{value} ")?;
        }
        write!(f, "{}; {}", self.concern, self.remedy)
    }
}

impl fmt::Display for Concern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Self::BlockedBy { policy } => {
                return write!(f, "applies only to requests that policies[{policy}] blocks");
            }
            Self::NoStricterThan { policy } => {
                return write!(
                    f,
                    "refuses nothing that policies[{policy}] lets pass: match and key are the same, and \
                                  the limit is no stricter"
                );
            }
            Self::MadeUp { watcher } => {
                f.write_str(MADE_UP)?;
                return watcher.map_or(Ok(()), |index| {
                    write!(f, ", and policies[{index}], which counts by address, only watches")
                });
            }
            Self::NeverFits { capacity } => {
                return write!(
                    f,
                    "is above the capacity of {capacity}: requests that tell more, or what cannot be \
                                  read, never pass"
                );
            }
            Self::TinyLease { capacity } => {
                return write!(
                    f,
                    "takes single tokens from a bucket of {capacity}, and refuses while another proxy \
                                  holds them"
                );
            }
            Self::NoSlash => "fits no path: the whole path has to fit, and begins with a slash",
            Self::NotOnlyBegun => "does not fit what only begins like it: an expression has to fit the whole",
            Self::PlainText => "has no sign of an expression, and fits this text alone",
            Self::AnyPath => "makes as many buckets as a client can think of paths",
            Self::ChosenPlan => "is what a client says: who sends the name of a plan gets its limit",
            Self::SlowReports => {
                "reports too slowly for a bucket that fills at once, and lets less than its rate pass"
            }
            Self::OpenLogin => "lets passwords be tried without limit while the store is away",
            Self::NothingCounted => "has no effect, for the policy counts nothing",
            Self::NothingRefused => "has no effect, for the policy refuses nothing",
            Self::NobodyAsks => "is not asked by any policy",
        };
        f.write_str(words)
    }
}
