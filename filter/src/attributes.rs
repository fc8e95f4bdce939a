//! A request's attributes, read from the proxy.

use core::net::{IpAddr, SocketAddr};

use limiter::request::Attributes;

use crate::host::{self, Map};

/// The attributes of the effective context's request.
#[derive(Default)]
pub(crate) struct RequestAttributes {
    /// The property that is asked for, in a buffer that every request uses again.
    path: String,
}

/// What the path of a header's property begins with.
const HEADERS: &str = "request\0headers";

/// What the path of metadata begins with: what filters before this one have noted, and what the route says.
const METADATA: &str = "metadata\0filter_metadata";
const ROUTE_METADATA: &str = "xds\0route_metadata\0filter_metadata";

impl RequestAttributes {
    /// A property by the segments of its path, which NUL joins.
    fn property<'a>(&mut self, start: &str, segments: impl IntoIterator<Item = &'a str>) -> Option<Vec<u8>> {
        self.path.clear();
        self.path.push_str(start);
        for segment in segments {
            self.path.extend(["\0", segment]);
        }
        host::property(&self.path)
    }
}

impl Attributes for RequestAttributes {
    fn method(&mut self) -> Vec<u8> {
        host::header(Map::Request, ":method").unwrap_or_default()
    }

    fn target(&mut self) -> Vec<u8> {
        host::header(Map::Request, ":path").unwrap_or_default()
    }

    fn authority(&mut self) -> Vec<u8> {
        host::header(Map::Request, ":authority").unwrap_or_default()
    }

    fn address(&mut self) -> Option<IpAddr> {
        // With the port. Envoy has derived it from X-Forwarded-For where it was told to trust that.
        let address = host::property("source\0address")?;
        let address = core::str::from_utf8(&address).ok()?;
        address.parse::<SocketAddr>().ok().map(|address| address.ip())
    }

    fn header(&mut self, name: &str) -> Option<Vec<u8>> {
        // The property joins all values by commas.
        self.property(HEADERS, [name])
    }

    fn first_value(&mut self, name: &str) -> Option<Vec<u8>> {
        host::header(Map::Request, name)
    }

    fn route(&mut self) -> Vec<u8> {
        host::property("xds\0route_name").unwrap_or_default()
    }

    fn metadata(&mut self, path: &[&str]) -> Option<Vec<u8>> {
        self.property(METADATA, path.iter().copied())
    }

    fn route_metadata(&mut self, path: &[&str]) -> Option<Vec<u8>> {
        self.property(ROUTE_METADATA, path.iter().copied())
    }
}
