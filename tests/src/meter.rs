//! What a limit has let through, against what it may let through in any span of time.

use std::time::Instant;

use crate::load::Shot;

/// The most that was admitted in some span beyond what the rate fills in that span: a token bucket of capacity C
/// and rate r keeps it at C or below, in whichever span.
///
/// What a client sees of two admissions may be closer together than they were, by what an answer takes; see
/// [`slowest_shot_s`].
pub fn fullest_span(shots: &[Shot], begun: Instant, per_second: f64) -> f64 {
    let admitted = shots.iter().filter(|shot| shot.status == 200);
    let mut times: Vec<f64> =
        admitted.map(|shot| shot.answered_at.saturating_duration_since(begun).as_secs_f64()).collect();
    times.sort_by(f64::total_cmp);
    // A meter that every admission fills and time empties exceeds a bound if and only if some span does.
    let (mut level, mut last, mut highest) = (0.0_f64, 0.0, 0.0_f64);
    for time in times {
        level = (level - (time - last) * per_second).max(0.0) + 1.0;
        last = time;
        highest = highest.max(level);
    }
    highest
}

/// The longest time from a request to its answer, in seconds.
pub fn slowest_shot_s(shots: &[Shot]) -> f64 {
    shots.iter().map(|shot| shot.took.as_secs_f64()).fold(0.0, f64::max)
}
