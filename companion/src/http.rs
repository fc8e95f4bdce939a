//! What the companion answers over HTTP: routes, statuses and bodies. How connections are held is in
//! [`crate::server`].

mod answer;
mod bodies;
mod failures;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, Request};
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::{get, post};
use limiter::wire::{MARKER_HEADER, MARKER_VALUE, TAKE_PATH, TakeRequest, Taken};

use crate::store::{Store, StoreError};
use crate::take;
use answer::Problem;
use bodies::Bodies;
use failures::Failures;

struct App {
    store: Store,
    bodies: Bodies,
    failures: Failures,
}

/// The routes over a store.
pub fn routes(store: Store) -> Router {
    Router::new()
        .route(TAKE_PATH, post(take))
        .route("/healthz", get(async || answer::json(200, &ALIVE)))
        .route("/readyz", get(ready))
        .fallback(async || Problem::NotFound.response())
        .method_not_allowed_fallback(async || Problem::MethodNotAllowed.response())
        .layer(map_response(mark))
        .with_state(Arc::new(App { store, bodies: Bodies::default(), failures: Failures::default() }))
}

#[derive(serde::Serialize)]
struct Status {
    status: &'static str,
    /// Only where there is something to say about the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<&'static str>,
}

const ALIVE: Status = Status { status: "alive", store: None };

/// Marks every reply as the companion's own, so that a proxy's 503 and 504 are not taken for one.
async fn mark(mut response: Response) -> Response {
    let name = HeaderName::from_static(MARKER_HEADER);
    response.headers_mut().insert(name, HeaderValue::from_static(MARKER_VALUE));
    response
}

async fn take(State(app): State<Arc<App>>, request: Request<Body>) -> Response {
    let body = match app.bodies.read(request.into_body()).await {
        Ok(body) => body,
        Err(problem) => {
            if matches!(problem, Problem::Overloaded) {
                app.failures.note("overloaded", &"too many bytes of bodies under way");
            }
            return problem.response();
        }
    };
    let request = match take::read(body.bytes()) {
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

/// Somebody has written to our keys. The policies tell which; whose keys they are is no matter for a log.
fn note_unreadable(failures: &Failures, request: &TakeRequest, takes: &[Taken]) {
    let failed = request.takes.iter().zip(takes).find(|(_, taken)| matches!(taken, Taken::Failed { .. }));
    if let Some((take, _)) = failed {
        let policies: Vec<_> = take.charges.iter().map(|charge| take::policy_of(&charge.key)).collect();
        failures.note("unreadable_state", &format!("policies: {}", policies.join(" ")));
    }
}

async fn ready(State(app): State<Arc<App>>) -> Response {
    match app.store.ready().await {
        // A full store still decides for all that it knows.
        Ok(()) => {
            let store = app.store.is_full().then_some("full");
            answer::json(200, &Status { status: "ready", store })
        }
        Err(error) => not_ready(&error),
    }
}

/// This is for operators: it tells them why.
fn not_ready(error: &StoreError) -> Response {
    Problem::NotReady { reason: format!("{}: {error}", error.kind()) }.response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_state_is_logged_with_its_policy_and_without_whose_it_is() {
        let charge = |key: &str| {
            let limit = r#"{"token_bucket":{"capacity":1,"rate":"1/s"}}"#;
            format!(r#"{{"key":"{key}","limit":{limit}}}"#)
        };
        let charges = [charge("rl:{SECRET}:orders:SCOPE"), charge("rl:{SECRET}:other")].join(",");
        let request = take::read(format!(r#"{{"takes":[{{"charges":[{charges}]}}]}}"#).as_bytes()).unwrap();
        let lines = crate::log::lines_of(|| {
            let failed = Taken::Failed { error: String::new() };
            note_unreadable(&Failures::default(), &request, &[failed]);
        });
        assert!(lines.contains("orders") && lines.contains("other"), "{lines}");
        assert!(!lines.contains("SECRET") && !lines.contains("SCOPE"), "{lines}");
    }
}
