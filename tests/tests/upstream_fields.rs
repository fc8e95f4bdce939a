//! What upstream says of its own limits reaches the client, whatever Tidegate adds.

use harness::{Answer, Envoy, Upstream, plugin};
use serde_json::{Value, json};

/// A first request leaves 99, and all of it is back in a minute.
fn edge() -> Value {
    json!([{
        "name": "edge",
        "key": ["ip"],
        "limit": { "token_bucket": { "capacity": 100, "rate": "100/m" } },
        "sync": "local",
    }])
}

/// What the first request of an Envoy gets whose upstream answers with these fields.
async fn behind(headers: Value, status: u16, theirs: &[(&str, &[u8])]) -> Answer {
    let upstream = Upstream::start().await;
    upstream.answer_bytes("/", status, theirs);
    let mut configuration = plugin(edge());
    configuration["headers"] = headers;
    // Only policies that ask the companion need one.
    configuration.as_object_mut().expect("an object").remove("companion");
    let envoy = Envoy::builder().filter(&configuration).upstream(upstream.addr()).start().await;
    let answer = envoy.get("/").await;
    assert_eq!((answer.status, upstream.count()), (status, 1));
    envoy.assert_no_vm_crash().await;
    answer
}

/// The field's lines as bytes.
fn lines(answer: &Answer, name: &str) -> Vec<Vec<u8>> {
    answer.headers.get_all(name).iter().map(|value| value.as_bytes().to_vec()).collect()
}

/// Limit, remaining and reset.
fn triple(answer: &Answer, family: &str) -> [String; 3] {
    ["limit", "remaining", "reset"]
        .map(|part| answer.header(&format!("{family}-{part}")).unwrap_or_else(|| "absent".to_owned()))
}

