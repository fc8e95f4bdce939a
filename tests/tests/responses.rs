//! Answers as a policy's `response` says them, on the wire: forms, statuses and headers, of refusals and failures,
//! and what access logs say of each reason.

use std::time::Duration;

use harness::{Answer, CompanionAt, Envoy, plugin, refusing_addr, until};
use serde_json::{Value, json};

/// A policy for the path of its name that refuses every request.
fn blocked(name: &str, response: &Value) -> Value {
    let path = format!("/{name}");
    json!({ "name": name, "match": { "path": { "exact": path } }, "limit": "blocked", "response": response })
}

/// One that answers 503 where nobody can be asked.
fn closed(name: &str, response: &Value) -> Value {
    json!({
        "name": name,
        "match": { "path": { "exact": format!("/{name}") } },
        "key": ["ip"],
        "limit": { "token_bucket": { "capacity": 1, "rate": "1/m" } },
        "sync": "exact",
        "on_failure": { "closed": { "retry_after": "5s" } },
        "response": response,
    })
}

const TEXT: &str = "Too fast \u{2014} \"wait\".\n";

/// A response with this body, and one header.
fn response(body: &Value) -> Value {
    json!({ "status": 403, "body": body, "headers": { "X-Reason": "rate limit" } })
}

fn html() -> Value {
    json!({ "body": { "text": "<p>Slower" }, "headers": { "content-type": "text/html" } })
}

