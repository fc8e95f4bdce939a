//! What the companion answers over HTTP: routes, statuses and bodies. How connections are held is in
//! [`crate::server`].

mod answer;
mod failures;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, Request};
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::{get, post};
use limiter::wire::{MARKER_HEADER, MARKER_VALUE, MAX_BODY_BYTES, TAKE_PATH, TakeRequest, Taken};

use crate::store::{Store, StoreError};
use crate::take;
use answer::Problem;
use failures::Failures;

/// How long a caller may take to send a request's body.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);

struct App {
    store: Store,
    failures: Failures,
}

/// The routes over a store.
pub fn routes(store: Store) -> Router {
    Router::new()
        .route(TAKE_PATH, post(take))
        .route("/healthz", get(async || answer::json(200, &Status { status: "alive" })))
        .route("/readyz", get(ready))
        .fallback(async || Problem::NotFound.response())
        .method_not_allowed_fallback(async || Problem::MethodNotAllowed.response())
        .layer(map_response(mark))
        .with_state(Arc::new(App { store, failures: Failures::default() }))
}

#[derive(serde::Serialize)]
struct Status {
    status: &'static str,
}

/// Marks every reply as the companion's own, so that a proxy's 503 and 504 are not taken for one.
async fn mark(mut response: Response) -> Response {
    let name = HeaderName::from_static(MARKER_HEADER);
    response.headers_mut().insert(name, HeaderValue::from_static(MARKER_VALUE));
    response
}

async fn take(State(app): State<Arc<App>>, request: Request<Body>) -> Response {
    let body = match read_body(request.into_body()).await {
        Ok(body) => body,
        Err(problem) => return problem.response(),
    };
    let request = match take::read(&body) {
        Ok(request) => request,
        Err(error) => return Problem::Request(error).response(),
    };
    let answer = app.store.run(take::call(&request)).await;
    match answer.and_then(|answer| take::reply(&request, &answer)) {
        Ok(reply) => {
            note_unreadable(&app.failures, &request, &reply.takes);
            answer::json(200, &reply)
        }
        Err(error) => {
            app.failures.note(error.kind(), &error);
            Problem::Store(&error).response()
        }
    }
}

async fn read_body(body: Body) -> Result<Bytes, Problem<'static>> {
    match tokio::time::timeout(BODY_TIMEOUT, axum::body::to_bytes(body, MAX_BODY_BYTES)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_too_large(&error) => Err(Problem::BodyTooLarge),
        Ok(Err(_)) => Err(Problem::BodyBroken),
        Err(_) => Err(Problem::BodyLate),
    }
}

fn is_too_large(error: &axum::Error) -> bool {
    std::error::Error::source(error)
        .is_some_and(<dyn std::error::Error>::is::<http_body_util::LengthLimitError>)
}

/// Somebody has written to our keys, and only the name of one helps to find out who.
fn note_unreadable(failures: &Failures, request: &TakeRequest, takes: &[Taken]) {
    let failed = request.takes.iter().zip(takes).find(|(_, taken)| matches!(taken, Taken::Failed { .. }));
    if let Some((take, _)) = failed {
        let keys: Vec<_> = take.charges.iter().map(|charge| charge.key.as_str()).collect();
        failures.note("unreadable_state", &keys.join(" "));
    }
}

async fn ready(State(app): State<Arc<App>>) -> Response {
    match app.store.ready().await {
        Ok(()) => answer::json(200, &Status { status: "ready" }),
        Err(error) => not_ready(&error),
    }
}

/// This is for operators: it tells them why.
fn not_ready(error: &StoreError) -> Response {
    Problem::NotReady { reason: error.to_string() }.response()
}
