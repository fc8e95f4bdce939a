//! Hosts: one spelling for every way to write the same one.

use core::net::Ipv6Addr;
use std::borrow::Cow;

/// A condition on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostMatch {
    /// This host, in normal form.
    Exact(String),
    /// Any host below this one, which is in normal form: `example.com` stands for `*.example.com`.
    Below(String),
}

impl HostMatch {
    /// Whether a host in normal form fits.
    pub fn holds(&self, host: &[u8]) -> bool {
        match self {
            Self::Exact(exact) => exact.as_bytes() == host,
            Self::Below(domain) => {
                let label = host.strip_suffix(domain.as_bytes()).and_then(|front| front.strip_suffix(b"."));
                label.is_some_and(|label| !label.is_empty())
            }
        }
    }
}

/// The host of an authority in normal form: without port, user and dots at the end, in lower case. Any bytes are taken.
/// The port goes first, as in Envoy's routing, to which `a:80@b` is `a`.
pub fn normalize_host(authority: &[u8]) -> Cow<'_, [u8]> {
    let host = without_port(authority);
    let host = host.rsplit(|byte| *byte == b'@').next().unwrap_or(host);
    let end = host.iter().rposition(|byte| *byte != b'.').map_or(0, |last| last + 1);
    let host = host.get(..end).unwrap_or(host);
    if host.iter().any(u8::is_ascii_uppercase) {
        Cow::Owned(host.to_ascii_lowercase())
    } else {
        Cow::Borrowed(host)
    }
}

/// An address of IPv6 has colons of its own, and stands in brackets. Whatever else follows a colon is no part of the
/// host: Envoy, told to ignore ports, routes `a:x` as it does `a`, and others read no further than the first colon.
fn without_port(host: &[u8]) -> &[u8] {
    let mut colons = host.iter().enumerate().filter(|(_, byte)| **byte == b':').map(|(at, _)| at);
    let end = if host.starts_with(b"[") {
        host.iter().rposition(|byte| *byte == b']').map(|bracket| bracket + 1)
    } else if colons.clone().nth(1).is_some() && is_address(host) {
        None
    } else {
        colons.next()
    };
    end.and_then(|end| host.get(..end)).unwrap_or(host)
}

fn is_address(host: &[u8]) -> bool {
    core::str::from_utf8(host).is_ok_and(|host| host.parse::<Ipv6Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn normal(authority: &str) -> String {
        String::from_utf8(normalize_host(authority.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn every_spelling_of_a_host_is_one_host() {
        for spelling in [
            "api.example.com",
            "API.Example.COM",
            "api.example.com:8080",
            "api.example.com:",
            "api.example.com:x",
            "api.example.com:80.",
            "api.example.com.:+80",
            "api.example.com:80:80",
            "api.example.com.",
            "api.example.com.:443",
            "api.example.com..",
            "api.example.com:80@b",
            "user@api.example.com",
        ] {
            assert_eq!(normal(spelling), "api.example.com", "{spelling:?}");
        }
        assert_eq!((normal("[::1]:8080"), normal("[::1]")), ("[::1]".into(), "[::1]".into()));
        assert_eq!(
            (normal("::1"), normal(""), normal("[::1]x")),
            ("::1".into(), String::new(), "[::1]".into())
        );
    }

    #[test]
    fn a_wildcard_stands_for_every_name_below_and_not_for_the_domain() {
        let below = HostMatch::Below("example.com".into());
        for host in ["a.example.com", "a.b.example.com"] {
            assert!(below.holds(host.as_bytes()), "{host:?}");
        }
        for host in ["example.com", ".example.com", "badexample.com", "a.example.com.evil", ""] {
            assert!(!below.holds(host.as_bytes()), "{host:?}");
        }
        assert!(HostMatch::Exact("example.com".into()).holds(b"example.com"));
        assert!(!HostMatch::Exact("example.com".into()).holds(b"a.example.com"));
    }

    proptest! {
        #[test]
        fn case_and_port_make_no_other_host(host in "[a-z0-9.-]{0,12}[a-z0-9]", port in 0_u16..) {
            let written = format!("{}:{port}", host.to_ascii_uppercase());
            prop_assert_eq!(normal(&written), host);
        }

        #[test]
        fn any_bytes_are_taken(authority in proptest::collection::vec(any::<u8>(), 0..24)) {
            prop_assert!(normalize_host(&authority).len() <= authority.len());
        }
    }
}
