//! The store is away for ten seconds while clients above their limits go on: what each failure mode makes of
//! them, how long they wait for it, and how counting resumes.

mod counts;
mod run;

use counts::Outcome;
use run::{AWAY_S, Away, CAPACITY, Case, INTERVAL_S, REFILL_PER_SECOND, TIMEOUT_S, assert_outage};

/// Both ways to be away, at the same time.
async fn assert_outages(case: Case) {
    tokio::join!(assert_outage(case, Away::Held), assert_outage(case, Away::Killed));
}

/// Nothing is decided without the store: every request is what `on_failure` says.
const EXACT_OPEN: Case = Case {
    sync: "exact",
    on_failure: "\"open\"",
    failure: Some(Outcome::Unprotected),
    admitted_while_away: 0.0,
    excess: 0.0,
    proxies: 1,
};
const EXACT_CLOSED: Case = Case {
    on_failure: r#"{ "closed": { "retry_after": "5s" } }"#,
    failure: Some(Outcome::Unavailable),
    ..EXACT_OPEN
};

/// What was leased is spent first, and what was refused is refused for as long as that is known to be right.
const LEASE_OPEN: Case = Case { sync: "lease", admitted_while_away: CAPACITY, ..EXACT_OPEN };
const LEASE_CLOSED: Case = Case { sync: "lease", admitted_while_away: CAPACITY, ..EXACT_CLOSED };

/// Two proxies go on with half the limit each: what the limit lets through meanwhile, and not much less. What was left
/// when the store was last heard of comes on top, at most a bucket.
const EXACT_SHARE: Case = Case {
    on_failure: "\"share\"",
    failure: None,
    admitted_while_away: CAPACITY + REFILL_PER_SECOND * AWAY_S,
    excess: CAPACITY,
    proxies: 2,
    ..EXACT_OPEN
};
const LEASE_SHARE: Case =
    Case { sync: "lease", admitted_while_away: CAPACITY + EXACT_SHARE.admitted_while_away, ..EXACT_SHARE };

/// Of two proxies the one may let through a bucket, an interval and a timeout that the other does not know of.
const ASYNC: Case = Case {
    sync: "async",
    admitted_while_away: EXACT_SHARE.admitted_while_away + REFILL_PER_SECOND * (INTERVAL_S + TIMEOUT_S),
    excess: CAPACITY + REFILL_PER_SECOND * (INTERVAL_S + TIMEOUT_S),
    ..EXACT_SHARE
};

#[tokio::test]
async fn an_exact_limit_that_is_shared_goes_on_at_the_rate_of_the_limit() {
    assert_outages(EXACT_SHARE).await;
}

#[tokio::test]
async fn a_leased_limit_that_is_shared_goes_on_at_the_rate_of_the_limit() {
    assert_outages(LEASE_SHARE).await;
}

#[tokio::test]
async fn an_async_limit_goes_on_at_the_rate_of_the_limit() {
    assert_outages(ASYNC).await;
}

#[tokio::test]
async fn an_exact_limit_that_is_open_lets_all_pass_until_its_store_is_back() {
    assert_outages(EXACT_OPEN).await;
}

#[tokio::test]
async fn an_exact_limit_that_is_closed_answers_503_until_its_store_is_back() {
    assert_outages(EXACT_CLOSED).await;
}

#[tokio::test]
async fn a_leased_limit_that_is_open_spends_its_leases_and_then_lets_all_pass() {
    assert_outages(LEASE_OPEN).await;
}

#[tokio::test]
async fn a_leased_limit_that_is_closed_spends_its_leases_and_then_answers_503() {
    assert_outages(LEASE_CLOSED).await;
}
