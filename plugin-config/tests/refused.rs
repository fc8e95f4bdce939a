//! Configurations that are refused, and every word of what a person is told: `refused/*.txt`, which [`cases`] reads.

mod cases;

use std::fmt::Write as _;

use plugin_config::parse;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

#[test]
fn every_error_is_told_with_path_value_and_remedy() {
    let mut failures = String::new();
    let cases = cases::refused();
    for case in &cases {
        let told = match parse(case.config.as_bytes()) {
            Ok(config) => format!("accepted: {config:?}"),
            Err(errors) => errors.iter().map(|error| format!("=> {error}")).collect::<Vec<_>>().join("\n"),
        };
        if told != case.errors {
            writeln!(failures, "## {} ({}.txt)\n{told}\n", case.claim, case.file).unwrap();
        }
    }
    assert!(cases.len() > 100, "only {} cases were read", cases.len());
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
