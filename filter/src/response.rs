//! Response headers, and answers of the filter's own.

use limiter::answer::LocalReply;
use limiter::fields::ResponseHeaders;
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

/// The status of the effective context's response.
pub(crate) fn status() -> Option<u16> {
    let status = host::header(Map::Response, ":status")?;
    core::str::from_utf8(&status).ok()?.parse().ok()
}

/// Answers the effective context's request.
pub(crate) fn send(reply: &LocalReply) -> Result<Action, HostError> {
    let headers: Vec<(&str, &str)> =
        reply.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    host::send_local_response(reply.status, &reply.details, &headers, &reply.body, reply.grpc_status)?;
    Ok(Action::Pause)
}
