//! A request that is described instead of read from a proxy: for explanations and tests.

use core::net::IpAddr;

use super::Attributes;

/// What a request says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// The method.
    pub method: Vec<u8>,
    /// The request target, with query.
    pub target: Vec<u8>,
    /// The host, with port.
    pub authority: Vec<u8>,
    /// The trusted address of the client.
    pub address: Option<IpAddr>,
    /// Header fields in their order: names in lower case, and values.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The name of the route.
    pub route: Vec<u8>,
    /// What filters have noted: paths, and values as a proxy hands them over.
    pub metadata: Vec<(Vec<String>, Vec<u8>)>,
    /// What the route says, in the same form.
    pub route_metadata: Vec<(Vec<String>, Vec<u8>)>,
}

impl Attributes for Given {
    fn method(&mut self) -> Vec<u8> {
        self.method.clone()
    }

    fn target(&mut self) -> Vec<u8> {
        self.target.clone()
    }

    fn authority(&mut self) -> Vec<u8> {
        self.authority.clone()
    }

    fn address(&mut self) -> Option<IpAddr> {
        self.address
    }

    fn header(&mut self, name: &str) -> Option<Vec<u8>> {
        let mut values = self.values(name);
        let mut joined = values.next()?.to_vec();
        for value in values {
            joined.push(b',');
            joined.extend_from_slice(value);
        }
        Some(joined)
    }

    fn first_value(&mut self, name: &str) -> Option<Vec<u8>> {
        self.values(name).next().map(<[u8]>::to_vec)
    }

    fn route(&mut self) -> Vec<u8> {
        self.route.clone()
    }

    fn metadata(&mut self, path: &[&str]) -> Option<Vec<u8>> {
        lookup(&self.metadata, path)
    }

    fn route_metadata(&mut self, path: &[&str]) -> Option<Vec<u8>> {
        lookup(&self.route_metadata, path)
    }
}

impl Given {
    fn values(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.headers.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_slice())
    }
}

fn lookup(known: &[(Vec<String>, Vec<u8>)], path: &[&str]) -> Option<Vec<u8>> {
    known.iter().find(|(found, _)| found == path).map(|(_, value)| value.clone())
}
