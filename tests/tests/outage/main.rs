//! The store is away for ten seconds while clients above their limits go on: what each failure mode makes of
//! them, how long they wait for it, and how counting resumes.

mod run;
mod tally;

use run::{Away, CAPACITY, Case, assert_outage};
use tally::Outcome;

/// Both ways to be away, at the same time.
async fn assert_outages(case: Case) {
    let (held, killed) = tokio::join!(assert_outage(case, Away::Held), assert_outage(case, Away::Killed));
    println!("waited in the second half: {held:?} while it was held, {killed:?} while it was killed");
}

/// Nothing is decided without the store: every request is what `on_failure` says.
const EXACT_OPEN: Case = Case {
    sync: "exact",
    on_failure: "\"open\"",
    failure: Some(Outcome::Unprotected),
    admitted_while_away: 0.0,
};
const EXACT_CLOSED: Case = Case {
    on_failure: r#"{ "closed": { "retry_after": "5s" } }"#,
    failure: Some(Outcome::Unavailable),
    ..EXACT_OPEN
};

/// What was leased is spent first, and what was refused is refused for as long as that is known to be right.
const LEASE_OPEN: Case = Case { sync: "lease", admitted_while_away: CAPACITY, ..EXACT_OPEN };
const LEASE_CLOSED: Case = Case { sync: "lease", admitted_while_away: CAPACITY, ..EXACT_CLOSED };

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
