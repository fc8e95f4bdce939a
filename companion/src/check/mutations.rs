//! Whatever a file holds, checking it does not panic, and what is found lies in it. That a configuration in
//! YAML has the same errors as alone, at the same characters.

use proptest::prelude::*;

use super::finding::Finding;
use super::judge;
use super::lines::Lines;
use super::text::render;

const JSON: &str = include_str!("../../tests/check/five.json");
const FILES: [&str; 6] = [
    JSON,
    include_str!("../../tests/check/bootstrap.yaml"),
    include_str!("../../tests/check/wasmplugin.yaml"),
    include_str!("../../tests/check/struct.yaml"),
    include_str!("../../tests/check/surprising.yaml"),
    include_str!("../../../envoy/demo.yaml"),
];

/// What means something in JSON or YAML, or is no text.
const PIECES: [&[u8]; 40] = [
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b" ",
    b"\n",
    b"\r\n",
    b"\t",
    b"- ",
    b"#",
    b"&a ",
    b"*a",
    b"<<: *a\n",
    b"|",
    b">",
    b"'",
    b"---\n",
    b"? ",
    b"!!str ",
    b"~",
    b"0",
    b"-1",
    b"1e999",
    b"null",
    b"\0",
    b"\xff",
    b"\xc3\xa9",
    b"\xe2\x80\xae",
    b"\x1b[31m",
    b"\\u0041",
    b"\\ud83d",
    b"\"policies\": ",
    b"policies: ",
    b"%YAML 1.2",
    b"\xef\xbb\xbf",
    b"StringValue",
];

/// One change of a file: what is done, where (in thousandths of the file), and with which piece.
type Change = (u8, usize, usize);

fn changes(most: usize) -> impl Strategy<Value = Vec<Change>> {
    proptest::collection::vec((0..5_u8, 0..1000_usize, 0..PIECES.len()), 0..most)
}

fn changed(file: &str, changes: &[Change]) -> Vec<u8> {
    let mut bytes = file.as_bytes().to_vec();
    for (what, at, piece) in changes {
        let at = bytes.len() * at / 1000;
        let end = bytes.len().min(at + 1 + piece);
        match what {
            0 => drop(bytes.drain(at..end)),
            1 => bytes.truncate(end),
            2 => {
                let copy = bytes[at..end].to_vec();
                drop(bytes.splice(at..at, copy));
            }
            _ => drop(bytes.splice(at..at, PIECES[*piece].iter().copied())),
        }
    }
    bytes
}

fn findings(bytes: &[u8]) -> (String, Vec<Finding>) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let judgement = match core::str::from_utf8(bytes) {
        Ok(text) => judge::text(text),
        Err(error) => Some(judge::bytes(bytes, error.valid_up_to())),
    };
    (text, judgement.map(|judgement| judgement.findings).unwrap_or_default())
}

/// What stands at a finding.
fn excerpt<'a>(text: &'a str, finding: &Finding) -> &'a str {
    &text[finding.span.clone()]
}

/// The configuration under Envoy's `value`, in a style of YAML.
fn within(style: &str, json: &str) -> String {
    let indented = |indent: &str| json.lines().flat_map(|line| [indent, line, "\n"]).collect::<String>();
    let value = match style {
        "quoted" => format!("'{}'", indented("").trim().replace('\'', "''")),
        "escaped" => serde_json::Value::from(json).to_string(),
        _ => format!("{style}\n{}", indented("          ")),
    };
    format!(
        "name: tidegate\ntyped_config:\n  \"@type\": x/envoy.extensions.filters.http.wasm.v3.Wasm\n  config:\n    \
         configuration:\n      \"@type\": x/google.protobuf.StringValue\n      value: {value}\n"
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn what_is_found_lies_in_the_file_and_harms_no_terminal(file in 0..FILES.len(), changes in changes(6)) {
        let (text, findings) = findings(&changed(FILES[file], &changes));
        let lines = Lines::new(&text);
        for finding in &findings {
            prop_assert!(text.get(finding.span.clone()).is_some(), "{finding:?}");
            prop_assert!(finding.span.start < text.len() || text.trim().is_empty(), "{finding:?}");
            let position = lines.position(finding.span.start);
            let line = text.split('\n').nth(position.line - 1);
            prop_assert!(line.is_some_and(|line| position.column <= line.chars().count() + 1), "{finding:?}");
            let printed = render(finding, "file", &lines);
            let place = anstream::adapter::strip_str(&printed).to_string();
            prop_assert!(place.contains(&format!("file:{}:{}\n", position.line, position.column)), "{printed}");
            let plain = anstream::adapter::strip_str(&printed).to_string();
            prop_assert!(plain.chars().all(|char| char == '\n' || !char.is_control()), "{plain:?}");
            // The only escapes are those of colours.
            let escapes = printed.split('\x1b').skip(1).map(|rest| rest.trim_start_matches(['[', ';', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']));
            prop_assert!(escapes.into_iter().all(|rest| rest.starts_with('m')), "{printed:?}");
        }
    }

    #[test]
    fn in_yaml_the_same_is_found_at_the_same_characters(changes in changes(3), style in 0..4_usize) {
        let json = String::from_utf8_lossy(&changed(JSON, &changes)).into_owned();
        // What has errors of its own in YAML, or is another text by its rules.
        prop_assume!(json.contains("\"policies\"") && json.starts_with('{') && !json.contains('\r'));
        prop_assume!(json.chars().all(|char| char == '\n' || !(char.is_control() || char == '\u{feff}')));
        let json = format!("{}\n", json.trim_end());
        let style = ["|", "|-", "escaped", "quoted"][style];
        // Folds turn line feeds in strings into blanks.
        prop_assume!(style != "quoted" || serde_json::from_str::<serde_json::Value>(&json).is_ok());
        let (file, found) = findings(within(style, &json).as_bytes());
        let (json, alone) = findings(json.as_bytes());
        prop_assert_eq!(found.len(), alone.len(), "{}\n{:?}", file, found);
        for (found, alone) in found.iter().zip(&alone) {
            if alone.problem.starts_with("not JSON") {
                prop_assert!(found.problem.starts_with("not JSON"));
            } else {
                prop_assert_eq!(found.to_string(), alone.to_string());
            }
            // Blanks may be others, and what is written in quotes has its signs for some characters.
            let bare = |text: &str| {
                let text = text.replace("\\n", "").replace("\\\"", "\"").replace("\\\\", "\\").replace("''", "'");
                text.split_whitespace().collect::<String>()
            };
            prop_assert_eq!(bare(excerpt(&file, found)), bare(excerpt(&json, alone)), "{}", file);
        }
    }
}
