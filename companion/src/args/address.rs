//! `--listen`: an address, or a name that has one, and a port.

use core::fmt;
use std::net::{SocketAddr, ToSocketAddrs};

/// Why there is nothing to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// Not an address and a port. An address is not guessed: the companion is open to whoever reaches it.
    Form,
    /// A name that cannot be resolved.
    Name {
        /// What the resolver said.
        detail: String,
    },
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Name { detail } = self {
            write!(f, "{detail}; ")?;
        }
        f.write_str("use an address and a port, as in \"127.0.0.1:8081\"")
    }
}

impl core::error::Error for AddressError {}

/// Reads an address; of a name that has several, the first of IPv4, which `127.0.0.1` in an Envoy's
/// configuration reaches.
pub(super) fn parse(text: &str) -> Result<SocketAddr, AddressError> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    match text.rsplit_once(':') {
        Some((name, port)) if is_name(name) && port.parse::<u16>().is_ok() => {}
        _ => return Err(AddressError::Form),
    }
    let found = text.to_socket_addrs().map_err(|error| AddressError::Name { detail: error.to_string() })?;
    found.min_by_key(SocketAddr::is_ipv6).ok_or(AddressError::Form)
}

fn is_name(name: &str) -> bool {
    name.starts_with(|char: char| char.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_with_a_port_are_taken() {
        for text in ["127.0.0.1:8081", "0.0.0.0:0", "[::1]:8081"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        assert_eq!(parse("localhost:8081").unwrap().to_string(), "127.0.0.1:8081");
    }

    #[test]
    fn what_lacks_an_address_or_a_port_is_refused() {
        for text in [
            "8081",
            ":8081",
            "localhost",
            "127.0.0.1",
            "::1",
            "[::1]",
            "http://127.0.0.1:80",
            "h:99999",
            "*:80",
            "",
        ] {
            assert_eq!(parse(text), Err(AddressError::Form), "{text}");
        }
    }

    #[test]
    fn a_name_that_nobody_has_is_told_from_a_wrong_form() {
        let error = AddressError::Name { detail: "no such name".to_owned() }.to_string();
        assert_eq!(error, "no such name; use an address and a port, as in \"127.0.0.1:8081\"");
    }
}
