//! Configurations that are accepted, and what they mean.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic")]

use std::time::Duration;

use limiter::fields::{Family, Reset};
use limiter::matching::{Match, PathMatch};
use limiter::policy::{Cost, KeyPart, Limit, OnFailure, Policy, Source, Sync};
use limiter::quota::TokenBucket;
use limiter::table::Table;
use plugin_config::{Config, DEFAULT_SLOTS, DEFAULT_TIMEOUT, MAX_SLOTS, parse};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

fn config(json: &str) -> Config {
    parse(json.as_bytes()).unwrap_or_else(|errors| panic!("{json} is refused:\n{errors}"))
}

/// The one policy of a configuration with a companion.
fn policy(json: &str) -> Policy {
    let json = format!(r#"{{"companion": {{"cluster": "tidegate"}}, "policies": [{json}]}}"#);
    config(&json).policies.first().unwrap().clone()
}

fn bucket(capacity: u64, rate: &str) -> Limit {
    Limit::TokenBucket(TokenBucket::new(capacity, rate.parse().unwrap()).unwrap())
}

/// What the rest of a policy with a bucket makes of where it is counted.
fn sync(rest: &str) -> Sync {
    let limit = r#"{"token_bucket": {"capacity": 5, "rate": "2/s"}}"#;
    policy(&format!(r#"{{"name": "a", "key": ["ip"], "limit": {limit}{rest}}}"#)).sync
}

fn header(name: &str) -> Source {
    Source::Header(name.into())
}

#[test]
fn what_is_left_out_has_its_default() {
    let config = config(
        r#"{"companion": {"cluster": "outbound|8080||tidegate.ns.svc.cluster.local"},
            "policies": [{"name": "a", "key": ["ip"], "limit": {"token_bucket": {"capacity": 1, "rate": "1/s"}}, "sync": "exact"}]}"#,
    );
    assert_eq!(config.companion.unwrap().timeout, DEFAULT_TIMEOUT);
    assert_eq!(config.families, [Family::Draft11]);
    let policy = &config.policies[0];
    assert_eq!(
        (policy.cost.clone(), policy.sync, policy.shadow),
        (Cost::Fixed(1), Sync::Exact(OnFailure::Open), false)
    );
    assert_eq!(policy.matcher, Match::default());
}

#[test]
fn header_families_are_those_that_are_listed() {
    let families = |list: &str| {
        let policies = r#"[{"name": "a", "limit": "blocked"}]"#;
        config(&format!(r#"{{"headers": {list}, "policies": {policies}}}"#)).families
    };
    assert_eq!(families("[]"), []);
    assert_eq!(families(r#"["draft-06"]"#), [Family::Draft06]);
    let epoch = Family::XRateLimit { reset: Reset::Epoch };
    let delta = Family::XRateLimit { reset: Reset::Delta };
    assert_eq!(families(r#"[{"x-ratelimit": {"reset": "epoch"}}, "draft-06"]"#), [epoch, Family::Draft06]);
    assert_eq!(families(r#"[{"x-ratelimit": {"reset": "delta"}}]"#), [delta]);
    assert_eq!(families(r#"["x-ratelimit"]"#), [delta]);
}

#[test]
fn whole_doubles_are_whole_numbers() {
    for (cost, expected) in
        [("7", 7), ("7.0", 7), ("7e0", 7), ("1e2", 100), ("9007199254740992.0", 1 << 53), ("0.5e1", 5)]
    {
        let json = format!(r#"{{"name": "a", "limit": "unlimited", "cost": {cost}}}"#);
        assert_eq!(policy(&json).cost, Cost::Fixed(expected), "{cost}");
    }
}

#[test]
fn a_limit_that_counts_nothing_needs_no_key_and_asks_nobody() {
    for (word, limit) in [("unlimited", Limit::Unlimited), ("blocked", Limit::Blocked)] {
        let bare = config(&format!(r#"{{"policies": [{{"name": "a", "limit": "{word}"}}]}}"#));
        assert_eq!((bare.policies[0].limit, bare.policies[0].sync), (limit, Sync::Local));
        assert_eq!(bare.policies[0].key, []);
        // What belongs to a counted limit may stay where one value is changed for a while.
        let left = config(&format!(
            r#"{{"policies": [{{"name": "a", "key": ["ip"], "limit": "{word}", "cost": 50, "sync": "exact",
                "on_failure": {{"closed": {{"retry_after": "1d"}}}}}}]}}"#
        ));
        assert_eq!((left.policies[0].limit, left.policies[0].sync), (limit, Sync::Local));
    }
}

#[test]
fn header_names_are_kept_in_lower_case() {
    let policy = policy(r#"{"name": "a", "key": [{"header": "X-Api-Key"}], "limit": "blocked"}"#);
    assert_eq!(policy.key, [KeyPart::Identity(vec![header("x-api-key")])]);
}

#[test]
fn paths_in_normal_form_are_taken_as_they_are() {
    for path in ["/", "/orders", "/orders/", "/Orders", "/a%2Fb", "/caf%C3%A9", "/~user/x;v=1", "/100%"] {
        let json =
            format!(r#"{{"name": "a", "limit": "blocked", "match": {{"path": {{"exact": "{path}"}}}}}}"#);
        assert_eq!(policy(&json).matcher.conditions.path, Some(PathMatch::Exact(path.into())));
    }
}

#[test]
fn every_printable_character_may_stand_in_a_name() {
    let name: String = (b' '..=b'_').map(char::from).collect();
    let json = format!(r#"{{"name": {}, "limit": "blocked"}}"#, serde_json::to_string(&name).unwrap());
    assert_eq!(name.len(), 64);
    assert_eq!(policy(&json).name, name);
}

#[test]
fn a_cost_may_take_the_whole_bucket() {
    let policy = policy(
        r#"{"name": "a", "key": ["path"], "limit": {"token_bucket": {"capacity": 9, "rate": "1/d"}}, "cost": 9, "sync": "local"}"#,
    );
    assert_eq!((policy.cost.clone(), policy.limit), (Cost::Fixed(9), bucket(9, "1/d")));
}

#[test]
fn a_limit_is_leased_unless_said() {
    assert_eq!(sync(""), Sync::Lease(OnFailure::Open));
    assert_eq!(sync(r#", "sync": "lease""#), Sync::Lease(OnFailure::Open));
    let closed = OnFailure::Closed { retry_after: Duration::from_secs(5) };
    assert_eq!(sync(r#", "on_failure": {"closed": {"retry_after": "5s"}}"#), Sync::Lease(closed));
}

#[test]
fn modes_that_wait_fall_back_to_their_share_where_they_say_so() {
    assert_eq!(sync(r#", "on_failure": "share""#), Sync::Lease(OnFailure::Share));
    assert_eq!(sync(r#", "sync": "exact", "on_failure": "share""#), Sync::Exact(OnFailure::Share));
}

#[test]
fn the_mode_that_never_waits_has_its_share_whether_it_says_so_or_not() {
    assert_eq!(sync(r#", "sync": "async""#), Sync::Async);
    assert_eq!(sync(r#", "sync": "async", "on_failure": "share""#), Sync::Async);
}

#[test]
fn the_state_has_as_many_slots_as_it_says() {
    let slots = |state: &str| {
        let policies = r#""policies": [{"name": "a", "key": ["ip"], "limit": "unlimited"}]"#;
        config(&format!("{{{policies}{state}}}")).slots
    };
    assert_eq!(slots(""), DEFAULT_SLOTS);
    assert_eq!(slots(r#", "state": {"slots": 1}"#), 1);
    // As Envoy hands over the number of a `Struct`.
    assert_eq!(slots(r#", "state": {"slots": 524288.0}"#), MAX_SLOTS);
}

#[test]
fn the_largest_state_stays_below_a_gibibyte_in_the_proxy() {
    let values = Table::new(MAX_SLOTS, [0; 16]).max_bytes();
    // What the proxy takes beyond them, as the filter reckons it, with a long name of the plugin.
    let overhead = values / 3 + u64::from(MAX_SLOTS) * 256;
    assert!(values + overhead < 1 << 30);
}
