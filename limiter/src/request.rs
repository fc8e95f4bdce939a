//! What a request is to the policies: which apply, and on which store key each counts it.

use core::net::IpAddr;
use std::borrow::Cow;

use crate::key::{Identity, store_key};
use crate::path::normalize;
use crate::policy::{KeyPart, Limit, Match, PathMatch, Policy, Scope, Source};

/// A request's attributes, read from the proxy when they are needed. Reading costs a host call, so each
/// is asked for at most once a request.
pub trait Attributes {
    /// The method; empty where there is none.
    fn method(&mut self) -> Vec<u8>;

    /// The request target as it arrived, with query; empty where there is none.
    fn target(&mut self) -> Vec<u8>;

    /// The client's address that the proxy trusts; `None` for a client without one (a Unix socket).
    fn address(&mut self) -> Option<IpAddr>;

    /// The one value of a header, `None` where [`sole_value`] finds none.
    fn header(&mut self, name: &str) -> Option<Vec<u8>>;
}

/// The value of a header that may have been sent more than once.
///
/// `joined` is all values with commas between them, `first` the first alone, asked for only where a comma
/// leaves a doubt. Blanks around a value are not part of it. An empty header, and one that was repeated
/// with different values, has no value: upstream might read the other one, so neither may open a bucket.
pub fn sole_value(joined: &[u8], first: impl FnOnce() -> Option<Vec<u8>>) -> Option<&[u8]> {
    let joined = joined.trim_ascii();
    if joined.is_empty() {
        return None;
    }
    if !joined.contains(&b',') {
        return Some(joined);
    }
    let first = first()?;
    let first = first.trim_ascii();
    if first.len() == joined.len() {
        // A single value that has a comma in it.
        return Some(joined);
    }
    let rest = joined.get(first.len()..)?;
    let chunk = first.len() + 1;
    let repeats = !first.is_empty()
        && rest.len().is_multiple_of(chunk)
        && rest.chunks(chunk).all(|again| again.split_first() == Some((&b',', first)));
    if repeats { joined.get(..first.len()) } else { None }
}

/// A policy that applies to a request, and the request's key under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Index of the policy.
    pub policy: usize,
    /// The store key; empty for [`Limit::Blocked`], which counts nothing.
    pub key: String,
}

/// The policies that apply to a request, in their order. Unlimited ones leave no trace.
pub fn demands<'a>(
    policies: &'a [Policy],
    attributes: &'a mut dyn Attributes,
) -> impl Iterator<Item = Demand> + 'a {
    let mut request = Request { attributes, method: None, path: None, network: None, headers: Vec::new() };
    policies.iter().enumerate().filter_map(move |(index, policy)| {
        if policy.limit == Limit::Unlimited || !request.matches(&policy.matcher) {
            return None;
        }
        let key = if policy.limit == Limit::Blocked { String::new() } else { request.key(policy) };
        Some(Demand { policy: index, key })
    })
}

/// Attributes that have been read once.
struct Request<'a> {
    attributes: &'a mut dyn Attributes,
    method: Option<Vec<u8>>,
    path: Option<Vec<u8>>,
    network: Option<Network>,
    headers: Vec<(&'a str, Option<Vec<u8>>)>,
}

/// Where a client is, where that is known; see [`client_network`].
struct Network(Option<String>);

impl<'a> Request<'a> {
    fn matches(&mut self, matcher: &Match) -> bool {
        if !matcher.methods.is_empty() {
            let method = self.method();
            if !matcher.methods.iter().any(|wanted| wanted.as_bytes() == method) {
                return false;
            }
        }
        match &matcher.path {
            None => true,
            Some(PathMatch::Exact(path)) => self.path() == path.as_bytes(),
            Some(PathMatch::Prefix(prefix)) => self.path().starts_with(prefix.as_bytes()),
        }
    }

    fn key(&mut self, policy: &'a Policy) -> String {
        // What is needed is read first, so that the key is then written from what is kept, without copies.
        for part in &policy.key {
            match part {
                KeyPart::Identity(sources) => self.read_identity(sources),
                KeyPart::Scope(Scope::Method) => drop(self.method()),
                KeyPart::Scope(Scope::Path) => drop(self.path()),
            }
        }
        let identities = policy.key.iter().filter_map(|part| match part {
            KeyPart::Identity(sources) => Some(self.identity(sources)),
            KeyPart::Scope(_) => None,
        });
        let scopes = policy.key.iter().filter_map(|part| match part {
            KeyPart::Identity(_) => None,
            KeyPart::Scope(Scope::Method) => self.method.as_deref(),
            KeyPart::Scope(Scope::Path) => self.path.as_deref(),
        });
        store_key(identities, &policy.name, scopes)
    }

