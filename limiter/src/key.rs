//! Store keys: `rl:{IDENTITY}:POLICY:SCOPE…`, as in `rl:{42}:orders:POST:/orders`, or `rl:{42;3}:api;gold` of a shard and a plan.
//!
//! The braces are the hash tag of a Redis Cluster, so that all keys of one identity share a slot. No value
//! of a request can forge another key: whatever is not plainly harmless is percent-encoded, and a value
//! that is still long stands as its SHA-256. Each part ends with a character that no encoded value holds.

use sha2::{Digest, Sha256};

use crate::path::is_unreserved;
use crate::policy::Source;

/// What every store key starts with.
pub const PREFIX: &str = "rl:{";

/// The most bytes that an encoded value takes; a longer one is hashed.
pub const MAX_VALUE_BYTES: usize = 96;

/// Stands for an identity that a request does not have: one bucket for all who have none.
const ANONYMOUS: char = '*';

/// Precedes the number of a shard, which is in the hash tag so that shards have slots of their own, and the name of a
/// plan, each of which has a bucket of its own.
const PART: char = ';';

/// Precedes a hash, and never starts an encoded value.
const HASHED: char = '#';

/// A part of an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity<'a> {
    /// The request does not say.
    Anonymous,
    /// A value on its own; an empty one is none.
    Bare(&'a [u8]),
    /// An address, tagged `ip`, so that no value of another source can be taken for it.
    Address(&'a [u8]),
    /// The value of a source, tagged with its kind and name, as `header.x-api-key`.
    Of(&'a Source, &'a [u8]),
}

/// Builds the key of one bucket.
///
/// Two calls give the same key only for the same policy, and, where the counts of parts and the positions
/// of tags are a policy's own, only for the same identity, shard and scope (up to collisions of SHA-256).
pub fn store_key<'a>(
    identity: impl IntoIterator<Item = Identity<'a>>,
    shard: Option<u32>,
    policy: (&str, Option<&str>),
    scope: impl IntoIterator<Item = &'a [u8]>,
) -> String {
    let mut key = String::with_capacity(64);
    key.push_str(PREFIX);
    let start = key.len();
    for (index, part) in identity.into_iter().enumerate() {
        if index > 0 {
            key.push(',');
        }
        match part {
            Identity::Anonymous | Identity::Bare([]) => key.push(ANONYMOUS),
            Identity::Bare(value) => push_value(&mut key, value),
            Identity::Address(value) => {
                key.push_str("ip=");
                push_value(&mut key, value);
            }
            Identity::Of(source, value) => {
                push_source(&mut key, source);
                key.push('=');
                push_value(&mut key, value);
            }
        }
    }
    if key.len() == start {
        // A limit that all clients share. Empty braces would be no hash tag.
        key.push(ANONYMOUS);
    }
    if let Some(shard) = shard {
        key.push(PART);
        key.push_str(&shard.to_string());
    }
    key.push_str("}:");
    let (policy, plan) = policy;
    push_value(&mut key, policy.as_bytes());
    if let Some(plan) = plan {
        key.push(PART);
        push_value(&mut key, plan.as_bytes());
    }
    for part in scope {
        key.push(':');
        push_value(&mut key, part);
    }
    key
}

/// The policy's part of a store key; nothing where the text is none.
pub fn policy_part(key: &str) -> &str {
    let rest = key.split_once("}:").map_or("", |(_, rest)| rest);
    rest.split([':', PART]).next().unwrap_or("")
}

/// Appends a source's kind and name, as `header.x-api-key` or `claim.payload:sub`.
fn push_source(key: &mut String, source: &Source) {
    let (kind, names) = match source {
        Source::Ip => ("ip", &[][..]),
        Source::Header(name) => ("header", core::slice::from_ref(name)),
        Source::Cookie(name) => ("cookie", core::slice::from_ref(name)),
        Source::Query(name) => ("query", core::slice::from_ref(name)),
        Source::Claim(path) => ("claim", path.as_slice()),
        Source::Metadata(path) => ("metadata", path.as_slice()),
    };
    key.push_str(kind);
    for (index, name) in names.iter().enumerate() {
        key.push(if index == 0 { '.' } else { ':' });
        push_value(key, name.as_bytes());
    }
}

