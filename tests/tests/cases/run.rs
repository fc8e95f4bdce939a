//! Runs a case file: one Envoy, with a listener for each section, and a companion where a policy asks one.

use std::time::{Duration, Instant};

use harness::{Answer, Companion, Envoy, Listener, client_of_http2, refusing_addr, until};
use serde_json::{Value, json};

use crate::case::{EnvoySettings, ExpectedAnswer, Request, Section};
use crate::compare::{Elapsed, differences};
use crate::token;

/// How long Envoy may take to write its access log.
const LOG_DEADLINE: Duration = Duration::from_secs(10);

/// Between the lines of a report's longer parts.
const NEXT_LINE: &str = "\n            ";

/// Runs all sections, and tells all that went otherwise than expected.
pub(crate) async fn run(sections: &[Section]) -> Vec<String> {
    let companion = if sections.iter().any(Section::needs_companion) {
        Some(Companion::builder("memory").store_timeout("5s").start().await)
    } else {
        None
    };
    let mut builder = Envoy::builder().cluster("away", refusing_addr());
    if let Some(companion) = &companion {
        builder = builder.companion(companion.addr());
    }
    for section in sections {
        builder = builder.listener(listener(section));
    }
    let envoy = builder.start().await;
    let mut failures = Vec::new();
    for (index, section) in sections.iter().enumerate() {
        if let Err(failure) = run_section(&envoy, index + 1, section).await {
            failures.push(format!("{:?}\n{failure}", section.claim));
        }
    }
    envoy.assert_no_vm_crash().await;
    failures
}

async fn run_section(envoy: &Envoy, listener: usize, section: &Section) -> Result<(), String> {
    let mut details = Vec::new();
    let begun = Instant::now();
    for request in &section.requests {
        let expected = request.expect.answer();
        for time in 1..=request.times {
            let actual = send(envoy, listener, request).await;
            let different = differences(&expected, &actual, Elapsed(begun.elapsed()));
            if !different.is_empty() {
                let answer = told(&actual);
                return Err(report(request, time, &expected, &different.join(NEXT_LINE), &answer));
            }
            details.push((request, time, expected.clone()));
        }
    }
    check_details(envoy, listener, &details).await?;
    for (name, expected) in &section.counters {
        let actual = envoy.counter(&format!("wasmcustom.tidegate.{name}")).await;
        if actual != *expected {
            return Err(format!("  counter {name}: {actual} instead of {expected}"));
        }
    }
    Ok(())
}

/// Looks into the access log, where a request asks for that.
async fn check_details(
    envoy: &Envoy,
    listener: usize,
    sent: &[(&Request, u32, ExpectedAnswer)],
) -> Result<(), String> {
    if sent.iter().all(|(_, _, expected)| expected.details.is_none()) {
        return Ok(());
    }
    let log = until("a line in the access log for each request", LOG_DEADLINE, async || {
        Some(envoy.access_log_of(listener)).filter(|lines| lines.len() >= sent.len())
    })
    .await;
    for (line, (request, time, expected)) in log.iter().zip(sent) {
        let Some(details) = &expected.details else { continue };
        if line.split_once(' ').is_none_or(|(_, logged)| logged != details) {
            return Err(report(request, *time, expected, &format!("details {details:?}"), line));
        }
    }
    Ok(())
}

/// A request, what was expected of it, and what came instead.
fn report(request: &Request, time: u32, expected: &ExpectedAnswer, different: &str, actual: &str) -> String {
    let shown = bytes(request).escape_ascii().to_string().replace("\\r\\n", NEXT_LINE);
    format!(
        "  request:  {}\n  sent:     for the {time}. time, by HTTP/{}\n  expected: {expected:?}\n  actual:   {actual}\n  \
         differs:  {different}",
        shown.trim_end(),
        request.http,
    )
}

fn told(answer: &Answer) -> String {
    let fields = answer.headers.iter();
    let fields = fields.map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())));
    let lines = [answer.status.to_string()].into_iter().chain(fields).chain([format!("{:?}", answer.text())]);
    lines.collect::<Vec<_>>().join(NEXT_LINE)
}

async fn send(envoy: &Envoy, listener: usize, request: &Request) -> Answer {
    if request.http == 1 {
        return envoy.send_raw_to(listener, &bytes(request)).await;
    }
    let (method, target) = request.send.split_once(' ').unwrap_or_default();
    let url = format!("http://{}{target}", envoy.addr_of(listener));
    let mut sent = client_of_http2().request(method.parse().expect("a method is a token"), url);
    for line in lines(request) {
        let (name, value) = line.split_once(':').unwrap_or_default();
        sent = sent.header(name, value.trim());
    }
    Answer::receive(sent).await
}

/// The bytes of a request by HTTP/1.1, on a connection of its own.
fn bytes(request: &Request) -> Vec<u8> {
    let is_host = |line: &String| line.to_ascii_lowercase().starts_with("host:");
    let mut head = vec![format!("{} HTTP/1.1", request.send)];
    if !request.headers.iter().any(is_host) {
        head.push("host: tidegate.test".to_owned());
    }
    head.extend(lines(request));
    head.push("connection: close\r\n\r\n".to_owned());
    head.join("\r\n").chars().filter_map(|char| u8::try_from(char).ok()).collect()
}

fn lines(request: &Request) -> impl Iterator<Item = String> {
    let token = request.token.as_ref().map(|claims| format!("authorization: Bearer {}", token::sign(claims)));
    request.headers.iter().cloned().chain(token)
}

fn listener(section: &Section) -> Listener {
    let mut plugin = section.plugin.clone();
    if section.needs_companion() && !plugin.contains_key("companion") {
        plugin.insert("companion".to_owned(), json!({ "cluster": "tidegate", "timeout": "10s" }));
    }
    let EnvoySettings { manager, filters, routes, virtual_hosts, jwt } = &section.envoy;
    let mut listener = Listener::new(&Value::Object(plugin));
    for filter in jwt.iter().map(|name| token::filter(name)).chain(filters.iter().cloned()) {
        listener = listener.filter_before(filter);
    }
    for (field, value) in manager {
        listener = listener.manager(field, value.clone());
    }
    for route in routes {
        listener = listener.route(answering(route));
    }
    for virtual_host in virtual_hosts {
        let mut virtual_host = virtual_host.clone();
        for route in virtual_host["routes"].as_array_mut().into_iter().flatten() {
            *route = answering(route);
        }
        listener = listener.virtual_host(virtual_host);
    }
    listener
}

/// A route that answers 200 unless it does something else.
fn answering(route: &Value) -> Value {
    let mut route = route.clone();
    if ["route", "redirect", "direct_response"].iter().all(|action| route.get(action).is_none()) {
        route["direct_response"] = json!({ "status": 200, "body": { "inline_string": "admitted\n" } });
    }
    route
}