    /// Reads the sources of an identity up to the first that the request has.
    fn read_identity(&mut self, sources: &'a [Source]) {
        for source in sources {
            let is_there = match source {
                Source::Ip => self.network().is_some(),
                Source::Header(name) => self.header(name).is_some(),
            };
            if is_there {
                return;
            }
        }
    }

    /// The first source that the request has, as far as they have been read.
    ///
    /// What stands later in a list is tagged, and so is an address: else a client could send another
    /// client's address as its key.
    fn identity(&self, sources: &'a [Source]) -> Identity<'_> {
        let found = sources.iter().enumerate().find_map(|(position, source)| match source {
            Source::Ip => {
                let Network(network) = self.network.as_ref()?;
                Some(Identity::Tagged("ip", network.as_ref()?.as_bytes()))
            }
            Source::Header(name) => {
                let value = self.known_header(name)?.as_deref()?;
                Some(if position == 0 { Identity::Bare(value) } else { Identity::Header(name, value) })
            }
        });
        found.unwrap_or(Identity::Anonymous)
    }

    fn method(&mut self) -> &[u8] {
        self.method.get_or_insert_with(|| self.attributes.method())
    }

    fn path(&mut self) -> &[u8] {
        self.path.get_or_insert_with(|| {
            let target = self.attributes.target();
            match normalize(&target) {
                Cow::Owned(path) => path,
                // The path is the target's beginning: no copy.
                Cow::Borrowed(path) => {
                    let length = path.len();
                    let mut target = target;
                    target.truncate(length);
                    target
                }
            }
        })
    }

    fn network(&mut self) -> Option<&str> {
        let network = || Network(self.attributes.address().map(client_network));
        self.network.get_or_insert_with(network).0.as_deref()
    }

    fn header(&mut self, name: &'a str) -> Option<&[u8]> {
        if self.known_header(name).is_none() {
            let value = self.attributes.header(name).filter(|value| !value.is_empty());
            self.headers.push((name, value));
        }
        self.known_header(name)?.as_deref()
    }

    fn known_header(&self, name: &str) -> Option<&Option<Vec<u8>>> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

/// An address as clients are told apart: IPv4 whole, also when mapped into IPv6; IPv6 by its /64, since
/// one client commonly has all of it.
fn client_network(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let network = u128::from(address) & !u128::from(u64::MAX);
            format!("{}/64", core::net::Ipv6Addr::from(network))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{OnFailure, Sync};
    use crate::quota::TokenBucket;

    #[derive(Default)]
    struct Fake {
        method: &'static str,
        target: &'static str,
        address: Option<&'static str>,
        headers: Vec<(&'static str, &'static str)>,
        reads: usize,
    }

    impl Attributes for Fake {
        fn method(&mut self) -> Vec<u8> {
            self.reads += 1;
            self.method.into()
        }

        fn target(&mut self) -> Vec<u8> {
            self.reads += 1;
            self.target.into()
        }

        fn address(&mut self) -> Option<IpAddr> {
            self.reads += 1;
            self.address.map(|address| address.parse().unwrap())
        }

        fn header(&mut self, name: &str) -> Option<Vec<u8>> {
            self.reads += 1;
            self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_bytes().to_vec())
        }
    }

    fn policy(name: &str, key: Vec<KeyPart>) -> Policy {
        Policy {
            name: name.into(),
            matcher: Match::default(),
            key,
            limit: Limit::TokenBucket(TokenBucket::new(1, "1/s".parse().unwrap()).unwrap()),
            cost: 1,
            sync: Sync::Exact(OnFailure::Open),
            shadow: false,
        }
    }

    fn header(name: &str) -> Source {
        Source::Header(name.into())
    }

    fn key_of(policy: &Policy, mut fake: Fake) -> String {
        demands(std::slice::from_ref(policy), &mut fake).next().unwrap().key
    }

    #[test]
    fn the_example_of_the_contract_gives_its_key() {
        let orders = policy(
            "orders",
            vec![
                KeyPart::Identity(vec![header("x-api-key")]),
                KeyPart::Scope(Scope::Method),
                KeyPart::Scope(Scope::Path),
            ],
        );
        let fake = Fake {
            method: "POST",
            target: "/x/../orders?a=1",
            headers: vec![("x-api-key", "42")],
            ..Fake::default()
        };
        assert_eq!(key_of(&orders, fake), "rl:{42}:orders:POST:/orders");
    }

    #[test]
    fn a_header_cannot_pose_as_an_address_or_as_another_header() {
        let first = policy("p", vec![KeyPart::Identity(vec![header("x-a"), header("x-b"), Source::Ip])]);
        let of = |headers| key_of(&first, Fake { headers, address: Some("203.0.113.7"), ..Fake::default() });
        assert_eq!(of(vec![("x-a", "203.0.113.7")]), "rl:{203.0.113.7}:p");
        assert_eq!(of(vec![("x-b", "203.0.113.7")]), "rl:{header.x-b=203.0.113.7}:p");
        assert_eq!(of(vec![]), "rl:{ip=203.0.113.7}:p");
        assert_eq!(of(vec![("x-a", "ip=203.0.113.7")]), "rl:{ip%3D203.0.113.7}:p");
    }

    #[test]
    fn a_header_that_is_called_ip_cannot_pose_as_an_address() {
        let sources = vec![header("x-a"), header("ip"), Source::Ip];
        let first = policy("p", vec![KeyPart::Identity(sources)]);
        let sent = Fake { headers: vec![("ip", "203.0.113.7")], ..Fake::default() };
        let real = Fake { address: Some("203.0.113.7"), ..Fake::default() };
        assert_ne!(key_of(&first, sent), key_of(&first, real));
    }

    #[test]
    fn all_who_have_no_identity_share_one_bucket() {
        let keyed = policy("p", vec![KeyPart::Identity(vec![header("x-a")])]);
        assert_eq!(key_of(&keyed, Fake::default()), "rl:{*}:p");
        assert_eq!(key_of(&keyed, Fake { headers: vec![("x-a", "")], ..Fake::default() }), "rl:{*}:p");
    }

    #[test]
    fn addresses_of_one_client_are_one_identity() {
        let by_ip = policy("p", vec![KeyPart::Identity(vec![Source::Ip])]);
        let of = |address| key_of(&by_ip, Fake { address: Some(address), ..Fake::default() });
        assert_eq!(of("::ffff:203.0.113.7"), of("203.0.113.7"));
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), of("2001:db8:1:2::"));
        assert_ne!(of("2001:db8:1:2::"), of("2001:db8:1:3::"));
    }

    #[test]
    fn policies_match_by_method_and_normal_path() {
        let with = |methods: &[&str], path: Option<PathMatch>| Policy {
            matcher: Match { methods: methods.iter().map(|method| (*method).into()).collect(), path },
            ..policy("p", vec![KeyPart::Scope(Scope::Path)])
        };
        let policies = [
            with(&["POST"], Some(PathMatch::Exact("/orders".into()))),
            with(&["GET", "HEAD"], None),
            with(&[], Some(PathMatch::Prefix("/ord".into()))),
            with(&[], Some(PathMatch::Exact("/orders/".into()))),
            Policy { limit: Limit::Unlimited, ..with(&[], None) },
        ];
        let mut fake = Fake { method: "POST", target: "//%6frders?x", ..Fake::default() };
        let matched: Vec<usize> = demands(&policies, &mut fake).map(|demand| demand.policy).collect();
        assert_eq!(matched, [0, 2]);
    }

    #[test]
    fn each_attribute_is_read_at_most_once_and_only_where_needed() {
        let keyed = policy(
            "p",
            vec![
                KeyPart::Identity(vec![header("x-a"), Source::Ip]),
                KeyPart::Scope(Scope::Method),
                KeyPart::Scope(Scope::Path),
            ],
        );
        let mut fake = Fake { method: "GET", target: "/", address: Some("::1"), ..Fake::default() };
        assert_eq!(demands(&[keyed.clone(), keyed], &mut fake).count(), 2);
        assert_eq!(fake.reads, 4);
        let mut fake = Fake::default();
        let by_post = Policy {
            matcher: Match { methods: vec!["POST".into()], path: None },
            ..policy("p", vec![KeyPart::Identity(vec![Source::Ip])])
        };
        assert_eq!(demands(&[by_post], &mut fake).count(), 0);
        assert_eq!(fake.reads, 1);
    }

    #[test]
    fn a_repeated_header_counts_only_where_all_values_are_equal() {
        let sole = |joined: &'static str, first: &'static str| {
            sole_value(joined.as_bytes(), || Some(first.into()))
                .map(|value| String::from_utf8(value.into()).unwrap())
        };
        assert_eq!(sole("a", "a").as_deref(), Some("a"));
        assert_eq!(sole(" a\t", " a\t").as_deref(), Some("a"));
        assert_eq!(sole("a,b", "a,b").as_deref(), Some("a,b"), "one value with a comma");
        assert_eq!(sole("a,a", "a").as_deref(), Some("a"));
        assert_eq!(sole("a,b,a,b", "a,b").as_deref(), Some("a,b"));
        for (joined, first) in [
            ("", ""),
            (" ", ""),
            ("a,b", "a"),
            ("a,", "a"),
            (",a", ""),
            (",", ""),
            ("a,a,b", "a"),
            ("a,ab", "a"),
            ("a,b,c", "a,b"),
        ] {
            assert_eq!(sole(joined, first), None, "{joined:?}");
        }
    }
}
