//! Waiting for something to become true, with a deadline.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Long enough for a busy two-core machine to start an Envoy with a module, short enough for a
/// person to wait for a test that cannot succeed.
pub(crate) const START_DEADLINE: Duration = Duration::from_secs(30);

const PAUSE: Duration = Duration::from_millis(10);

/// Polls until `poll` gives a value, and returns it.
///
/// Panics with `what` when that takes longer than `deadline`, also when a single poll does.
pub async fn until<T>(what: &str, deadline: Duration, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + deadline;
    loop {
        match tokio::time::timeout_at(end, poll()).await {
            Ok(Some(value)) => return value,
            Ok(None) if Instant::now() < end => sleep(PAUSE).await,
            _ => panic!("waited {deadline:?} in vain for: {what}"),
        }
    }
}
