//! A request's attributes that have been read, so that none is read twice.

use core::net::IpAddr;
use std::borrow::Cow;

use super::Attributes;
use super::lines::Lines;
use crate::matching::normalize_host;
use crate::path::normalize;
use crate::policy::Source;

/// Attributes that have been read once.
pub(crate) struct Request<'a> {
    pub(super) attributes: &'a mut dyn Attributes,
    pub(super) method: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    path: Option<NormalPath>,
    pub(super) host: Option<Vec<u8>>,
    pub(super) route: Option<Vec<u8>>,
    address: Address,
    /// The address as clients are told apart.
    pub(super) network: Option<String>,
    headers: Vec<(&'a str, Lines)>,
    /// Of sources that are neither addresses nor headers.
    pub(super) found: Vec<(&'a Source, Option<Vec<u8>>)>,
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

    pub(super) fn target(&mut self) -> &[u8] {
        self.target.get_or_insert_with(|| self.attributes.target())
    }

    pub(super) fn known_path(&self) -> Option<&[u8]> {
        match self.path.as_ref()? {
            NormalPath::Other(path) => Some(path),
            NormalPath::Beginning(length) => self.target.as_deref()?.get(..*length),
        }
    }

    /// The lines of a header. `in_doubt`: what tells one value from several is read too.
    pub(super) fn lines(&mut self, name: &'a str, in_doubt: bool) -> Option<&Lines> {
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

    pub(super) fn known_lines(&self, name: &str) -> Option<&Lines> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, lines)| lines)
    }
}
