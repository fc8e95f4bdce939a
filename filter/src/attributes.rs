//! A request's attributes, read from the proxy.

use core::net::{IpAddr, SocketAddr};

use limiter::request::{Attributes, sole_value};

use crate::host::{self, Map};

/// The attributes of the effective context's request.
pub(crate) struct RequestAttributes;

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
        let joined = host::property(&format!("request\0headers\0{name}"))?;
        sole_value(&joined, || host::header(Map::Request, name)).map(<[u8]>::to_vec)
    }
}
