//! Response headers, and answers of the filter's own.

use limiter::answer::LocalReply;
use limiter::fields::{self, ResponseHeaders};
use proxy_wasm::types::Action;

use crate::host::{self, HostError, Map};

/// The headers of the effective context's response.
pub(crate) struct Headers;

impl ResponseHeaders for Headers {
    fn get(&mut self, name: &'static str) -> Option<Vec<u8>> {
        // The common case, a header that is absent, is cheap this way; a property never is.
        let first = host::header(Map::Response, name)?;
        Some(host::property(&format!("response\0headers\0{name}")).unwrap_or(first))
    }

    fn set(&mut self, name: &'static str, value: &[u8]) {
        // A response that is gone needs no headers.
        let _ = host::set_header(Map::Response, name, value);
    }

    fn remove(&mut self, name: &'static str) {
        let _ = host::remove_header(Map::Response, name);
    }
}

/// Whether the effective context's response sends the client elsewhere. One that names no other place does not;
/// so the status, which costs several times what an absent header does, is read only beside such a name.
pub(crate) fn is_redirect() -> bool {
    if host::header(Map::Response, "location").is_none() {
        return false;
    }
    let status = host::header(Map::Response, ":status").unwrap_or_default();
    core::str::from_utf8(&status).ok().and_then(|status| status.parse().ok()).is_some_and(fields::is_redirect)
}

/// Answers the effective context's request.
pub(crate) fn send(reply: &LocalReply<'_>) -> Result<Action, HostError> {
    let headers: Vec<(&str, &str)> =
        reply.headers.iter().map(|(name, value)| (*name, value.as_ref())).collect();
    host::send_local_response(reply.status, &reply.details, &headers, &reply.body, reply.grpc_status)?;
    Ok(Action::Pause)
}
