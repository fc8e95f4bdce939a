//! A request's attributes that have been read, so that none is read twice, and what policies make of them.

use core::net::IpAddr;
use std::borrow::Cow;

use super::lines::Lines;
use super::{Attributes, cookie, cost, metadata, query};
use crate::key::{Identity, store_key};
use crate::matching::{PathMatch, normalize_host};
use crate::path::normalize;
use crate::policy::{Cost, CostSource, KeyPart, Limit, Plan, Policy, Scope, Source};

/// What a request says under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Nothing.
    Absent,
    /// This, which is not empty.
    Value(Vec<u8>),
    /// Several things: upstream may read another one than we would.
    Ambiguous,
}

impl Told {
    /// Of several values: the one that all of them are, an empty one among others being another one.
    pub(super) fn of(mut values: impl Iterator<Item = Vec<u8>>) -> Self {
        let Some(first) = values.next() else { return Self::Absent };
        if values.any(|value| value != first) {
            Self::Ambiguous
        } else if first.is_empty() {
            Self::Absent
        } else {
            Self::Value(first)
        }
    }

    fn value(self) -> Option<Vec<u8>> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Ambiguous => None,
        }
    }
}

/// Attributes that have been read once.
pub(crate) struct Request<'a> {
    attributes: &'a mut dyn Attributes,
    method: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    path: Option<NormalPath>,
    host: Option<Vec<u8>>,
    route: Option<Vec<u8>>,
    address: Address,
    network: Option<String>,
    headers: Vec<(&'a str, Lines)>,
    /// Of sources that are neither addresses nor headers.
    found: Vec<(&'a Source, Option<Vec<u8>>)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Address {
    Unread,
    Unknown,
    Known(IpAddr),
}

enum NormalPath {
    /// So many bytes of the target, as it arrived.
    Beginning(usize),
    Other(Vec<u8>),
}

/// The header that cookies are in.
const COOKIE: &str = "cookie";

impl<'a> Request<'a> {
    pub(crate) fn new(attributes: &'a mut dyn Attributes) -> Self {
        Self {
            attributes,
            method: None,
            target: None,
            path: None,
            host: None,
            route: None,
            address: Address::Unread,
            network: None,
            headers: Vec::new(),
            found: Vec::new(),
        }
    }

    pub(crate) fn method(&mut self) -> &[u8] {
        self.method.get_or_insert_with(|| self.attributes.method())
    }

    /// The normalised path.
    pub(crate) fn path(&mut self) -> &[u8] {
        if self.path.is_none() {
            let path = match normalize(self.target()) {
                Cow::Owned(path) => NormalPath::Other(path),
                Cow::Borrowed(path) => NormalPath::Beginning(path.len()),
            };
            self.path = Some(path);
        }
        self.known_path().unwrap_or_default()
    }

    /// The host in normal form.
    pub(crate) fn host(&mut self) -> &[u8] {
        self.host.get_or_insert_with(|| {
            let authority = self.attributes.authority();
            match normalize_host(&authority) {
                Cow::Owned(host) => host,
                Cow::Borrowed(host) if host.len() == authority.len() => authority,
                Cow::Borrowed(host) => host.to_vec(),
            }
        })
    }

    pub(crate) fn route(&mut self) -> &[u8] {
        self.route.get_or_insert_with(|| self.attributes.route())
    }

    pub(crate) fn address(&mut self) -> Option<IpAddr> {
        if self.address == Address::Unread {
            self.address = self.attributes.address().map_or(Address::Unknown, Address::Known);
        }
        match self.address {
            Address::Known(address) => Some(address),
            Address::Unknown | Address::Unread => None,
        }
    }

    /// All values of a header, with commas between them.
    pub(crate) fn header(&mut self, name: &'a str) -> Option<&[u8]> {
        self.lines(name, false)?.joined.as_deref()
    }

    /// The limit that holds for this request: the one of its plan, with the plan's name, or the policy's own.
    pub(crate) fn limit(&mut self, policy: &'a Policy) -> (Limit, Option<&'a str>) {
        let planned = policy.plan.as_ref().and_then(|plan| plan.limit(self.plan_name(plan)?));
        planned.map_or((policy.limit, None), |(name, limit)| (limit, Some(name)))
    }

    /// The name of the plan that the request has.
    pub(crate) fn plan_name(&mut self, plan: &'a Plan) -> Option<&[u8]> {
        self.read_first(&plan.from);
        plan.from.iter().find_map(|source| self.known(source))
    }

    /// Whether the request has all identities that a policy's key asks for.
    pub(crate) fn has_identity(&mut self, policy: &'a Policy) -> bool {
        policy.key.iter().all(|part| match part {
            KeyPart::Identity(sources) => self.read_first(sources),
            KeyPart::Scope(_) => true,
        })
    }

    /// What the request takes.
    pub(crate) fn cost(&mut self, cost: &'a Cost) -> u64 {
        let told = match cost {
            Cost::Fixed(tokens) => return *tokens,
            Cost::Told(told) => told,
        };
        let value = match &told.source {
            CostSource::Query(name) => query::value(self.target(), name),
            CostSource::Header(name) => match self.lines(name, true) {
                None => Told::Absent,
                Some(lines) => match lines.sole_value() {
                    Some(value) => Told::Value(value.to_vec()),
                    None if lines.is_empty() => Told::Absent,
                    None => Told::Ambiguous,
                },
            },
        };
        cost::tokens(&value, told)
    }

    /// The store key of a policy, under a plan where the request has one that it knows, of one of its shards where it has
    /// several.
    pub(crate) fn key(&mut self, policy: &'a Policy, plan: Option<&str>, shard: Option<u32>) -> String {
        // What is needed is read first, so that the key is then written from what is kept, without copies.
        for part in &policy.key {
            match part {
                KeyPart::Identity(sources) => {
                    self.read_first(sources);
                }
                KeyPart::Scope(Scope::Method) => drop(self.method()),
                KeyPart::Scope(Scope::Path) => drop(self.path()),
                KeyPart::Scope(Scope::Route) => drop(self.route()),
                KeyPart::Scope(Scope::Host) => drop(self.host()),
            }
        }
        let identities = policy.key.iter().filter_map(|part| match part {
            KeyPart::Identity(sources) => Some(self.identity(sources)),
            KeyPart::Scope(_) => None,
        });
        let scopes = policy.key.iter().filter_map(|part| match part {
            KeyPart::Identity(_) => None,
            KeyPart::Scope(Scope::Method) => self.method.as_deref(),
            KeyPart::Scope(Scope::Path) => match &policy.matcher.conditions.path {
                Some(PathMatch::Template(template)) => Some(template.text().as_bytes()),
                _ => self.known_path(),
            },
            KeyPart::Scope(Scope::Route) => self.route.as_deref(),
            KeyPart::Scope(Scope::Host) => self.host.as_deref(),
        });
        store_key(identities, shard, (&policy.name, plan), scopes)
    }

    /// The first source that the request has, as far as they have been read.
    ///
    /// What stands later in a list is tagged, and so is an address: else a client could send another
    /// client's address as its key.
    fn identity(&self, sources: &'a [Source]) -> Identity<'_> {
        let found = sources.iter().enumerate().find_map(|(position, source)| {
            let value = self.known(source)?;
            Some(match source {
                Source::Ip => Identity::Address(value),
                _ if position == 0 => Identity::Bare(value),
                _ => Identity::Of(source, value),
            })
        });
        found.unwrap_or(Identity::Anonymous)
    }

    /// Reads sources up to the first that the request has; whether it has one.
    fn read_first(&mut self, sources: &'a [Source]) -> bool {
        sources.iter().any(|source| {
            self.read(source);
            self.known(source).is_some()
        })
    }

    fn read(&mut self, source: &'a Source) {
        match source {
            Source::Ip => {
                if self.network.is_none() {
                    self.network = self.address().map(client_network);
                }
                return;
            }
            Source::Header(name) => {
                self.lines(name, true);
                return;
            }
            _ if self.found.iter().any(|(known, _)| *known == source) => return,
            Source::Cookie(_) | Source::Query(_) | Source::Claim(_) | Source::Metadata(_) => {}
        }
        let value = match source {
            Source::Ip | Source::Header(_) => None,
            Source::Query(name) => query::value(self.target(), name).value(),
            Source::Cookie(name) => {
                self.lines(COOKIE, true).and_then(|lines| cookie::value(lines, name).value())
            }
            Source::Claim(path) => {
                let path: Vec<&str> =
                    core::iter::once(metadata::JWT).chain(path.iter().map(String::as_str)).collect();
                self.attributes.metadata(&path).and_then(metadata::text)
            }
            Source::Metadata(path) => {
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                let noted = self.attributes.metadata(&path).and_then(metadata::text);
                noted.or_else(|| self.attributes.route_metadata(&path).and_then(metadata::text))
            }
        };
        self.found.push((source, value));
    }

    /// What a source that has been read says.
    fn known(&self, source: &Source) -> Option<&[u8]> {
        match source {
            Source::Ip => self.network.as_deref().map(str::as_bytes),
            Source::Header(name) => self.known_lines(name)?.sole_value(),
            _ => self.found.iter().find(|(known, _)| *known == source)?.1.as_deref(),
        }
    }

    fn target(&mut self) -> &[u8] {
        self.target.get_or_insert_with(|| self.attributes.target())
    }

    fn known_path(&self) -> Option<&[u8]> {
        match self.path.as_ref()? {
            NormalPath::Other(path) => Some(path),
            NormalPath::Beginning(length) => self.target.as_deref()?.get(..*length),
        }
    }

    /// The lines of a header. `in_doubt`: what tells one value from several is read too.
    fn lines(&mut self, name: &'a str, in_doubt: bool) -> Option<&Lines> {
        let position = self.headers.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            let joined = self.attributes.header(name);
            self.headers.push((name, Lines::new(joined)));
            self.headers.len() - 1
        });
        let (_, lines) = self.headers.get_mut(position)?;
        if in_doubt && lines.is_doubtful() {
            lines.set_first(self.attributes.first_value(name));
        }
        Some(lines)
    }

    fn known_lines(&self, name: &str) -> Option<&Lines> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, lines)| lines)
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
