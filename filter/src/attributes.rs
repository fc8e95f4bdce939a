//! A request's attributes, read from the proxy.

use core::net::{IpAddr, SocketAddr};

use limiter::request::{Attributes, sole_value};

use crate::host::{self, Map};

/// The attributes of the effective context's request.
#[derive(Default)]
pub(crate) struct RequestAttributes {
    /// The property of the header that is asked for, in a buffer that every request uses again.
    path: String,
}

/// What the path of a header's property begins with.
const HEADERS: &str = "request\0headers\0";

impl Attributes for RequestAttributes {
    fn method(&mut self) -> Vec<u8> {
        host::header(Map::Request, ":method").unwrap_or_default()
    }

    fn target(&mut self) -> Vec<u8> {
        host::header(Map::Request, ":path").unwrap_or_default()
    }

    fn address(&mut self) -> Option<IpAddr> {
        // With the port. Envoy has derived it from X-Forwarded-For where it was told to trust that.
        let address = host::property("source\0address")?;
        let address = core::str::from_utf8(&address).ok()?;
        address.parse::<SocketAddr>().ok().map(|address| address.ip())
    }

    fn header(&mut self, name: &str) -> Option<Vec<u8>> {
        // The property joins all values by commas, the header alone would be the first of them.
        self.path.clear();
        self.path.extend([HEADERS, name]);
        let joined = host::property(&self.path)?;
        let sole = sole_value(&joined, || host::header(Map::Request, name))?;
        // Mostly all of it: then what the host has allocated is the value.
        if sole.len() == joined.len() { Some(joined) } else { Some(sole.to_vec()) }
    }
}
