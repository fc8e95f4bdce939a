//! What a configuration means that has every key of the contract.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::time::Duration;

use limiter::fields::{Family, Reset};
use limiter::matching::{Conditions, HeaderCondition, HeaderMatch, HostMatch, Match, PathMatch};
use limiter::policies::Policies;
use limiter::policy::{
    Body, Cost, CostSource, KeyPart, Limit, MAX_TOLD_COST, OnFailure, OnMissing, Plan, Policy, Response,
    Scope, Source, Sync, ToldCost,
};
use limiter::quota::TokenBucket;
use plugin_config::{Companion, Config, parse};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

#[test]
fn a_whole_configuration_gives_its_policies() {
    let expected = Config {
        companion: Some(Companion { cluster: "tidegate".into(), timeout: Duration::from_millis(20) }),
        families: vec![Family::Draft11, Family::XRateLimit { reset: Reset::Delta }],
        slots: 8192,
        policies: Policies::try_from(vec![per_ip(), per_key(), orders(), tenants(), searches(), closed()])
            .unwrap(),
    };
    let config = parse(include_bytes!("accepted/whole.json"));
    assert_eq!(config.unwrap_or_else(|errors| panic!("it is refused:\n{errors}")), expected);
}

/// A policy that refuses as the configuration says at its top.
fn policy(name: &str, limit: Limit) -> Policy {
    Policy { response: Response { body: Body::Problem, ..Response::default() }, ..Policy::new(name, limit) }
}

fn bucket(capacity: u64, rate: &str) -> Limit {
    Limit::TokenBucket(TokenBucket::new(capacity, rate.parse().unwrap()).unwrap())
}

fn of(source: Source) -> KeyPart {
    KeyPart::Identity(vec![source])
}

fn per_ip() -> Policy {
    Policy { key: vec![of(Source::Ip)], ..policy("per-ip", bucket(100, "100/m")) }
}

fn per_key() -> Policy {
    let path = Some(PathMatch::Prefix("/api/".into()));
    Policy {
        matcher: Match { conditions: Conditions { path, ..Conditions::default() }, except: Vec::new() },
        key: vec![KeyPart::Identity(vec![Source::Header("x-api-key".into()), Source::Ip])],
        plan: Some(Plan {
            from: vec![Source::Header("x-plan".into())],
            limits: vec![
                ("banned".into(), Limit::Blocked),
                ("gold".into(), bucket(5000, "5000/h")),
                ("internal".into(), Limit::Unlimited),
            ],
        }),
        cost: Cost::Fixed(5),
        sync: Sync::Exact(OnFailure::Open),
        shadow: true,
        ..policy("per-key", bucket(1000, "1000/h"))
    }
}

fn orders() -> Policy {
    let conditions = Conditions {
        methods: vec!["POST".into()],
        path: Some(PathMatch::Exact("/orders".into())),
        ..Conditions::default()
    };
    Policy {
        matcher: Match { conditions, except: Vec::new() },
        key: vec![
            of(Source::Header("x-api-key".into())),
            KeyPart::Scope(Scope::Method),
            KeyPart::Scope(Scope::Path),
        ],
        on_missing: OnMissing::Deny,
        sync: Sync::Exact(OnFailure::Closed { retry_after: Duration::from_secs(5) }),
        ..policy("orders", bucket(10, "10/m"))
    }
}

fn tenants() -> Policy {
    let header = |name: &str, condition| HeaderMatch { name: name.into(), condition };
    let cidrs = |list: &[&str]| list.iter().map(|cidr| cidr.parse().unwrap()).collect();
    let conditions = Conditions {
        methods: Vec::new(),
        hosts: vec![
            HostMatch::Exact("api.example.com".into()),
            HostMatch::Below("example.com".into()),
            HostMatch::Exact("[::1]".into()),
        ],
        path: Some(PathMatch::Template("/tenants/{tenant}/reports/{report}".parse().unwrap())),
        headers: vec![
            header("x-internal", HeaderCondition::Present(false)),
            header("accept", HeaderCondition::Exact("application/json".into())),
            header("authorization", HeaderCondition::Prefix("Bearer ".into())),
            header("x-version", HeaderCondition::Regex("v[0-9]+".parse().unwrap())),
            header("x-trace", HeaderCondition::Exact(String::new())),
        ],
        routes: vec!["reports".into()],
        cidrs: cidrs(&["10.0.0.0/8", "2001:db8::/32", "203.0.113.7/32"]),
    };
    let except = Conditions {
        methods: vec!["HEAD".into(), "OPTIONS".into()],
        cidrs: cidrs(&["10.1.0.0/16"]),
        ..Conditions::default()
    };
    Policy {
        matcher: Match { conditions, except: vec![except] },
        key: vec![
            of(Source::Claim(vec!["payload".into(), "tenant".into()])),
            KeyPart::Scope(Scope::Path),
            KeyPart::Scope(Scope::Route),
            KeyPart::Scope(Scope::Host),
        ],
        on_missing: OnMissing::Skip,
        cost: Cost::Told(ToldCost { source: CostSource::Header("x-cost".into()), default: 2, max: 50 }),
        shards: 64,
        sync: Sync::Lease(OnFailure::Share),
        response: Response {
            status: 420,
            body: Body::Text("<p>Too many reports.</p>".into()),
            headers: vec![
                ("content-type".into(), "text/html".into()),
                ("x-docs".into(), "https://example.com/limits".into()),
            ],
        },
        ..Policy::new("tenants", bucket(6400, "6400/h"))
    }
}

fn searches() -> Policy {
    let path = Some(PathMatch::Regex("/v[0-9]+/search(/.*)?".parse().unwrap()));
    let metadata = ["com.example", "tenant", "id"].map(str::to_owned).to_vec();
    let told = ToldCost { source: CostSource::Query("limit".into()), default: 1, max: MAX_TOLD_COST };
    Policy {
        matcher: Match { conditions: Conditions { path, ..Conditions::default() }, except: Vec::new() },
        key: vec![
            of(Source::Cookie("Session".into())),
            of(Source::Query("api key".into())),
            of(Source::Metadata(metadata)),
        ],
        plan: Some(Plan {
            from: vec![Source::Claim(vec!["payload".into(), "plan".into()]), Source::Query("plan".into())],
            limits: vec![("free".into(), bucket(500, "100/s"))],
        }),
        cost: Cost::Told(told),
        sync: Sync::Async,
        response: Response { body: Body::None, ..Response::default() },
        ..Policy::new("searches", Limit::Unlimited)
    }
}

fn closed() -> Policy {
    let conditions = Conditions { routes: vec!["legacy".into()], ..Conditions::default() };
    Policy {
        matcher: Match { conditions, except: Vec::new() },
        response: Response { status: 410, ..Response::default() },
        ..Policy::new("closed", Limit::Blocked)
    }
}