#[tokio::test]
async fn lists_are_appended_to() {
    let theirs: [(&str, &[u8]); 2] =
        [("ratelimit-policy", br#""default";q=10;w=60"#), ("ratelimit", br#""default";r=5;t=10"#)];
    let answer = behind(json!(["draft-11"]), 200, &theirs).await;
    let (policy, state) = (answer.header("ratelimit-policy"), answer.header("ratelimit"));
    println!("{policy:?}, {state:?}");
    assert_eq!(policy.as_deref(), Some(r#""default";q=10;w=60, "edge";q=100;w=60"#));
    assert_eq!(state.as_deref(), Some(r#""default";r=5;t=10, "edge";r=99;t=60"#));
}

#[tokio::test]
async fn all_lines_of_a_field_are_kept_in_their_order() {
    let theirs: [(&str, &[u8]); 3] =
        [("ratelimit", br#""a";r=1"#), ("ratelimit", br#""b";r=2, "c";r=3"#), ("ratelimit", br#""d";r=4"#)];
    let answer = behind(json!(["draft-11"]), 200, &theirs).await;
    let state = answer.header("ratelimit").expect("the field is there");
    println!("{state}");
    let members: Vec<&str> = state.split(',').map(str::trim).collect();
    assert_eq!(members, [r#""a";r=1"#, r#""b";r=2"#, r#""c";r=3"#, r#""d";r=4"#, r#""edge";r=99;t=60"#]);
}

#[tokio::test]
async fn a_name_that_upstream_uses_is_not_used_twice() {
    let answer = behind(json!(["draft-11"]), 200, &[("ratelimit", br#""edge";r=5;t=10"#)]).await;
    let (policy, state) = (answer.header("ratelimit-policy"), answer.header("ratelimit"));
    println!("{policy:?}, {state:?}");
    assert_eq!(policy.as_deref(), Some(r#""edge-2";q=100;w=60"#), "the name joins the two fields");
    assert_eq!(state.as_deref(), Some(r#""edge";r=5;t=10, "edge-2";r=99;t=60"#));
}

#[tokio::test]
async fn bytes_that_are_no_text_are_kept() {
    let theirs: [(&str, &[u8]); 2] = [("ratelimit", b"\"\xff\xfe\";r=5"), ("x-ratelimit-remaining", b"\xff")];
    let answer = behind(json!(["draft-11", "x-ratelimit"]), 200, &theirs).await;
    let (state, remaining) = (lines(&answer, "ratelimit"), lines(&answer, "x-ratelimit-remaining"));
    println!("{:?}, {:?}", state[0].escape_ascii().to_string(), remaining[0].escape_ascii().to_string());
    assert_eq!(state, [b"\"\xff\xfe\";r=5, \"edge\";r=99;t=60".to_vec()]);
    assert_eq!(remaining, [b"\xff".to_vec()]);
}

#[tokio::test]
async fn an_empty_field_is_a_list_without_members() {
    let answer = behind(json!(["draft-11"]), 200, &[("ratelimit", b"")]).await;
    println!("{:?}", answer.header("ratelimit"));
    assert_eq!(lines(&answer, "ratelimit"), [br#""edge";r=99;t=60"#.to_vec()]);
}

#[tokio::test]
async fn the_triple_is_replaced_whole_and_only_where_ours_restricts_more() {
    for (family, headers) in [("ratelimit", json!(["draft-06"])), ("x-ratelimit", json!(["x-ratelimit"]))] {
        let names = ["limit", "remaining", "reset"].map(|part| format!("{family}-{part}"));
        let theirs = |values: [&'static str; 3]| -> Vec<(&str, &[u8])> {
            names.iter().map(String::as_str).zip(values.map(str::as_bytes)).collect()
        };
        let told = [
            (["1000", "500", "7"], ["100", "99", "60"]),
            (["1000", "99", "7"], ["1000", "99", "7"]),
            (["10", "5", "7"], ["10", "5", "7"]),
            (["10", "many", "7"], ["10", "many", "7"]),
        ];
        for (values, expected) in told {
            let answer = behind(headers.clone(), 200, &theirs(values)).await;
            println!("{family}: upstream {values:?}, client {:?}", triple(&answer, family));
            assert_eq!(triple(&answer, family), expected, "{family}: upstream {values:?}");
        }
    }
}

#[tokio::test]
async fn a_redirect_carries_upstreams_fields_alone() {
    let theirs: [(&str, &[u8]); 2] = [("location", b"/new"), ("ratelimit", br#""own";r=1;t=2"#)];
    for status in [301, 302, 307, 308] {
        let answer = behind(json!(["draft-11", "x-ratelimit"]), status, &theirs).await;
        println!("{status}: {:?}", answer.header("ratelimit"));
        assert_eq!(answer.header("ratelimit").as_deref(), Some(r#""own";r=1;t=2"#), "{status}");
        assert_eq!(answer.header("ratelimit-policy"), None, "{status}");
        assert_eq!(triple(&answer, "x-ratelimit"), ["absent"; 3], "{status}");
    }
}

#[tokio::test]
async fn what_names_another_place_and_does_not_send_there_carries_the_fields() {
    let created: [(&str, &[u8]); 1] = [("location", b"/new")];
    for (status, theirs) in [(201, &created[..]), (304, &[])] {
        let answer = behind(json!(["draft-11"]), status, theirs).await;
        assert_eq!((answer.status, answer.remaining("edge")), (status, Some(99)));
    }
}

#[tokio::test]
async fn a_redirect_of_envoys_own_carries_no_fields() {
    let route = json!({ "match": { "prefix": "/old" }, "redirect": { "path_redirect": "/new" } });
    let mut configuration = plugin(edge());
    configuration["headers"] = json!(["draft-11", "x-ratelimit"]);
    configuration.as_object_mut().expect("an object").remove("companion");
    let envoy = Envoy::builder().filter(&configuration).route(route).start().await;
    let (moved, next) = (envoy.get("/old").await, envoy.get("/new").await);
    let told =
        |answer: &Answer| answer.headers.keys().filter(|name| name.as_str().contains("ratelimit")).count();
    println!("{}: {} fields; then {:?}", moved.status, told(&moved), next.header("ratelimit"));
    assert_eq!((moved.status, told(&moved)), (301, 0));
    assert_eq!(next.remaining("edge"), Some(98), "it was counted all the same");
}

#[tokio::test]
async fn what_follows_an_empty_line_is_kept() {
    let theirs: [(&str, &[u8]); 2] = [("ratelimit", b""), ("ratelimit", br#""a";r=1"#)];
    let answer = behind(json!(["draft-11"]), 200, &theirs).await;
    println!("{:?}", answer.header("ratelimit"));
    assert_eq!(answer.remaining("edge"), Some(99));
    assert!(answer.header("ratelimit").is_some_and(|field| field.contains(r#""a";r=1"#)));
}
