//! What policies make of requests.

use super::*;
use crate::matching::{Conditions, HeaderCondition, HeaderMatch, HostMatch, Match, PathMatch};
use crate::policy::{KeyPart, Plan, Policy, Scope, Source};

fn bucket(capacity: u64) -> TokenBucket {
    TokenBucket::new(capacity, "1/s".parse().unwrap()).unwrap()
}

fn policy(name: &str, key: Vec<KeyPart>) -> Policy {
    Policy { key, ..Policy::new(name, Limit::TokenBucket(bucket(8))) }
}

fn header(name: &str) -> Source {
    Source::Header(name.into())
}

fn by(source: Source) -> Vec<KeyPart> {
    vec![KeyPart::Identity(vec![source])]
}

fn given(method: &str, target: &str, headers: &[(&str, &str)]) -> Given {
    Given {
        method: method.into(),
        target: target.into(),
        headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect(),
        ..Given::default()
    }
}

fn all(policies: &[Policy], given: &Given) -> Vec<Demand> {
    let policies = Policies::try_from(policies.to_vec()).unwrap();
    demands(&policies, &mut given.clone(), 0).collect()
}

fn key_of(policy: &Policy, given: &Given) -> String {
    all(std::slice::from_ref(policy), given).remove(0).key
}

#[test]
fn the_example_of_the_contract_gives_its_key() {
    let mut key = by(header("x-api-key"));
    key.extend([KeyPart::Scope(Scope::Method), KeyPart::Scope(Scope::Path)]);
    let request = given("POST", "/x/../orders?a=1", &[("x-api-key", "42")]);
    assert_eq!(key_of(&policy("orders", key), &request), "rl:{42}:orders:POST:/orders");
}

#[test]
fn a_header_cannot_pose_as_an_address_or_as_another_header() {
    let sources = vec![header("x-a"), header("x-b"), header("ip"), Source::Ip];
    let first = policy("p", vec![KeyPart::Identity(sources)]);
    let of = |headers: &[(&str, &str)]| {
        key_of(&first, &Given { address: Some([203, 0, 113, 7].into()), ..given("", "", headers) })
    };
    assert_eq!(of(&[("x-a", "203.0.113.7")]), "rl:{203.0.113.7}:p");
    assert_eq!(of(&[("x-b", "203.0.113.7")]), "rl:{header.x-b=203.0.113.7}:p");
    assert_eq!(of(&[("ip", "203.0.113.7")]), "rl:{header.ip=203.0.113.7}:p");
    assert_eq!(of(&[]), "rl:{ip=203.0.113.7}:p");
    assert_eq!(of(&[("x-a", "ip=203.0.113.7")]), "rl:{ip%3D203.0.113.7}:p");
}

#[test]
fn every_source_tells_who_asks() {
    let path = |parts: &[&str]| parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>();
    let mut request = given("GET", "/?user=u%31", &[("cookie", "a=1; sid=s1")]);
    request.metadata = vec![
        (path(&["envoy.filters.http.jwt_authn", "payload", "sub"]), b"c1".to_vec()),
        (path(&["envoy.filters.http.jwt_authn", "payload", "org"]), 7.0_f64.to_le_bytes().to_vec()),
        (path(&["tenant", "id"]), b"t1".to_vec()),
    ];
    request.route_metadata =
        vec![(path(&["tenant", "id"]), b"r1".to_vec()), (path(&["tenant", "tier"]), b"r2".to_vec())];
    for (source, expected) in [
        (Source::Cookie("sid".into()), "s1"),
        (Source::Query("user".into()), "u1"),
        (Source::Claim(path(&["payload", "sub"])), "c1"),
        (Source::Claim(path(&["payload", "org"])), "7"),
        (Source::Metadata(path(&["tenant", "id"])), "t1"),
        (Source::Metadata(path(&["tenant", "tier"])), "r2"),
        (Source::Metadata(path(&["tenant", "none"])), "*"),
    ] {
        assert_eq!(
            key_of(&policy("p", by(source.clone())), &request),
            format!("rl:{{{expected}}}:p"),
            "{source:?}"
        );
    }
}

#[test]
fn all_who_have_no_identity_share_one_bucket_unless_said() {
    let keyed = policy("p", by(header("x-a")));
    for headers in [&[][..], &[("x-a", "")], &[("x-a", "1"), ("x-a", "2")], &[("x-a", "3"), ("x-a", "4")]] {
        let request = given("", "", headers);
        assert_eq!(key_of(&keyed, &request), "rl:{*}:p");
        let skip = Policy { on_missing: OnMissing::Skip, ..keyed.clone() };
        assert_eq!(all(&[skip], &request), []);
        let deny = Policy { on_missing: OnMissing::Deny, ..keyed.clone() };
        assert_eq!(all(&[deny], &request)[0].terms, Terms::NoIdentity);
    }
    for on_missing in [OnMissing::Skip, OnMissing::Deny] {
        let known = Policy { on_missing, ..keyed.clone() };
        assert_eq!(key_of(&known, &given("", "", &[("x-a", "1")])), "rl:{1}:p");
    }
}

