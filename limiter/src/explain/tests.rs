//! Explanations, and that they say what requests meet.

use proptest::prelude::*;

use super::*;
use crate::matching::{Conditions, HeaderCondition, HeaderMatch, HostMatch, Match, PathMatch};
use crate::policy::{Cost, CostSource, KeyPart, Plan, Source, ToldCost};
use crate::request::demands;

fn bucket(capacity: u64) -> TokenBucket {
    TokenBucket::new(capacity, "60/m".parse().unwrap()).unwrap()
}

fn explained(policies: Vec<Policy>, request: &Given) -> Explanation {
    explain(&Policies::try_from(policies).unwrap(), &[Family::Draft11], request)
}

fn request() -> Given {
    Given {
        method: b"POST".to_vec(),
        target: b"//orders?x=1".to_vec(),
        authority: b"API.example.com:80".to_vec(),
        address: Some([203, 0, 113, 7].into()),
        headers: vec![("x-api-key".into(), b"abc".to_vec()), ("x-cost".into(), b"3".to_vec())],
        ..Given::default()
    }
}

#[test]
fn a_policy_that_applies_tells_key_limit_plan_and_cost() {
    let header = |name: &str| Source::Header(name.into());
    let policy = Policy {
        key: vec![KeyPart::Identity(vec![header("x-api-key")])],
        plan: Some(Plan {
            from: vec![header("x-cost")],
            limits: vec![("3".into(), Limit::TokenBucket(bucket(20)))],
        }),
        cost: Cost::Told(ToldCost { source: CostSource::Header("x-cost".into()), default: 1, max: 10 }),
        ..Policy::new("p", Limit::TokenBucket(bucket(10)))
    };
    let explanation = explained(vec![policy], &request());
    assert_eq!(
        explanation.policies,
        [Explained {
            policy: "p".into(),
            part: Part::Counts(Counted {
                key: "rl:{abc}:p".into(),
                shards: 1,
                limit: bucket(20),
                plan: Some("3".into()),
                unknown_plan: None,
                is_anonymous: false,
                cost: 3,
                sync: "local",
                shadow: false,
            }),
        }]
    );
    assert_eq!(explanation.answer.status, None);
    assert_eq!(explanation.answer.headers["ratelimit"], r#""p";r=17;t=17"#);
    assert_eq!(explanation.answer.headers["ratelimit-policy"], r#""p";q=20;w=20"#);
}

#[test]
fn a_policy_that_does_not_apply_tells_the_first_condition_that_does_not_hold() {
    let with = |conditions: Conditions| Policy {
        matcher: Match { conditions, except: Vec::new() },
        ..Policy::new("p", Limit::TokenBucket(bucket(10)))
    };
    let none = Conditions::default;
    let present = HeaderMatch { name: "x-a".into(), condition: HeaderCondition::Present(true) };
    for (conditions, condition, wanted, found) in [
        (Conditions { methods: vec!["GET".into()], ..none() }, "methods", "GET", "POST"),
        (
            Conditions { path: Some(PathMatch::Prefix("/api/".into())), ..none() },
            "path",
            "a path that begins with /api/",
            "/orders",
        ),
        (
            Conditions { hosts: vec![HostMatch::Below("example.org".into())], ..none() },
            "hosts",
            "*.example.org",
            "api.example.com",
        ),
        (Conditions { routes: vec!["r".into()], ..none() }, "routes", "r", ""),
        (Conditions { headers: vec![present], ..none() }, "headers.x-a", "a value", "no such header"),
        (
            Conditions { cidrs: vec!["10.0.0.0/8".parse().unwrap()], ..none() },
            "cidrs",
            "10.0.0.0/8",
            "203.0.113.7",
        ),
    ] {
        let explanation = explained(vec![with(conditions)], &request());
        let unmet = Unmet { condition: condition.into(), wanted: wanted.into(), found: found.into() };
        assert_eq!(explanation.policies[0].part, Part::Unmet(unmet));
    }
}

#[test]
fn a_request_is_answered_as_the_buckets_stand() {
    let key = vec![KeyPart::Identity(vec![Source::Header("x-api-key".into())])];
    let planned = |name: &str, shards| Policy {
        key: key.clone(),
        shards,
        ..Policy::new(name, Limit::TokenBucket(bucket(10)))
    };
    let policies = Policies::try_from(vec![planned("a", 1), planned("b", 1)]).unwrap();
    let families = [Family::Draft11];
    // A token a second: seven are left, and none.
    let answer = answer_now(&policies, &families, &request(), &[Some(3_000_000), None]);
    assert_eq!((answer.status, answer.headers["ratelimit"].as_str()), (None, r#""a";r=6;t=6, "b";r=9;t=9"#));
    let answer = answer_now(&policies, &families, &request(), &[None, Some(9_500_000)]);
    assert_eq!((answer.status, answer.headers["ratelimit"].as_str()), (Some(429), r#""b";r=0;t=1"#));
    assert_eq!(answer.headers["retry-after"], "1");
    // The store's state of a shard is told of the one that is asked.
    let policies = Policies::try_from(vec![planned("a", 5)]).unwrap();
    let answer = answer_now(&policies, &families, &request(), &[Some(10_000_000)]);
    assert_eq!(answer.status, Some(429));
}

#[test]
fn who_has_no_identity_is_told_so() {
    let key = vec![KeyPart::Identity(vec![Source::Cookie("sid".into())])];
    let policy = Policy { key, ..Policy::new("p", Limit::TokenBucket(bucket(10))) };
    let Part::Counts(counted) = &explained(vec![policy], &request()).policies[0].part else {
        panic!("it counts")
    };
    assert!(counted.is_anonymous);
}

#[test]
fn what_refuses_the_first_request_answers_it() {
    let explanation = explained(vec![Policy::new("closed", Limit::Blocked)], &request());
    assert_eq!(explanation.policies[0].part, Part::Blocks { plan: None });
    assert_eq!(explanation.answer.status, Some(429));
    assert!(explanation.answer.body.contains("closed"));
}

fn conditions() -> impl Strategy<Value = Conditions> {
    let methods = proptest::sample::subsequence(vec!["GET".to_owned(), "POST".to_owned()], 0..2);
    let hosts = prop_oneof![
        Just(Vec::new()),
        Just(vec![HostMatch::Exact("a.test".into())]),
        Just(vec![HostMatch::Below("test".into()), HostMatch::Exact("b".into())]),
    ];
    let path = prop_oneof![
        Just(None),
        proptest::sample::select(vec!["/a", "/a/b", "/"])
            .prop_map(|path| Some(PathMatch::Exact(path.into()))),
        proptest::sample::select(vec!["/a", "/a/", "/"])
            .prop_map(|path| Some(PathMatch::Prefix(path.into()))),
        Just(Some(PathMatch::Template("/a/{x}".parse().unwrap()))),
        Just(Some(PathMatch::Regex("/[ab]/?b?".parse().unwrap()))),
    ];
    let condition = prop_oneof![
        Just(HeaderCondition::Exact("1".into())),
        Just(HeaderCondition::Prefix("1".into())),
        any::<bool>().prop_map(HeaderCondition::Present),
    ];
    let headers = proptest::collection::btree_map(proptest::sample::select(vec!["x", "y"]), condition, 0..3);
    let headers = headers.prop_map(|headers| {
        headers.into_iter().map(|(name, condition)| HeaderMatch { name: name.into(), condition }).collect()
    });
    let routes = proptest::sample::subsequence(vec!["r".to_owned(), "s".to_owned()], 0..2);
    let cidrs = proptest::sample::subsequence(vec!["10.0.0.0/8", "10.1.0.0/16", "::/0"], 0..2)
        .prop_map(|cidrs| cidrs.into_iter().map(|cidr| cidr.parse().unwrap()).collect());
    (methods, hosts, path, headers, routes, cidrs).prop_map(
        |(methods, hosts, path, headers, routes, cidrs)| Conditions {
            methods,
            hosts,
            path,
            headers,
            routes,
            cidrs,
        },
    )
}

fn requests() -> impl Strategy<Value = Given> {
    let pick = |texts: &[&'static str]| proptest::sample::select(texts.to_vec());
    let header = (pick(&["x", "y"]), pick(&["1", "12", "2", ""]));
    (
        pick(&["GET", "POST", "PUT"]),
        pick(&["/a", "/a/b", "//a", "/a/", "/", "/b/", "/a/b?x"]),
        pick(&["a.test", "A.TEST:1", "b", "test", ""]),
        proptest::option::of(pick(&["10.1.2.3", "10.2.0.0", "::1"])),
        proptest::collection::vec(header, 0..4),
        pick(&["r", "s", ""]),
    )
        .prop_map(|(method, target, authority, address, headers, route)| Given {
            method: method.into(),
            target: target.into(),
            authority: authority.into(),
            address: address.map(|address| address.parse().unwrap()),
            headers: headers.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect(),
            route: route.into(),
            ..Given::default()
        })
}

proptest! {
    #[test]
    fn what_is_said_to_apply_is_what_applies(
        matchers in proptest::collection::vec((conditions(), proptest::collection::vec(conditions(), 0..3)), 1..20),
        request in requests(),
    ) {
        let policies = matchers.into_iter().enumerate().map(|(index, (conditions, except))| Policy {
            matcher: Match { conditions, except: except.into_iter().filter(|except| *except != Conditions::default()).collect() },
            ..Policy::new(format!("p{index}"), Limit::TokenBucket(bucket(10)))
        });
        let policies = Policies::try_from(policies.collect::<Vec<_>>()).unwrap();
        let demanded: Vec<usize> =
            demands(&policies, &mut request.clone(), 0).map(|demand| demand.policy).collect();
        let explanation = explain(&policies, &[], &request);
        let counts = |(index, explained): (usize, &Explained)| matches!(explained.part, Part::Counts(_)).then_some(index);
        let said: Vec<usize> = explanation.policies.iter().enumerate().filter_map(counts).collect();
        prop_assert_eq!(said, demanded);
    }
}

#[test]
fn a_refused_call_of_grpc_is_answered_in_its_form() {
    let request = Given { headers: vec![("content-type".into(), b"application/grpc".to_vec())], ..request() };
    let answer = explained(vec![Policy::new("100%", Limit::Blocked)], &request).answer;
    assert_eq!((answer.status, answer.body.as_str()), (Some(200), ""));
    assert_eq!(answer.headers["content-type"], "application/grpc");
    assert_eq!(answer.headers["grpc-status"], "8");
    assert_eq!(answer.headers["grpc-message"], "policy \"100%25\" lets no request pass");
    assert_eq!(answer.headers["grpc-retry-pushback-ms"], "-1");
}
