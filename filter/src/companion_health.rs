//! What Envoy's log says of the companion: a line when it stops to decide, and one when it decides again.
//!
//! What becomes of requests meanwhile is said by each policy's `on_failure` and counted by the metrics.

use core::fmt;

use limiter::time::Instant;

/// The least time between two lines of one worker: neither requests nor a companion that comes and goes can
/// fill a log.
const QUIET_US: u64 = 1_000_000;

/// Why a call brought no decision.
pub(crate) enum Fault {
    /// Envoy does not know the cluster.
    NoCluster,
    /// Envoy did not send it.
    NotSent,
    /// Nobody answered; what Envoy said in the companion's place, if it said something.
    NoAnswer(String),
    /// The answer does not bear the marker of the companion's messages.
    NotACompanion,
    /// The companion answered with this status instead of 200.
    Refused(String),
    /// The companion's answer is not one to this version's question.
    Unreadable,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, detail) = match self {
            Self::NoCluster => ("Envoy has no cluster of this name", ""),
            Self::NotSent => ("the cluster has no endpoint, or its circuit breaker is open", ""),
            Self::NoAnswer(words) => ("no answer: ", words.as_str()),
            Self::NotACompanion => ("what answers there is not a Tidegate companion of this version", ""),
            Self::Refused(status) => ("it answers with status ", status.as_str()),
            Self::Unreadable => ("its answer cannot be read", ""),
        };
        f.write_str(text)?;
        f.write_str(detail)
    }
}

/// How the calls of one worker went lately.
#[derive(Default)]
pub(crate) struct CompanionHealth {
    /// Failed calls that no line has told the end of.
    failed: u64,
    /// Whether the last call failed.
    is_bad: bool,
    /// Whether a line has told of the failures.
    is_told: bool,
    last_line: Option<Instant>,
}

impl CompanionHealth {
    /// A call has failed.
    pub(crate) fn on_failed(&mut self, cluster: &str, fault: &Fault, now: Instant) {
        self.failed = self.failed.saturating_add(1);
        let is_news = !self.is_bad || !self.is_told;
        self.is_bad = true;
        if is_news && self.may_log(now) {
            self.is_told = true;
            log::warn!("tidegate: no decision from the companion, cluster \"{cluster}\": {fault}");
        }
    }

    /// A call has brought decisions.
    pub(crate) fn on_answered(&mut self, now: Instant) {
        self.is_bad = false;
        if self.failed > 0 && self.may_log(now) {
            log::info!("tidegate: the companion decides again; calls that failed: {}", self.failed);
            self.failed = 0;
            self.is_told = false;
        }
    }

    /// True where a line is due, which is then taken for written.
    fn may_log(&mut self, now: Instant) -> bool {
        let is_due = self.last_line.is_none_or(|last| now.micros_since(last) >= QUIET_US);
        if is_due {
            self.last_line = Some(now);
        }
        is_due
    }
}
