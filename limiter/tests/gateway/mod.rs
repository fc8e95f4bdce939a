//! The policies of a gateway in front of many services: fifty, of which two apply to a request, and those two alone.
#![allow(clippy::unwrap_used, reason = "what does not hold of these policies is a test's report")]

use limiter::matching::{Conditions, HeaderCondition, HeaderMatch, HostMatch, Match, PathMatch};
use limiter::policies::Policies;
use limiter::policy::{KeyPart, Limit, Policy, Scope, Source};
use limiter::quota::TokenBucket;
use limiter::request::Given;

const EXACT: [&str; 16] = [
    "/login",
    "/logout",
    "/signup",
    "/password/reset",
    "/healthz",
    "/metrics",
    "/api/v1/search",
    "/api/v1/orders",
    "/api/v1/orders/export",
    "/api/v1/carts",
    "/api/v1/payments",
    "/api/v1/refunds",
    "/api/v1/reports",
    "/api/v2/orders",
    "/oauth/token",
    "/graphql",
];
const TEMPLATES: [&str; 10] = [
    "/api/v1/users/{id}",
    "/api/v1/users/{id}/orders",
    "/api/v1/users/{id}/avatar",
    "/api/v1/carts/{id}/items/{item}",
    "/api/v1/payments/{id}/capture",
    "/api/v1/orders/{id}/lines",
    "/api/v1/orders/{id}/refund",
    "/api/v2/orders/{id}",
    "/tenants/{tenant}/users/{id}",
    "/files/{id}/download",
];
const PREFIXES: [&str; 10] = [
    "/static/",
    "/assets/",
    "/admin/",
    "/internal/",
    "/api/v2/",
    "/api/v3/",
    "/beta/",
    "/webhooks/",
    "/api/v1/users/",
    "/api/v1/reports/",
];
const HOSTS: [&str; 6] = [
    "www.example.com",
    "admin.example.com",
    "shop.example.com",
    "status.example.com",
    "cdn.example.com",
    "eu.example.org",
];
const CLIENTS: [&str; 2] = ["mobile-", "partner-"];

/// The request that all of this is about.
pub(crate) fn request() -> Given {
    let headers = [
        ("x-api-key", "k-1234567890"),
        ("x-client", "web-7.1"),
        ("user-agent", "Mozilla/5.0"),
        ("accept", "*/*"),
    ];
    Given {
        method: b"GET".to_vec(),
        target: b"/api/v1/orders/4711?fields=lines,total".to_vec(),
        authority: b"api.example.com:443".to_vec(),
        address: Some([203, 0, 113, 7].into()),
        headers: headers.map(|(name, value)| (name.to_owned(), value.into())).into(),
        ..Given::default()
    }
}

/// The two that apply.
pub(crate) fn two() -> Policies {
    Policies::try_from(applying()).unwrap()
}

/// The same two among fifty.
pub(crate) fn fifty() -> Policies {
    let mut policies = others();
    let [first, second] = <[Policy; 2]>::try_from(applying()).unwrap();
    policies.insert(9, first);
    policies.insert(38, second);
    assert_eq!(policies.len(), 50);
    Policies::try_from(policies).unwrap()
}

fn applying() -> Vec<Policy> {
    let of_api = Conditions {
        methods: vec!["GET".into(), "HEAD".into()],
        hosts: vec![HostMatch::Exact("api.example.com".into())],
        path: Some(PathMatch::Prefix("/api/v1/orders/".into())),
        headers: vec![client("web-")],
        ..Conditions::default()
    };
    vec![policy("per-ip", Source::Ip, Conditions::default()), policy("orders", header("x-api-key"), of_api)]
}

fn others() -> Vec<Policy> {
    let with = |path| Conditions { path: Some(path), ..Conditions::default() };
    let mut conditions = Vec::new();
    conditions.extend(EXACT.map(|path| with(PathMatch::Exact(path.into()))));
    conditions.extend(TEMPLATES.map(|path| with(PathMatch::Template(path.parse().unwrap()))));
    conditions.extend(PREFIXES.map(|path| with(PathMatch::Prefix(path.into()))));
    conditions.push(with(PathMatch::Regex("/api/v[0-9]+/bulk/.*".parse().unwrap())));
    conditions.extend(["POST", "DELETE"].map(|method| Conditions {
        methods: vec![method.into()],
        ..with(PathMatch::Prefix("/api/v1/orders/".into()))
    }));
    conditions.extend(
        HOSTS.map(|host| Conditions { hosts: vec![HostMatch::Exact(host.into())], ..Conditions::default() }),
    );
    conditions.push(Conditions {
        hosts: vec![HostMatch::Below("tenants.example.com".into())],
        ..Conditions::default()
    });
    conditions
        .extend(CLIENTS.map(|name| Conditions { headers: vec![client(name)], ..Conditions::default() }));
    let named = conditions.into_iter().enumerate();
    named.map(|(index, conditions)| policy(&format!("p{index}"), header("x-api-key"), conditions)).collect()
}

fn client(prefix: &str) -> HeaderMatch {
    HeaderMatch { name: "x-client".into(), condition: HeaderCondition::Prefix(prefix.into()) }
}

fn header(name: &str) -> Source {
    Source::Header(name.into())
}

fn policy(name: &str, source: Source, conditions: Conditions) -> Policy {
    let bucket = TokenBucket::new(100, "100/m".parse().unwrap()).unwrap();
    Policy {
        matcher: Match { conditions, except: Vec::new() },
        key: vec![KeyPart::Identity(vec![source]), KeyPart::Scope(Scope::Method)],
        ..Policy::new(name, Limit::TokenBucket(bucket))
    }
}
