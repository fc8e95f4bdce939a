//! `hosts`: in the spelling in which the hosts of requests are compared.

use core::net::Ipv6Addr;

use limiter::matching::{HostMatch, normalize_host};

use crate::entries;
use crate::error::{Problem, Remedy};
use crate::report::{Report, Reported};
use crate::spot::Spot;

/// The most hosts of one policy.
pub const MAX_HOSTS: usize = 32;
/// The most bytes of a host: what DNS allows.
pub const MAX_HOST_BYTES: usize = 253;

const FORM: &str = "use a list such as [\"api.example.com\"], or leave it out to match every host";
const HOST: &str = "use a host such as \"api.example.com\", or \"*.example.com\" for all below one";
const EVERY: &str = "leave \"hosts\" out to match every host, or use \"*.example.com\" for all below one";
const WILDCARD: &str = "*.";

pub(super) fn read(spot: &Spot<'_>, report: &mut Report) -> Result<Vec<HostMatch>, Reported> {
    let spots = spot.filled_list(MAX_HOSTS, "hosts", FORM, report)?;
    entries::all_different(&spots, report, host)
}

fn host(spot: &Spot<'_>, report: &mut Report) -> Result<HostMatch, Reported> {
    let text = spot.filled_text(MAX_HOST_BYTES, HOST, report)?;
    let (wildcard, name) = match text.strip_prefix(WILDCARD) {
        Some(name) => (WILDCARD, name),
        // As cookies and other tools have it.
        None => text.strip_prefix('.').map_or(("", text), |name| (WILDCARD, name)),
    };
    match spelled(name) {
        Some(normal) if format!("{wildcard}{normal}") != text => {
            let remedy = Remedy::Write(format!("{wildcard}{normal}"));
            Err(spot.refuse(Problem::NotNormal { things: "hosts" }, remedy, report))
        }
        Some(normal) if wildcard.is_empty() => Ok(HostMatch::Exact(normal)),
        Some(normal) => Ok(HostMatch::Below(normal)),
        None => {
            let remedy = if text == "*" { EVERY } else { HOST };
            Err(spot.refuse(Problem::BadCharacters, Remedy::Do(remedy), report))
        }
    }
}

/// The name as it is compared; `None` where no request has such a host.
fn spelled(name: &str) -> Option<String> {
    if name.parse::<Ipv6Addr>().is_ok() {
        return Some(format!("[{}]", name.to_ascii_lowercase()));
    }
    let normal = String::from_utf8(normalize_host(name.as_bytes()).into_owned()).ok()?;
    let is_label_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_label = |label: &str| !label.is_empty() && label.bytes().all(is_label_byte);
    let is_address =
        || normal.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'))?.parse::<Ipv6Addr>().ok();
    // What the normal form takes for a user is none of a host, and what it takes for a port may be an address.
    (!name.contains(['@', '/']) && (normal.split('.').all(is_label) || is_address().is_some()))
        .then_some(normal)
}
