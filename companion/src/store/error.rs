//! How a store fails. A denied take is no failure: it is an answer.

use core::fmt;
use std::time::Duration;

/// Why a script call has no answer. The detail is for logs, not for callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// No answer in time. The script may have run.
    Timeout {
        /// How long was waited.
        waited: Duration,
    },
    /// There is no connection, so nothing was sent; or it ended before the answer came.
    Unreachable {
        /// What the last attempt said.
        detail: String,
    },
    /// As many calls are under way as the companion allows; nothing was sent.
    Overloaded,
    /// The store answered that it does not run this; it changed nothing.
    Refused {
        /// The kind of refusal.
        refusal: Refusal,
        /// The store's own words.
        detail: String,
    },
    /// The store's answer is not one of this script.
    BadReply {
        /// What is wrong with it.
        detail: String,
    },
}

/// What is said in place of a code where a script may be run, and a command in it may not: by Redis 7 and Valkey,
/// and by Redis before.
const FORBIDDEN_IN_SCRIPT: [&str; 2] = ["ACL failure in script", "The user executing the script can't"];

/// What to do where the store does not let us in.
const PASSWORD: &str = "put the password into --store redis://:PASSWORD@…, or TIDEGATE_STORE";

/// The kinds of refusals that need different remedies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The server became a replica.
    ReadOnly,
    /// The server is reading its data from disk.
    Loading,
    /// Another script runs for too long.
    Busy,
    /// The server's memory, or the memory store, is full.
    OutOfMemory,
    /// User or password are missing or wrong.
    Unauthenticated,
    /// The user may not do this.
    Forbidden,
    /// A cluster does not hold the keys here, or not now.
    Cluster,
    /// A replica has lost its primary.
    PrimaryDown,
    /// The server cannot persist or replicate what it is configured to.
    NotDurable,
    /// Anything else, such as a fault in the script.
    Other,
}

impl Refusal {
    /// Reads the code that starts a Redis error, as in `READONLY You can't write against a read only replica.`
    pub fn from_code(code: &str) -> Self {
        match code {
            "READONLY" => Self::ReadOnly,
            "LOADING" => Self::Loading,
            "BUSY" => Self::Busy,
            "OOM" => Self::OutOfMemory,
            "NOAUTH" | "WRONGPASS" => Self::Unauthenticated,
            "NOPERM" => Self::Forbidden,
            "MOVED" | "ASK" | "TRYAGAIN" | "CLUSTERDOWN" | "CROSSSLOT" => Self::Cluster,
            "MASTERDOWN" => Self::PrimaryDown,
            "MISCONF" | "NOREPLICAS" => Self::NotDurable,
            _ => Self::Other,
        }
    }

    /// True where another connection may lead to a server that does not refuse, or to one that lets us in.
    pub const fn wants_new_connection(self) -> bool {
        matches!(self, Self::ReadOnly | Self::Unauthenticated | Self::PrimaryDown)
    }

    /// One word for logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::Loading => "loading",
            Self::Busy => "busy",
            Self::OutOfMemory => "out_of_memory",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::Cluster => "cluster",
            Self::PrimaryDown => "primary_down",
            Self::NotDurable => "not_durable",
            Self::Other => "refused",
        }
    }
}

impl StoreError {
    /// A refusal in the store's own words, which start with a code.
    pub fn refused(words: &str) -> Self {
        let code = words.split(' ').next().unwrap_or_default();
        let refusal = match Refusal::from_code(code) {
            Refusal::Other if FORBIDDEN_IN_SCRIPT.iter().any(|known| words.contains(known)) => {
                Refusal::Forbidden
            }
            refusal => refusal,
        };
        Self::Refused { refusal, detail: words.to_owned() }
    }

    /// One word for logs and metrics.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Timeout { .. } => "timeout",
            Self::Unreachable { .. } => "unreachable",
            Self::Overloaded => "overloaded",
            Self::Refused { refusal, .. } => refusal.as_str(),
            Self::BadReply { .. } => "bad_reply",
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout { waited } => write!(f, "no answer within {waited:?}"),
            Self::Unreachable { detail } => write!(f, "not connected: {detail}"),
            Self::Overloaded => f.write_str("too many calls under way"),
            Self::Refused { refusal: Refusal::Unauthenticated, detail } => {
                write!(f, "refused: {}; {PASSWORD}", detail.trim_end_matches('.'))
            }
            Self::Refused { detail, .. } => write!(f, "refused: {detail}"),
            Self::BadReply { detail } => write!(f, "unusable answer: {detail}"),
        }
    }
}

impl core::error::Error for StoreError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_forbidden_in_a_script_is_forbidden() {
        for words in [
            "NOPERM User u has no permissions to run the 'evalsha' command",
            "ERR ACL failure in script: User u has no permissions to run the 'set' command",
            "The user executing the script can't run this command or subcommand",
            "ERR Error running script (call to f_5): @user_script:49: @user_script: 49: The user executing the \
             script can't run this command or subcommand",
        ] {
            assert_eq!(StoreError::refused(words).kind(), "forbidden", "{words}");
        }
        assert_eq!(StoreError::refused("ERR Error running script: fault").kind(), "refused");
    }
}