/// Appends a value, encoded, or hashed where that is too long.
fn push_value(key: &mut String, value: &[u8]) {
    let start = key.len();
    for &byte in value {
        if is_plain(byte) {
            key.push(char::from(byte));
        } else {
            key.push('%');
            push_hex(key, byte);
        }
        if key.len() - start > MAX_VALUE_BYTES {
            key.truncate(start);
            key.push(HASHED);
            for byte in Sha256::digest(value) {
                push_hex(key, byte);
            }
            return;
        }
    }
}

/// Unreserved characters, and those that paths and addresses are readable with.
fn is_plain(byte: u8) -> bool {
    is_unreserved(byte) || matches!(byte, b'/' | b'@' | b'+')
}

fn push_hex(out: &mut String, byte: u8) {
    for nibble in [byte >> 4, byte & 15] {
        out.extend(char::from_digit(u32::from(nibble), 16).map(|digit| digit.to_ascii_uppercase()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn a_key_reads_as_the_contract_says() {
        let key = store_key([Identity::Bare(b"42")], None, ("orders", None), [&b"POST"[..], b"/orders"]);
        assert_eq!(key, "rl:{42}:orders:POST:/orders");
        let key =
            store_key([Identity::Address(b"203.0.113.7"), Identity::Anonymous], None, ("per-ip", None), []);
        assert_eq!(key, "rl:{ip=203.0.113.7,*}:per-ip");
        assert_eq!(store_key([], None, ("all", None), []), "rl:{*}:all");
        assert_eq!(store_key([Identity::Bare(b"42")], Some(3), ("hot", None), []), "rl:{42;3}:hot");
        let claim = Source::Claim(vec!["payload".into(), "org.id".into()]);
        assert_eq!(
            store_key([Identity::Of(&claim, b"7")], None, ("p", None), []),
            "rl:{claim.payload:org.id=7}:p"
        );
        assert_eq!(policy_part("rl:{42}:orders:POST:/orders"), "orders");
        let key = store_key([Identity::Bare(b"42")], None, ("api", Some("gold")), [&b"GET"[..]]);
        assert_eq!((key.as_str(), policy_part(&key)), ("rl:{42}:api;gold:GET", "api"));
        assert_eq!((policy_part("rl:{42}:all"), policy_part("what")), ("all", ""));
    }

    #[test]
    fn values_cannot_forge_structure() {
        let key = store_key([Identity::Bare(b"a}:b{*=,#;\xff ")], None, ("p:q", None), []);
        assert_eq!(key, "rl:{a%7D%3Ab%7B%2A%3D%2C%23%3B%FF%20}:p%3Aq");
        let key = |identity| store_key([identity], None, ("p", None), []);
        assert_ne!(key(Identity::Bare(b"ip=203.0.113.7")), key(Identity::Address(b"203.0.113.7")));
        assert_ne!(key(Identity::Bare(b"*")), key(Identity::Anonymous));
        assert_ne!(store_key([], None, ("p", Some("a")), []), store_key([], None, ("p;a", None), []));
        assert_ne!(
            key(Identity::Bare(b"42;3")),
            store_key([Identity::Bare(b"42")], Some(3), ("p", None), [])
        );
        let parts = |parts: &[&str]| Source::Claim(parts.iter().map(|part| (*part).to_owned()).collect());
        let (one, two) = (parts(&["a.b"]), parts(&["a", "b"]));
        assert_ne!(key(Identity::Of(&one, b"7")), key(Identity::Of(&two, b"7")));
    }

    #[test]
    fn a_long_value_is_hashed_and_still_tells_clients_apart() {
        let one = vec![b'a'; 60_000];
        let other = [&one[1..], b"b"].concat();
        let key = |value| store_key([Identity::Bare(value)], None, ("p", None), []);
        assert!(key(&one).len() < MAX_VALUE_BYTES);
        assert_ne!(key(&one), key(&other));
    }

    #[derive(Clone, Debug, PartialEq)]
    enum Owned {
        Anonymous,
        Bare(Vec<u8>),
        Address(Vec<u8>),
        Of(Source, Vec<u8>),
    }

    impl Owned {
        fn borrow(&self) -> Identity<'_> {
            match self {
                Self::Anonymous => Identity::Anonymous,
                Self::Bare(value) => Identity::Bare(value),
                Self::Address(value) => Identity::Address(value),
                Self::Of(source, value) => Identity::Of(source, value),
            }
        }
    }

    /// Few and short values around every character that has a meaning in a key, so that two keys would
    /// often meet if they could, and some around the length at which hashing starts.
    fn value() -> impl Strategy<Value = Vec<u8>> {
        let byte = proptest::sample::select(b"{}:,=*#%a\xff".to_vec());
        prop_oneof![
            9 => vec(byte.clone(), 0..3),
            1 => vec(byte, MAX_VALUE_BYTES / 3 - 1..MAX_VALUE_BYTES / 3 + 2),
        ]
    }

    fn source() -> impl Strategy<Value = Source> {
        let name = || proptest::sample::select(vec!["a", "ip", "=", ".", ":", "a.b"]).prop_map(str::to_owned);
        prop_oneof![
            name().prop_map(Source::Header),
            name().prop_map(Source::Cookie),
            name().prop_map(Source::Query),
            vec(name(), 1..3).prop_map(Source::Claim),
            vec(name(), 1..3).prop_map(Source::Metadata),
        ]
    }

    fn identity() -> impl Strategy<Value = Owned> {
        prop_oneof![
            Just(Owned::Anonymous),
            value().prop_map(|value| if value.is_empty() { Owned::Anonymous } else { Owned::Bare(value) }),
            value().prop_map(Owned::Address),
            (source(), value()).prop_map(|(source, value)| Owned::Of(source, value)),
        ]
    }

    type Parts = (Vec<Owned>, Option<u32>, String, Vec<Vec<u8>>);

    fn parts() -> impl Strategy<Value = Parts> {
        (vec(identity(), 1..3), proptest::option::of(0_u32..3), "[:}a]{1,2}", vec(value(), 0..3))
    }

    fn key_of((identity, shard, policy, scope): &Parts) -> String {
        store_key(identity.iter().map(Owned::borrow), *shard, (policy, None), scope.iter().map(Vec::as_slice))
    }

    /// The hash tag by the rule of the Redis Cluster specification.
    fn hash_tag(key: &str) -> &str {
        match key.split_once('{').and_then(|(_, rest)| rest.split_once('}')) {
            Some((tag, _)) if !tag.is_empty() => tag,
            _ => key,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        #[test]
        fn different_parts_give_different_keys(many in vec(parts(), 500)) {
            let mut seen = std::collections::BTreeMap::new();
            for parts in many {
                let key = key_of(&parts);
                let first = seen.entry(key).or_insert_with(|| parts.clone());
                prop_assert_eq!(&*first, &parts, "two identities under one key");
            }
        }

        #[test]
        fn equal_parts_give_one_key(parts in parts()) {
            prop_assert_eq!(key_of(&parts), key_of(&parts.clone()));
        }

        #[test]
        fn keys_of_one_identity_share_a_slot(
            (identity, shard, policy, scope) in parts(), second in "[ -~]{1,9}",
        ) {
            let one = key_of(&(identity.clone(), shard, policy, scope));
            let other = key_of(&(identity, shard, second, vec![]));
            prop_assert_eq!(hash_tag(&one), hash_tag(&other));
            prop_assert!(hash_tag(&one).len() < one.len() - 4);
        }

        #[test]
        fn keys_are_printable_and_hold_one_hash_tag(parts in parts()) {
            let key = key_of(&parts);
            prop_assert!(key.bytes().all(|byte| byte.is_ascii_graphic()));
            prop_assert_eq!(key.matches(['{', '}']).count(), 2);
        }
    }
}
