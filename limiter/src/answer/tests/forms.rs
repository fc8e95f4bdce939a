//! The forms of answers: bodies, types and headers, over HTTP and gRPC.

use super::*;

const BODIES: [fn() -> Body; 4] =
    [|| Body::Json, || Body::Problem, || Body::Text("Too fast.\n".to_owned()), || Body::None];

#[test]
fn a_refusal_over_http_is_429_with_json_unless_said_otherwise() {
    assert_eq!(Response::default(), UNSAID);
    let reply = refused(&[violated("per key", Some(44_000_001))], &UNSAID, Protocol::Http);
    assert_eq!(
        reply,
        LocalReply {
            status: 429,
            headers: vec![("retry-after", "45".into()), ("content-type", "application/json".into())],
            body: concat!(
                r#"{"error":"rate_limit_exceeded","message":"too many requests for policy \"per key\"; "#,
                r#"retry after 45 s","policy":"per key","retry_after":45}"#
            )
            .into(),
            grpc_status: None,
            details: "tidegate_denied{per_key}".to_owned(),
        }
    );
}

#[test]
fn a_problem_names_all_violated_policies() {
    let response = response(Body::Problem, &[]);
    let items = [violated("a\"b\\c", Some(1)), passed("fine"), violated("day", Some(3_000_001))];
    let reply = refused(&items, &response, Protocol::Http);
    assert_eq!((reply.status, header(&reply, "content-type")), (403, vec!["application/problem+json"]));
    let expected = serde_json::json!({
        "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title": "Request cannot be satisfied as assigned quota has been exceeded",
        "status": 403,
        "detail": "too many requests for policy \"day\"; retry after 4 s",
        "violated-policies": ["a\"b\\c", "day"],
        "policy": "day",
        "retry_after": 4,
    });
    assert_eq!(json(&reply), expected);
    let blocked = refused(&[closed("a", Closed::Blocked)], &response, Protocol::Http);
    assert_eq!(json(&blocked)["violated-policies"], serde_json::json!(["a"]));
    assert_eq!(json(&blocked).get("retry_after"), None);
}

#[test]
fn a_text_is_told_as_it_is_and_with_the_type_that_its_headers_say() {
    let text = "Zu schnell: \u{201e}warten\u{201c} \"\\\n";
    let plain = response(Body::Text(text.to_owned()), &[]);
    let items = [violated("a", Some(1))];
    let reply = refused(&items, &plain, Protocol::Http);
    assert_eq!(
        (reply.body.as_ref(), header(&reply, "content-type")),
        (text, vec!["text/plain; charset=utf-8"])
    );
    let typed = response(Body::Text("<p>slower".to_owned()), &[("content-type", "text/html"), ("x-a", "b")]);
    let reply = refused(&items, &typed, Protocol::Http);
    assert_eq!(header(&reply, "content-type"), ["text/html"]);
    assert_eq!((header(&reply, "x-a"), header(&reply, "retry-after")), (vec!["b"], vec!["1"]));
    // The proxy has set gRPC's own type, to which another would be added.
    let reply = refused(&items, &typed, Protocol::Grpc);
    assert_eq!((header(&reply, "content-type"), header(&reply, "x-a")), (vec![], vec!["b"]));
}

#[test]
fn an_answer_without_a_body_has_no_type() {
    let response = response(Body::None, &[("x-a", "b")]);
    let reply = refused(&[violated("a", Some(1))], &response, Protocol::Http);
    assert_eq!(reply.headers, [("retry-after", "1".into()), ("x-a", "b".into())]);
    assert_eq!(reply.body, "");
}

#[test]
fn an_outage_has_its_policys_body_and_headers_but_not_its_status() {
    for body in BODIES {
        let response = response(body(), &[("x-a", "b")]);
        let refused = refused(&[violated("orders", Some(5_000_000))], &response, Protocol::Http);
        let reply = orders(Duration::from_secs(5)).reply(&response, Protocol::Http);
        assert_eq!((refused.status, reply.status), (403, 503));
        assert_eq!(reply.headers, refused.headers);
        if response.body == Body::Problem {
            let expected = serde_json::json!({
                "type": "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
                "title": "Request cannot be satisfied due to temporary server capacity constraints",
                "status": 503,
                "detail": "policy \"orders\" cannot be checked now; retry after 5 s",
                "violated-policies": ["orders"],
                "policy": "orders",
                "retry_after": 5,
            });
            assert_eq!(json(&reply), expected);
        } else if response.body != Body::Json {
            assert_eq!(reply.body, refused.body);
        }
    }
}

#[test]
fn grpc_keeps_its_own_form_whatever_the_policy_says() {
    for body in BODIES {
        let response = response(body(), &[("x-a", "b")]);
        let reply = refused(&[violated("a", Some(1_500_000))], &response, Protocol::Grpc);
        assert_eq!(
            (reply.grpc_status, reply.body.as_ref()),
            (Some(8), r#"too many requests for policy "a"; retry after 2 s"#)
        );
        let headers = [("retry-after", "2"), ("grpc-retry-pushback-ms", "1500"), ("x-a", "b")];
        assert_eq!(reply.headers, headers.map(|(name, value)| (name, value.into())));
    }
}
