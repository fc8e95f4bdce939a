//! Configurations that are valid and hardly meant, and every word of what a person is told: `warned/*.txt`.
//!
//! A case is a line `## claim`, the configuration, and a line `=> warning` for each warning, or `=> nothing`. Short
//! forms stand for what a case is not about: see [`SHORT_FORMS`].

use std::fmt::Write as _;

use plugin_config::{check, parse};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const FILES: [(&str, &str); 4] = [
    ("hidden", include_str!("warned/hidden.txt")),
    ("expression", include_str!("warned/expression.txt")),
    ("client", include_str!("warned/client.txt")),
    ("counting", include_str!("warned/counting.txt")),
];

const SHORT_FORMS: [(&str, &str); 5] = [
    ("$NAME", r#""name": "a""#),
    ("$KEY", r#""key": ["ip"]"#),
    ("$LIMIT", r#""limit": {"token_bucket": {"capacity": 100, "rate": "1/s"}}"#),
    ("$LOCAL", r#""sync": "local""#),
    ("$COMPANION", r#""companion": {"cluster": "tidegate"}"#),
];

#[test]
fn every_surprise_is_told_with_path_value_and_remedy() {
    let mut failures = String::new();
    for (file, text) in FILES {
        for case in text.split("## ").skip(1) {
            let (claim, rest) = case.split_once('\n').unwrap();
            let (config, warnings) = rest.split_once("\n=> ").unwrap();
            let expected = format!("=> {}", warnings.trim_end());
            let mut config = config.to_owned();
            for (short, long) in SHORT_FORMS {
                config = config.replace(short, long);
            }
            let told = match check(config.as_bytes()) {
                Ok((_, warnings)) if warnings.is_empty() => "=> nothing".to_owned(),
                Ok((_, warnings)) => {
                    warnings.iter().map(|warning| format!("=> {warning}")).collect::<Vec<_>>().join("\n")
                }
                Err(errors) => format!("refused: {errors}"),
            };
            if told != expected {
                writeln!(failures, "## {claim} ({file}.txt)\n{told}\n").unwrap();
            }
        }
    }
    assert!(failures.is_empty(), "told otherwise than expected:\n{failures}");
}

#[test]
fn check_reads_and_refuses_as_the_filter_does() {
    let whole = include_bytes!("accepted/whole.json");
    assert_eq!(check(whole).unwrap().0, parse(whole).unwrap());
    let broken = include_bytes!("refused/five.json");
    assert_eq!(check(broken).unwrap_err(), parse(broken).unwrap_err());
}
