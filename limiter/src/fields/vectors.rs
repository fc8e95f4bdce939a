//! The vectors that specify the fields' values, under their numbers.

use super::samples::{Recorded, asked, item};
use super::*;
use crate::answer::{LocalReply, Protocol, Refusal, Unavailable};
use crate::policy::{Body, Response};

const ALL: [Family; 3] = [Family::Draft11, Family::Draft06, Family::XRateLimit { reset: Reset::Epoch }];

/// Monday, 30 November 2026, 12:00:00.25 GMT.
const NOW: Duration = Duration::from_millis(1_796_040_000_250);

/// What a client sees of one decision.
struct Seen {
    policy: Option<String>,
    state: Option<String>,
    /// Limit, remaining and delta seconds, as draft 06 has them.
    triple: Option<String>,
    epoch: Option<u64>,
    retry_after: Option<u64>,
    pushback: Option<String>,
    /// The policies that a problem names.
    violated: Vec<String>,
}

static PROBLEM: Response = Response { status: 429, body: Body::Problem, headers: Vec::new() };

fn header(reply: &LocalReply, name: &str) -> Option<String> {
    reply.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone().into_owned())
}

/// The type of a problem without its beginning, and the policies that it names.
fn problem(reply: &LocalReply) -> (String, Vec<String>) {
    assert_eq!(header(reply, "content-type").as_deref(), Some("application/problem+json"));
    let body: serde_json::Value = serde_json::from_str(&reply.body).unwrap();
    assert_eq!(body["status"], reply.status);
    assert_eq!(body.get("retry_after").map(ToString::to_string), header(reply, "retry-after"));
    let kind = body["type"].as_str().and_then(|kind| kind.split_once("http-problem-types#")).unwrap().1;
    let names = body["violated-policies"].as_array().unwrap().iter();
    (kind.to_owned(), names.map(|name| name.as_str().unwrap().to_owned()).collect())
}

