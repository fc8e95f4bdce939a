//! Who asks: the sources that policies name, each read once, and the first that a request has.

use core::net::IpAddr;

use super::values::Request;
use super::{JWT_AUTHN, cookie, metadata, query};
use crate::key::Identity;
use crate::policy::Source;

/// The header that cookies are in.
const COOKIE: &str = "cookie";

impl<'a> Request<'a> {
    /// The first source that the request has, as far as they have been read.
    ///
    /// What stands later in a list is tagged, and so is an address: else a client could send another
    /// client's address as its key.
    pub(super) fn identity(&self, sources: &'a [Source]) -> Identity<'_> {
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
    pub(super) fn read_first(&mut self, sources: &'a [Source]) -> bool {
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
                    core::iter::once(JWT_AUTHN).chain(path.iter().map(String::as_str)).collect();
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
    pub(super) fn known(&self, source: &Source) -> Option<&[u8]> {
        match source {
            Source::Ip => self.network.as_deref().map(str::as_bytes),
            Source::Header(name) => self.known_lines(name)?.sole_value(),
            _ => self.found.iter().find(|(known, _)| *known == source)?.1.as_deref(),
        }
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
