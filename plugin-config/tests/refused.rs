//! Configurations that are refused, and every word of what a person is told: `refused/*.txt`.
//!
//! A case is a line `## claim`, the configuration, and a line `=> error` for each error. Short forms
//! stand for what a case is not about: see [`SHORT_FORMS`].

use std::fmt::Write as _;

use plugin_config::parse;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const FILES: [(&str, &str); 10] = [
    ("document", include_str!("refused/document.txt")),
    ("state", include_str!("refused/state.txt")),
    ("policy", include_str!("refused/policy.txt")),
    ("match", include_str!("refused/match.txt")),
    ("key", include_str!("refused/key.txt")),
    ("limit", include_str!("refused/limit.txt")),
    ("plan", include_str!("refused/plan.txt")),
    ("cost", include_str!("refused/cost.txt")),
    ("response", include_str!("refused/response.txt")),
    ("sync", include_str!("refused/sync.txt")),
];

const SHORT_FORMS: [(&str, &str); 6] = [
    ("$NAME", r#""name": "a""#),
    ("$KEY", r#""key": ["ip"]"#),
    ("$LIMIT", r#""limit": {"token_bucket": {"capacity": 10, "rate": "1/s"}}"#),
    ("$LOCAL", r#""sync": "local""#),
    ("$POLICY", r#"{"name": "a", "key": ["ip"], "limit": "unlimited"}"#),
    ("$COMPANION", r#""companion": {"cluster": "tidegate"}"#),
];

#[test]
fn every_error_is_told_with_path_value_and_remedy() {
    let mut failures = String::new();
    let mut count = 0;
    for (file, text) in FILES {
        for case in text.split("## ").skip(1) {
            let (claim, rest) = case.split_once('\n').unwrap();
            let (config, errors) = rest.split_once("\n=> ").unwrap();
            let expected = format!("=> {}", errors.trim_end());
            let mut config = config.to_owned();
            for (short, long) in SHORT_FORMS {
                config = config.replace(short, long);
            }
            let told = match parse(config.as_bytes()) {
                Ok(config) => format!("accepted: {config:?}"),
                Err(errors) => {
                    errors.iter().map(|error| format!("=> {error}")).collect::<Vec<_>>().join("\n")
                }
            };
            count += 1;
            if told != expected {
                writeln!(failures, "## {claim} ({file}.txt)\n{told}\n").unwrap();
            }
        }
    }
    assert!(count > 100, "only {count} cases were read");
    assert!(failures.is_empty(), "told otherwise than expected:\n{failures}");
}

#[test]
fn a_configuration_that_is_a_protobuf_message_is_told_from_broken_json() {
    let told = |bytes: &[u8]| parse(bytes).unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>();
    let message = "configuration: a protobuf message, as of a google.protobuf.Struct, and not JSON; in Envoy, give it \
                   as a google.protobuf.StringValue";
    for bytes in [
        // Structs with one key, in order: {"policies": []}, a length in two bytes, a length that is a brace.
        b"\n\x0e\n\x08policies\x12\x02\x32\x00".as_slice(),
        b"\n\xcf\x01\n\x08policies\x12\xc2\x01\x32\xbf\x01*\xbc\x01",
        b"\n{\n\tcompanion\x12n*l",
        // An Any, a number, a message in a message.
        b"\n0type.googleapis.com/google.protobuf.StringValue\x12\x02{}",
        b"\x08\x01",
        b"\x12\x00",
    ] {
        assert_eq!(told(bytes), [message], "{bytes:?}");
    }
    for bytes in [b"\n{\n  \"policies\": [}".as_slice(), b"\r\n\t{", b"\n[", b"\t12 {", b"{\x12}", b"\x7f"] {
        assert!(told(bytes)[0].contains("not JSON at line"), "{bytes:?}: {:?}", told(bytes));
    }
}
