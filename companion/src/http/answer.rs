//! Replies: JSON in all cases, and what went wrong in words that are meant for callers.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use limiter::wire::MAX_BODY_BYTES;
use serde::Serialize;

use crate::store::StoreError;
use crate::take::RequestError;

/// Why a request gets no decision.
pub(super) enum Problem<'a> {
    /// It is not a request.
    Request(RequestError),
    /// It is too large.
    BodyTooLarge,
    /// It ended before its end.
    BodyBroken,
    /// It did not come in time.
    BodyLate,
    /// As many bodies are under way as the companion has memory for.
    Overloaded,
    /// The store could not decide.
    Store(&'a StoreError),
    /// The store would not decide.
    NotReady {
        /// Why, for operators.
        reason: String,
    },
    /// There is nothing at this path.
    NotFound,
    /// There is, for another method.
    MethodNotAllowed,
}

#[derive(Serialize)]
struct Written<'a> {
    error: &'a str,
    message: &'a str,
}

impl Problem<'_> {
    pub(super) fn response(&self) -> Response {
        let too_large;
        let (status, code, message) = match self {
            Self::Request(error) => return write(400, error.code(), &error.to_string()),
            Self::BodyTooLarge => {
                too_large = format!("the body is too large; use {MAX_BODY_BYTES} bytes or less");
                (413, "body_too_large", too_large.as_str())
            }
            Self::BodyBroken => (400, "body_incomplete", "the body ended before its end"),
            Self::BodyLate => (408, "body_late", "the body did not come in time"),
            Self::Overloaded => {
                (503, "overloaded", "too many bytes of requests are under way; nothing was charged")
            }
            Self::Store(StoreError::Overloaded) => {
                (503, "overloaded", "too many takes are under way; nothing was charged")
            }
            Self::Store(StoreError::Timeout { .. }) => {
                (503, "store_unavailable", "the store did not answer in time")
            }
            Self::Store(_) => (503, "store_unavailable", "the store cannot decide now"),
            Self::NotReady { reason } => (503, "not_ready", reason.as_str()),
            Self::NotFound => (404, "not_found", "there are /v1/take, /healthz and /readyz"),
            Self::MethodNotAllowed => (405, "method_not_allowed", "see the allow header"),
        };
        write(status, code, message)
    }
}

fn write(status: u16, error: &str, message: &str) -> Response {
    json(status, &Written { error, message })
}

/// A reply with a JSON body.
pub(super) fn json(status: u16, body: &impl Serialize) -> Response {
    // What is replied has string keys only, so that it always has a JSON form.
    let mut response = Response::new(Body::from(serde_json::to_vec(body).unwrap_or_default()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