#[test]
fn addresses_of_one_client_are_one_identity() {
    let by_ip = policy("p", by(Source::Ip));
    let of = |address: &str| {
        key_of(&by_ip, &Given { address: Some(address.parse().unwrap()), ..Given::default() })
    };
    assert_eq!(of("::ffff:203.0.113.7"), of("203.0.113.7"));
    assert_eq!(of("2001:db8:1:2:3:4:5:6"), of("2001:db8:1:2::"));
    assert_ne!(of("2001:db8:1:2::"), of("2001:db8:1:3::"));
}

#[test]
fn a_template_counts_all_its_paths_together() {
    let conditions = Conditions {
        path: Some(PathMatch::Template("/users/{id}".parse().unwrap())),
        ..Conditions::default()
    };
    let scoped = Policy {
        matcher: Match { conditions, except: Vec::new() },
        ..policy("p", vec![KeyPart::Scope(Scope::Path)])
    };
    assert_eq!(
        key_of(&scoped, &given("GET", "/users/1", &[])),
        key_of(&scoped, &given("GET", "//users/%32", &[]))
    );
    assert_eq!(key_of(&scoped, &given("GET", "/users/1", &[])), "rl:{*}:p:/users/%7Bid%7D");
}

#[test]
fn the_host_is_one_however_it_is_spelled() {
    let scoped = policy("p", vec![KeyPart::Scope(Scope::Host), KeyPart::Scope(Scope::Route)]);
    let of = |authority: &str| {
        key_of(&scoped, &Given { authority: authority.into(), route: b"r".to_vec(), ..Given::default() })
    };
    for authority in ["api.example.com", "API.example.com:8080", "api.example.com."] {
        assert_eq!(of(authority), "rl:{*}:p:api.example.com:r");
    }
}

#[test]
fn a_plan_has_a_limit_and_a_bucket_of_its_own() {
    let plan = Plan {
        from: vec![header("x-plan")],
        limits: vec![
            ("banned".into(), Limit::Blocked),
            ("gold".into(), Limit::TokenBucket(bucket(50))),
            ("internal".into(), Limit::Unlimited),
        ],
    };
    let planned = Policy { plan: Some(plan), ..policy("p", by(header("x-a"))) };
    let of =
        |plan: &str| all(std::slice::from_ref(&planned), &given("", "", &[("x-a", "1"), ("x-plan", plan)]));
    let terms = |capacity| Terms::Bucket { whole: bucket(capacity), part: bucket(capacity) };
    for (plan, expected, key) in [
        ("gold", terms(50), "rl:{1}:p;gold"),
        ("silver", terms(8), "rl:{1}:p"),
        ("", terms(8), "rl:{1}:p"),
        ("GOLD", terms(8), "rl:{1}:p"),
    ] {
        let demand = of(plan).remove(0);
        assert_eq!((demand.terms, demand.key.as_str()), (expected, key), "{plan:?}");
    }
    assert_eq!(of("banned")[0].terms, Terms::Blocked);
    assert_eq!(of("internal"), []);
}

#[test]
fn shards_have_keys_of_their_own_and_the_whole_together() {
    let sharded = Policy { shards: 4, ..policy("p", by(header("x-a"))) };
    let policies = Policies::try_from(vec![sharded]).unwrap();
    let mut request = given("", "", &[("x-a", "1")]);
    let mut keys = std::collections::BTreeMap::new();
    for turn in 0..8 {
        let demand = demands(&policies, &mut request, turn).next().unwrap();
        let Terms::Bucket { whole, part } = demand.terms else { panic!("a bucket is what is asked") };
        assert_eq!(whole, bucket(8));
        keys.insert(demand.key, part.capacity());
    }
    assert_eq!(keys.keys().collect::<Vec<_>>(), ["rl:{1;0}:p", "rl:{1;1}:p", "rl:{1;2}:p", "rl:{1;3}:p"]);
    assert_eq!(keys.values().sum::<u64>(), 8);
}

