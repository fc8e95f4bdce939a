//! That the cases are what they should be: complete, and refused where they are no cases.

use std::path::PathBuf;
use std::time::Duration;

use harness::Answer;
use libtest_mimic::{Failed, Trial};

use crate::case::{self, ExpectedAnswer};
use crate::compare::{Elapsed, differences};
use crate::coverage;

pub(crate) fn trials(files: &[PathBuf]) -> Vec<Trial> {
    let files = files.to_vec();
    vec![
        Trial::test("every_key_and_value_of_the_configuration_has_a_case", move || {
            coverage::every_key_and_value_has_a_case(&files)
        }),
        Trial::test("a_file_that_is_no_case_fails", what_is_no_case_fails),
        Trial::test("nothing_but_times_may_differ", nothing_but_times_may_differ),
    ]
}

/// A file of one section with these keys.
fn file(keys: &str) -> String {
    format!("- claim: it holds\n  plugin: {{ policies: [{{ name: p, limit: blocked }}] }}\n  {keys}\n")
}

fn what_is_no_case_fails() -> Result<(), Failed> {
    let good = file("requests: [{ send: GET /, expect: 429 }]");
    case::read(&good)?;
    let bad = [
        ("no section", "[]".to_owned()),
        ("no request", file("requests: []")),
        ("nothing but what Envoy does", file("requests: [{ send: GET /, expect: 200 }]")),
        ("an unknown key", file("requests: [{ send: GET /, expect: 429 }]\n  request: []")),
        ("an unknown key of a request", file("requests: [{ send: GET /, header: [], expect: 429 }]")),
        (
            "an unknown key of an answer",
            file("requests: [{ send: GET /, expect: { status: 429, header: {} } }]"),
        ),
        ("an unknown key of Envoy", file("requests: [{ send: GET /, expect: 429 }]\n  envoy: { route: [] }")),
        ("a request without an answer", file("requests: [{ send: GET / }]")),
        ("an answer without a status", file("requests: [{ send: GET /, expect: { body: x } }]")),
        ("no method", file("requests: [{ send: /, expect: 429 }]")),
        ("no header line", file("requests: [{ send: GET /, headers: [x], expect: 429 }]")),
        ("characters that are no bytes", file("requests: [{ send: \"GET /\\u20ac\", expect: 429 }]")),
        ("sent never", file("requests: [{ send: GET /, times: 0, expect: 429 }]")),
        ("HTTP/3", file("requests: [{ send: GET /, http: 3, expect: 429 }]")),
        ("a key twice", file("requests: [{ send: GET /, send: GET /, expect: 429 }]")),
        ("a claim twice", format!("{good}{good}")),
        ("a policy twice", format!("{good}{}", good.replace("it holds", "it holds, too"))),
    ];
    let taken: Vec<&str> =
        bad.iter().filter(|(_, text)| case::read(text).is_ok()).map(|(what, _)| *what).collect();
    if taken.is_empty() { Ok(()) } else { Err(format!("these are taken for cases: {taken:?}").into()) }
}

fn nothing_but_times_may_differ() -> Result<(), Failed> {
    let answer = Answer {
        status: 429,
        headers: [("ratelimit", "\"p\";r=0;t=3598"), ("retry-after", "3598")]
            .into_iter()
            .map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value")))
            .collect(),
        body: br#"{"error":"e","retry_after":3598,"message":"after 3598 s"}"#.to_vec(),
    };
    let rows = [
        ("{ status: 429 }", 0, true),
        ("{ status: [200, 429] }", 0, true),
        ("{ status: 200 }", 0, false),
        ("{ status: [200, 503] }", 0, false),
        ("{ status: 429, headers: { retry-after: \"3598\" } }", 9, true),
        ("{ status: 429, headers: { retry-after: 3598 } }", 9, true),
        ("{ status: 429, headers: { retry-after: \"3600\" } }", 9, false),
        ("{ status: 429, headers: { retry-after: ~3600 } }", 2, true),
        ("{ status: 429, headers: { retry-after: ~3600 } }", 1, false),
        ("{ status: 429, headers: { retry-after: ~3597 } }", 9, false),
        ("{ status: 429, headers: { retry-after: null } }", 9, false),
        ("{ status: 429, headers: { x-other: null } }", 0, true),
        ("{ status: 429, headers: { x-other: a } }", 0, false),
        ("{ status: 429, headers: { ratelimit: '\"p\";r=0;t=~3600' } }", 2, true),
        ("{ status: 429, headers: { ratelimit: '\"p\";r=1;t=~3600' } }", 2, false),
        ("{ status: 429, headers: { ratelimit: '\"p\";r=0;t=~3600;x' } }", 2, false),
        ("{ status: 429, json: { error: e } }", 0, true),
        ("{ status: 429, json: { error: f } }", 0, false),
        ("{ status: 429, json: { policy: null } }", 0, true),
        ("{ status: 429, json: { error: null } }", 0, false),
        ("{ status: 429, json: { retry_after: ~3600, message: after ~3600 s } }", 2, true),
        ("{ status: 429, json: { retry_after: ~3600 } }", 1, false),
        ("{ status: 429, json: { retry_after: \"3598\" } }", 0, false),
        ("{ status: 429, body: \"\" }", 0, false),
    ];
    for (text, elapsed_s, agrees) in rows {
        let expected: ExpectedAnswer = serde_saphyr::from_str(text)?;
        let different = differences(&expected, &answer, Elapsed(Duration::from_secs(elapsed_s)));
        if different.is_empty() != agrees {
            return Err(format!("{text} after {elapsed_s} s: {different:?}").into());
        }
    }
    Ok(())
}