/// Of every form, by the names of their policies.
fn responses() -> [(&'static str, Value); 5] {
    [
        ("json", response(&json!("json"))),
        ("problem", response(&json!("problem"))),
        ("text", response(&json!({ "text": TEXT }))),
        ("none", response(&json!("none"))),
        ("html", html()),
    ]
}

/// Content type, header of the policy's own, and Retry-After; a dash where there is none.
fn told(answer: &Answer) -> [String; 3] {
    ["content-type", "x-reason", "retry-after"].map(|name| header(answer, name))
}

fn header(answer: &Answer, name: &str) -> String {
    answer.header(name).unwrap_or_else(|| "-".to_owned())
}

#[tokio::test]
async fn a_refusal_has_the_form_that_its_policy_says() {
    let policies = responses().iter().map(|(name, response)| blocked(name, response)).collect();
    let envoy = Envoy::builder().filter(&plugin(policies)).companion(CompanionAt::NoEndpoint).start().await;
    for (name, status, headers) in [
        ("json", 403, ["application/json", "rate limit", "-"]),
        ("problem", 403, ["application/problem+json", "rate limit", "-"]),
        ("text", 403, ["text/plain; charset=utf-8", "rate limit", "-"]),
        ("none", 403, ["-", "rate limit", "-"]),
        ("html", 429, ["text/html", "-", "-"]),
    ] {
        let answer = envoy.get(&format!("/{name}")).await;
        println!("{name}: {} {:?} {:?}", answer.status, told(&answer), answer.text());
        assert_eq!((answer.status, told(&answer)), (status, headers.map(str::to_owned)), "{name}");
        assert_eq!(answer.remaining(name), Some(0), "{name}: the fields are told besides");
        let message = format!("policy \"{name}\" lets no request pass");
        match name {
            "json" => {
                let expected = json!({ "error": "rate_limit_exceeded", "message": message, "policy": name });
                assert_eq!(answer.json(), expected);
            }
            "problem" => {
                let expected = json!({
                    "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
                    "title": "Request cannot be satisfied as assigned quota has been exceeded",
                    "status": 403,
                    "detail": message,
                    "violated-policies": [name],
                    "policy": name,
                });
                assert_eq!(answer.json(), expected);
            }
            "text" => assert_eq!(answer.text(), TEXT),
            "html" => assert_eq!(answer.text(), "<p>Slower"),
            _ => assert_eq!(answer.text(), "", "{name}"),
        }
    }
}

#[tokio::test]
async fn a_failure_has_the_form_that_its_policy_says_but_is_503() {
    let policies = responses().iter().map(|(name, response)| closed(name, response)).collect();
    let envoy = Envoy::builder().filter(&plugin(policies)).companion(refusing_addr()).start().await;
    for (name, content_type) in [
        ("json", "application/json"),
        ("problem", "application/problem+json"),
        ("text", "text/plain; charset=utf-8"),
        ("none", "-"),
        ("html", "text/html"),
    ] {
        let answer = envoy.get(&format!("/{name}")).await;
        println!("{name}: {} {:?} {:?}", answer.status, told(&answer), answer.text());
        let [seen, _, retry_after] = told(&answer);
        assert_eq!((answer.status, &*seen, &*retry_after), (503, content_type, "5"), "{name}");
        if name == "problem" {
            let body = answer.json();
            let kind = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";
            assert_eq!((&body["type"], &body["status"]), (&json!(kind), &json!(503)));
            assert_eq!(body["violated-policies"], json!(["problem"]));
        }
    }
}

#[tokio::test]
async fn grpc_keeps_its_form_and_has_the_headers() {
    let mut text = html();
    text["headers"]["x-reason"] = json!("rate limit");
    let policies = json!([blocked("text", &text), closed("closed", &response(&json!("problem")))]);
    let envoy = Envoy::builder().filter(&plugin(policies)).companion(refusing_addr()).start().await;
    for (path, status) in [("/text", "8"), ("/closed", "14")] {
        let grpc = [("content-type", "application/grpc"), ("te", "trailers")];
        let answer = envoy.send("POST", path, &grpc).await;
        println!("{path}: {} {:?}", answer.status, answer.headers);
        assert_eq!((answer.status, &*header(&answer, "grpc-status")), (200, status), "{path}");
        assert_eq!(header(&answer, "content-type"), "application/grpc", "{path}");
        assert_eq!(header(&answer, "x-reason"), "rate limit", "{path}");
        assert_eq!(answer.text(), "", "{path}");
    }
}

#[tokio::test]
async fn the_policy_that_binds_says_how_and_the_problem_names_all_that_refuse() {
    let one = |name: &str, rate: &str, response: &Value| {
        json!({
            "name": name, "key": ["ip"], "sync": "local", "response": response,
            "limit": { "token_bucket": { "capacity": 1, "rate": rate } },
        })
    };
    let ample = json!({
        "name": "ample", "key": ["ip"], "sync": "local",
        "limit": { "token_bucket": { "capacity": 1000, "rate": "1/s" } },
    });
    let mut configuration = plugin(json!([
        one("minute", "1/m", &json!({ "status": 420 })),
        ample,
        one("a\"day\\", "1/d", &json!({ "status": 403, "body": "problem" })),
    ]));
    // For those that say nothing themselves.
    configuration["response"] = json!({ "status": 499 });
    let envoy = Envoy::builder().filter(&configuration).companion(CompanionAt::NoEndpoint).start().await;
    // Both are charged or none is, so that the second request finds both empty.
    assert_eq!(envoy.get("/").await.status, 200);
    let answer = envoy.get("/").await;
    println!("{} {:?} {}", answer.status, told(&answer), answer.text());
    assert_eq!(answer.status, 403);
    let body = answer.json();
    assert_eq!(body["violated-policies"], json!(["minute", "a\"day\\"]));
    assert_eq!(body["policy"], "a\"day\\");
    assert_eq!(header(&answer, "retry-after"), body["retry_after"].to_string());
}

#[tokio::test]
async fn the_access_log_tells_why() {
    let costly = json!({
        "name": "costly",
        "match": { "path": { "exact": "/costly" } },
        "key": ["ip"],
        "limit": { "token_bucket": { "capacity": 10, "rate": "10/m" } },
        "cost": { "header": "x-cost", "max": 20 },
        "sync": "local",
    });
    let mut known = costly.clone();
    known["name"] = json!("known");
    known["match"]["path"]["exact"] = json!("/known");
    known["key"] = json!([{ "header": "x-api-key" }]);
    known["on_missing"] = json!("deny");
    let policies = json!([costly, known, blocked("blocked", &json!({ "status": 403 }))]);
    let envoy = Envoy::builder().filter(&plugin(policies)).companion(CompanionAt::NoEndpoint).start().await;

    // Vector 9: what never fits is told neither a time nor that anything is used up.
    let answer = envoy.send("GET", "/costly", &[("x-cost", "20")]).await;
    println!("{} {:?} {}", answer.status, answer.headers, answer.text());
    assert_eq!((answer.status, answer.header("retry-after")), (429, None));
    assert_eq!(header(&answer, "ratelimit"), r#""costly";r=10"#);
    assert_eq!(answer.json()["message"], r#"the request costs more than policy "costly" ever allows"#);
    let grpc = [("content-type", "application/grpc"), ("te", "trailers"), ("x-cost", "20")];
    let answer = envoy.send("POST", "/costly", &grpc).await;
    assert_eq!(header(&answer, "grpc-retry-pushback-ms"), "-1");

    let answer = envoy.get("/known").await;
    println!("{} {:?} {}", answer.status, answer.headers, answer.text());
    assert_eq!((answer.status, answer.header("retry-after")), (429, None));
    let message = r#"the request does not say who it is from, which policy "known" asks for"#;
    assert_eq!(answer.json()["message"], message);
    assert_eq!(envoy.send("GET", "/known", &[("x-api-key", "42")]).await.status, 200);
    assert_eq!(envoy.get("/blocked").await.status, 403);

    let log = until("the access log", Duration::from_secs(10), async || {
        Some(envoy.access_log()).filter(|log| log.len() >= 5)
    })
    .await;
    println!("{log:#?}");
    let expected = [
        "429 tidegate_too_costly{costly}",
        "200 tidegate_too_costly{costly}",
        "429 tidegate_no_identity{known}",
        "200 direct_response",
        "403 tidegate_blocked{blocked}",
    ];
    assert_eq!(log, expected);
}