#[test]
fn policies_match_by_all_conditions_and_not_by_what_is_excepted() {
    let with = |conditions: Conditions, except: Option<Conditions>| Policy {
        matcher: Match { conditions, except: except.into_iter().collect() },
        ..policy("p", vec![KeyPart::Scope(Scope::Path)])
    };
    let none = Conditions::default;
    let path = |path| Conditions { path: Some(path), ..none() };
    let fit =
        |value: &str| HeaderMatch { name: "x-a".into(), condition: HeaderCondition::Exact(value.into()) };
    let policies = [
        with(Conditions { methods: vec!["POST".into()], ..path(PathMatch::Exact("/orders".into())) }, None),
        with(Conditions { methods: vec!["GET".into(), "HEAD".into()], ..none() }, None),
        with(path(PathMatch::Prefix("/ord".into())), None),
        with(path(PathMatch::Exact("/orders/".into())), None),
        with(path(PathMatch::Regex("/o.*".parse().unwrap())), None),
        with(Conditions { hosts: vec![HostMatch::Below("example.com".into())], ..none() }, None),
        with(none(), Some(Conditions { routes: vec!["internal".into()], ..none() })),
        with(none(), Some(Conditions { cidrs: vec!["10.0.0.0/8".parse().unwrap()], ..none() })),
        // One of two values is enough to be limited, and not enough to be excepted.
        with(Conditions { headers: vec![fit("b")], ..none() }, None),
        with(none(), Some(Conditions { headers: vec![fit("b")], ..none() })),
        with(none(), Some(Conditions { headers: vec![fit("b")], methods: vec!["POST".into()], ..none() })),
        Policy { limit: Limit::Unlimited, ..with(none(), None) },
    ];
    let request = Given {
        authority: b"a.Example.com:80".to_vec(),
        address: Some([10, 1, 2, 3].into()),
        ..given("POST", "//%6frders?x", &[("x-a", "b"), ("x-a", "c")])
    };
    let matched = |request| all(&policies, request).iter().map(|demand| demand.policy).collect::<Vec<_>>();
    assert_eq!(matched(&request), [0, 2, 4, 5, 6, 8, 9, 10]);
    let clear = Given { route: b"internal".to_vec(), ..given("POST", "/", &[("x-a", "b")]) };
    assert_eq!(matched(&clear), [7, 8]);
}

/// Counts what is read.
struct Counting<'a>(&'a mut Given, Vec<String>);

impl Attributes for Counting<'_> {
    fn method(&mut self) -> Vec<u8> {
        self.1.push("method".into());
        self.0.method()
    }

    fn target(&mut self) -> Vec<u8> {
        self.1.push("target".into());
        self.0.target()
    }

    fn authority(&mut self) -> Vec<u8> {
        self.1.push("authority".into());
        self.0.authority()
    }

    fn address(&mut self) -> Option<IpAddr> {
        self.1.push("address".into());
        self.0.address()
    }

    fn header(&mut self, name: &str) -> Option<Vec<u8>> {
        self.1.push(name.into());
        self.0.header(name)
    }

    fn first_value(&mut self, name: &str) -> Option<Vec<u8>> {
        self.1.push(format!("first {name}"));
        self.0.first_value(name)
    }

    fn route(&mut self) -> Vec<u8> {
        self.1.push("route".into());
        self.0.route()
    }

    fn metadata(&mut self, path: &[&str]) -> Option<Vec<u8>> {
        self.1.push(path.join("."));
        self.0.metadata(path)
    }

    fn route_metadata(&mut self, path: &[&str]) -> Option<Vec<u8>> {
        self.1.push(format!("route {}", path.join(".")));
        self.0.route_metadata(path)
    }
}

#[test]
fn each_attribute_is_read_at_most_once_and_only_where_needed() {
    let read = |policies: Vec<Policy>, mut given: Given| {
        let policies = Policies::try_from(policies).unwrap();
        let mut counting = Counting(&mut given, Vec::new());
        let count = demands(&policies, &mut counting, 0).count();
        (count, counting.1)
    };
    let mut key = vec![KeyPart::Identity(vec![header("x-a"), Source::Query("k".into()), Source::Ip])];
    key.extend([Scope::Method, Scope::Path, Scope::Host, Scope::Route].map(KeyPart::Scope));
    let keyed = policy("p", key);
    let request = Given { address: Some([10, 0, 0, 1].into()), ..given("GET", "/", &[]) };
    let (count, attributes) = read(vec![keyed.clone(), keyed.clone()], request);
    assert_eq!(
        (count, attributes),
        (2, ["x-a", "target", "address", "method", "authority", "route"].map(String::from).into())
    );
    // What no longer applies asks for nothing.
    let post = Conditions {
        methods: vec!["POST".into()],
        path: Some(PathMatch::Exact("/".into())),
        ..Conditions::default()
    };
    let posted = Policy { matcher: Match { conditions: post, except: Vec::new() }, ..keyed.clone() };
    assert_eq!(read(vec![posted], given("GET", "/", &[])), (0, vec!["method".to_owned()]));
    // Two values with a comma between them are looked at twice, and only once.
    let several = given("", "", &[("x-a", "1"), ("x-a", "2")]);
    let by_header = policy("p", by(header("x-a")));
    assert_eq!(
        read(vec![by_header.clone(), by_header], several),
        (2, vec!["x-a".into(), "first x-a".into()])
    );
}
