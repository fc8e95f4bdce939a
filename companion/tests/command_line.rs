//! The binary as a person starts it: what it takes, and what it says to what it does not take.

#![allow(clippy::unwrap_used, reason = "a panic is a test's report")]

use std::io::Write;
use std::net::TcpListener;
use std::process::{Command, Stdio};

const VALID: &str = r#"{"policies": [{"name": "p", "key": ["ip"], "sync": "local",
    "limit": {"token_bucket": {"capacity": 5, "rate": "2/s"}}}]}"#;

/// The exit status and all that was printed. Every line here ends by itself.
fn run(args: &[&str], environment: &[(&str, &str)], input: &str) -> (Option<i32>, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(args)
        .env_remove("TIDEGATE_STORE")
        .env_remove("TIDEGATE_LISTEN")
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // One that reads nothing may have ended already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&printed).into_owned())
}

#[test]
fn a_valid_configuration_of_standard_input_is_counted_in_words() {
    assert_eq!(run(&["check", "-"], &[], VALID), (Some(0), "-: ok, 1 policy\n".to_owned()));
    let second = VALID.replace("[{", r#"[{"name": "q", "limit": "unlimited"}, {"#);
    assert_eq!(run(&["check", "-"], &[], &second), (Some(0), "-: ok, 2 policies\n".to_owned()));
}

#[test]
fn an_invalid_configuration_ends_with_1_and_a_missing_file_with_2() {
    let (code, printed) = run(&["check", "-"], &[], &VALID.replace("limit", "limt"));
    assert_eq!(code, Some(1));
    assert!(printed.contains("did you mean \"limit\"?"), "{printed}");
    let (code, printed) = run(&["check", "/no/such/file"], &[], "");
    assert_eq!(code, Some(2));
    assert!(printed.starts_with("/no/such/file: No such file"), "{printed}");
}

#[test]
fn of_several_files_an_error_outweighs_one_with_nothing_to_check() {
    let yaml = concat!(env!("CARGO_MANIFEST_DIR"), "/../envoy/demo.yaml");
    let (code, printed) = run(&["check", yaml, "-"], &[], VALID);
    assert_eq!((code, printed), (Some(0), format!("{yaml}: ok, 3 policies\n-: ok, 1 policy\n")));
    assert_eq!(run(&["check", yaml, "-", "/no/such/file"], &[], "apiVersion: v1").0, Some(2));
    assert_eq!(run(&["check", "-", "/no/such/file"], &[], "{}").0, Some(1));
    assert_eq!(run(&["check"], &[], "").0, Some(2));
}

#[test]
fn a_port_without_an_address_is_refused_with_the_form() {
    for listen in ["8081", ":8081"] {
        let (code, printed) = run(&["serve", "--store", "memory", "--listen", listen], &[], "");
        assert_eq!(code, Some(2));
        assert!(printed.contains("use an address and a port, as in \"127.0.0.1:8081\""), "{printed}");
    }
}

#[test]
fn a_port_that_is_taken_is_named_with_the_remedy() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let (code, printed) = run(&["serve", "--store", "memory", "--listen", &listen], &[], "");
    assert_eq!(code, Some(2));
    let remedy = format!("cannot listen on {listen}; end what listens there already, or use another port");
    assert!(printed.contains(&remedy), "{printed}");
}

#[test]
fn a_password_is_never_printed() {
    let listen = ["serve", "--listen", "127.0.0.1:0"];
    for wrong in
        ["redis://:secret@h/db", "redis://:se/secret@h", "rediss://:secret@h", "http://a:secret@h", "secret"]
    {
        for (args, environment) in
            [(vec!["--store", wrong], vec![]), (vec![], vec![("TIDEGATE_STORE", wrong)])]
        {
            let (code, printed) = run(&[&listen[..], &args].concat(), &environment, "");
            assert_eq!(code, Some(2), "{printed}");
            assert!(printed.contains("use memory or redis://"), "{printed}");
            assert!(!printed.contains("secret"), "{printed}");
        }
    }
    let url = "redis://:secret@h";
    for args in [vec![url], vec!["--sore", url], vec!["--store", "memory", url], vec!["--log-level", url]] {
        let (code, printed) = run(&[&listen[..], &args].concat(), &[], "");
        assert_eq!(code, Some(2), "{printed}");
        assert!(!printed.contains("secret"), "{printed}");
    }
}

#[test]
fn help_ends_with_0_and_no_arguments_with_2() {
    assert_eq!(run(&["--help"], &[], "").0, Some(0));
    assert_eq!(run(&[], &[], "").0, Some(2));
}

#[test]
fn the_schema_is_printed_as_it_is_published() {
    let published = include_str!("../../plugin-config/schema.json").to_owned();
    assert_eq!(run(&["schema"], &[], ""), (Some(0), published));
}