fn see(items: &[Item<'_>], verdict: Verdict) -> Seen {
    let write_families = |families: &[Family], now| {
        let mut headers = Recorded::default();
        write(families, items, verdict, now, &mut headers);
        headers
    };
    let all = write_families(&ALL, Some(NOW));
    let delta = write_families(&[Family::XRateLimit { reset: Reset::Delta }], None);
    assert_eq!(all.triple("ratelimit"), delta.triple("x-ratelimit"), "the older families agree");
    let refusal = Refusal::of(items).filter(|_| verdict == Verdict::Refuse);
    let replied = |protocol| Some(refusal.clone()?.reply(&PROBLEM, protocol));
    let (http, grpc) = (replied(Protocol::Http), replied(Protocol::Grpc));
    assert!(http.as_ref().is_none_or(|reply| reply.status == 429));
    assert!(grpc.as_ref().is_none_or(|reply| reply.grpc_status == Some(8)));
    let told = |name| {
        let told = http.as_ref().and_then(|reply| header(reply, name));
        assert_eq!(told, grpc.as_ref().and_then(|reply| header(reply, name)), "one wait for both protocols");
        told
    };
    let problem = http.as_ref().map(problem);
    assert!(problem.as_ref().is_none_or(|(kind, _)| kind == "quota-exceeded"));
    Seen {
        policy: all.text("ratelimit-policy").map(str::to_owned),
        state: all.text("ratelimit").map(str::to_owned),
        triple: all.triple("ratelimit"),
        epoch: all.text("x-ratelimit-reset").map(|reset| reset.parse().unwrap()),
        retry_after: told("retry-after").map(|seconds| seconds.parse().unwrap()),
        pushback: grpc.as_ref().and_then(|reply| header(reply, "grpc-retry-pushback-ms")),
        violated: problem.map_or_else(Vec::new, |(_, violated)| violated),
    }
}

const fn passed(remaining: u64, reset_us: u64) -> State {
    State::Passed { remaining, reset_us }
}

const fn violated(remaining: u64, wait_us: u64) -> State {
    State::Violated { remaining, wait_us: Some(wait_us) }
}

#[track_caller]
fn assert_fields(seen: &Seen, policy: &str, state: &str, triple: &str, epoch: Option<u64>) {
    assert_eq!(seen.policy.as_deref(), Some(policy));
    assert_eq!(seen.state.as_deref(), Some(state));
    assert_eq!(seen.triple.as_deref(), Some(triple));
    assert_eq!(seen.epoch, epoch);
}

#[track_caller]
fn assert_refused(seen: &Seen, violated: &[&str], retry_after: Option<u64>, pushback: &str) {
    assert_eq!(seen.violated, violated);
    assert_eq!(seen.retry_after, retry_after);
    assert_eq!(seen.pushback.as_deref(), Some(pushback));
}

#[test]
fn vector_01_first_request_of_a_fixed_window() {
    let seen = see(&[item("default", 100, 60, passed(99, 59_200_000))], Verdict::Admit);
    let (policy, state) = (r#""default";q=100;w=60"#, r#""default";r=99;t=60"#);
    assert_fields(&seen, policy, state, "100/99/60", Some(1_796_040_060));
}

#[test]
fn vector_02_last_unit_is_admitted() {
    let seen = see(&[item("default", 100, 60, passed(0, 11_600_000))], Verdict::Admit);
    let (policy, state) = (r#""default";q=100;w=60"#, r#""default";r=0;t=12"#);
    assert_fields(&seen, policy, state, "100/0/12", Some(1_796_040_012));
    assert_eq!(seen.retry_after, None);
}

#[test]
fn vector_03_the_next_request_is_refused() {
    let seen = see(&[item("default", 100, 60, violated(0, 11_600_000))], Verdict::Refuse);
    let (policy, state) = (r#""default";q=100;w=60"#, r#""default";r=0;t=12"#);
    assert_fields(&seen, policy, state, "100/0/12", Some(1_796_040_012));
    assert_refused(&seen, &["default"], Some(12), "11600");
}

#[test]
fn vector_04_whole_seconds_are_not_rounded_up() {
    let seen = see(&[item("default", 100, 60, violated(0, 5_000_000))], Verdict::Refuse);
    let (policy, state) = (r#""default";q=100;w=60"#, r#""default";r=0;t=5"#);
    assert_fields(&seen, policy, state, "100/0/5", Some(1_796_040_006));
    assert_refused(&seen, &["default"], Some(5), "5000");
}

#[test]
fn vector_05_an_hourly_bucket_is_spread_over_its_window() {
    let (item, verdict) = asked("hourly", 100, "100/h", 0, 0, 1);
    let seen = see(&[item], verdict);
    let (policy, state) = (r#""hourly";q=100;w=3600"#, r#""hourly";r=99;t=3564"#);
    assert_fields(&seen, policy, state, "100/99/3564", Some(1_796_043_565));
}

#[test]
fn vector_06_a_part_of_a_unit_shortens_the_wait() {
    let (item, verdict) = asked("hourly", 100, "100/h", 100, 25_600_000, 1);
    let seen = see(&[item], verdict);
    let (policy, state) = (r#""hourly";q=100;w=3600"#, r#""hourly";r=0;t=11"#);
    assert_fields(&seen, policy, state, "100/0/11", Some(1_796_040_011));
    assert_refused(&seen, &["hourly"], Some(11), "10400");
}

#[test]
fn vector_07_a_window_is_rounded_up_to_seconds() {
    let (item, verdict) = asked("api", 10, "3/s", 0, 0, 1);
    let seen = see(&[item], verdict);
    assert_fields(&seen, r#""api";q=10;w=4"#, r#""api";r=9;t=4"#, "10/9/4", Some(1_796_040_004));
}

#[test]
fn vector_08_a_cost_above_what_is_left_is_refused_with_what_is_left() {
    let (item, verdict) = asked("ops", 10, "10/m", 7, 0, 5);
    let seen = see(&[item], verdict);
    assert_fields(&seen, r#""ops";q=10;w=60"#, r#""ops";r=3;t=12"#, "10/3/12", Some(1_796_040_013));
    assert_refused(&seen, &["ops"], Some(12), "12000");
}

#[test]
fn vector_09_a_cost_above_capacity_gets_no_time() {
    let (item, verdict) = asked("ops", 10, "10/m", 0, 0, 20);
    let seen = see(&[item], verdict);
    assert_fields(&seen, r#""ops";q=10;w=60"#, r#""ops";r=10"#, "10/10/-", None);
    assert_refused(&seen, &["ops"], None, "-1");
}

#[test]
fn vector_10_a_refusal_tells_of_the_violated_policy_only() {
    let items =
        [item("burst", 10, 1, violated(0, 400_000)), item("hour", 1_000, 3_600, passed(500, 1_800_000_000))];
    let seen = see(&items, Verdict::Refuse);
    let policy = r#""burst";q=10;w=1, "hour";q=1000;w=3600"#;
    assert_fields(&seen, policy, r#""burst";r=0;t=1"#, "10/0/1", Some(1_796_040_001));
    assert_refused(&seen, &["burst"], Some(1), "400");
    assert_eq!(Refusal::of(&items).unwrap().policy, "burst");
}

#[test]
fn vector_11_the_longest_of_several_waits_counts() {
    let items = [
        item("minute", 10, 60, violated(0, 30_000_000)),
        item("day", 1_000, 86_400, violated(0, 4_000_100_000)),
    ];
    let seen = see(&items, Verdict::Refuse);
    let policy = r#""minute";q=10;w=60, "day";q=1000;w=86400"#;
    let state = r#""minute";r=0;t=30, "day";r=0;t=4001"#;
    assert_fields(&seen, policy, state, "1000/0/4001", Some(1_796_044_001));
    assert_refused(&seen, &["minute", "day"], Some(4001), "4000100");
    assert_eq!(Refusal::of(&items).unwrap().policy, "day");
}

#[test]
fn vector_12_integers_are_clamped_to_fifteen_digits() {
    let seen = see(&[item("big", u64::MAX, 1, passed(u64::MAX, 1_000_000))], Verdict::Admit);
    let (policy, state) = (r#""big";q=999999999999999;w=1"#, r#""big";r=999999999999999;t=1"#);
    assert_fields(&seen, policy, state, "999999999999999/999999999999999/1", Some(1_796_040_002));
}

#[test]
fn vector_13_quotes_and_backslashes_are_escaped() {
    let seen = see(&[item(r#"a"b\c"#, 10, 60, passed(1, 7_000_000))], Verdict::Admit);
    let (policy, state) = (r#""a\"b\\c";q=10;w=60"#, r#""a\"b\\c";r=1;t=7"#);
    assert_fields(&seen, policy, state, "10/1/7", Some(1_796_040_008));
    let seen = see(&[item(r#"a"b\c"#, 10, 60, violated(1, 7_000_000))], Verdict::Refuse);
    assert_fields(&seen, policy, state, "10/1/7", Some(1_796_040_008));
    assert_refused(&seen, &[r#"a"b\c"#], Some(7), "7000");
}

#[test]
fn vector_14_an_unknown_state_is_not_told() {
    let seen = see(&[item("orders", 10, 60, State::Unknown)], Verdict::Admit);
    assert_eq!(seen.policy.as_deref(), Some(r#""orders";q=10;w=60"#));
    assert_eq!((seen.state, seen.triple, seen.retry_after), (None, None, None));
}

#[test]
fn vector_15_an_outage_tells_no_state() {
    let items = [item("orders", 10, 60, State::Unknown), item("ip", 5, 1, passed(4, 800_000))];
    let seen = see(&items, Verdict::Unavailable { retry_after: Duration::from_secs(5) });
    assert_eq!(seen.policy.as_deref(), Some(r#""orders";q=10;w=60, "ip";q=5;w=1"#));
    assert_eq!((seen.state, seen.triple), (None, None));
    assert_eq!(seen.epoch, None);
    let retry_after = Duration::from_secs(5);
    let unavailable = Unavailable { policy: "orders", policies: vec!["orders"], retry_after };
    let reply = unavailable.clone().reply(&PROBLEM, Protocol::Http);
    assert_eq!((reply.status, header(&reply, "retry-after").as_deref()), (503, Some("5")));
    assert_eq!(problem(&reply), ("temporary-reduced-capacity".to_owned(), vec!["orders".to_owned()]));
    let reply = unavailable.reply(&PROBLEM, Protocol::Grpc);
    assert_eq!(reply.grpc_status, Some(14));
    assert_eq!(header(&reply, "retry-after").as_deref(), Some("5"));
    assert_eq!(header(&reply, "grpc-retry-pushback-ms").as_deref(), Some("5000"));
}

#[test]
fn vector_16_an_unlimited_plan_leaves_no_trace() {
    let mut headers = Recorded::default();
    write(&ALL, &[], Verdict::Admit, Some(NOW), &mut headers);
    assert_eq!((headers.fields.len(), headers.calls), (0, 0));
    let seen = see(&[item("other", 10, 60, passed(9, 54_000_000))], Verdict::Admit);
    let (policy, state) = (r#""other";q=10;w=60"#, r#""other";r=9;t=54"#);
    assert_fields(&seen, policy, state, "10/9/54", Some(1_796_040_055));
}

#[test]
fn vector_17_upstreams_list_is_appended_to() {
    let mut headers = Recorded::default();
    headers.set("ratelimit", br#""default";r=5;t=10"#);
    let items = [item("edge", 100, 60, passed(90, 60_000_000))];
    write(&[Family::Draft11], &items, Verdict::Admit, None, &mut headers);
    assert_eq!(headers.text("ratelimit"), Some(r#""default";r=5;t=10, "edge";r=90;t=60"#));
    assert_eq!(headers.text("ratelimit-policy"), Some(r#""edge";q=100;w=60"#));
}
