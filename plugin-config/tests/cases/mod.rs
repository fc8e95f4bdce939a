//! The cases of `refused/*.txt`, for every test that needs them.
//!
//! A case is a line `## claim`, the configuration, and a line `=> error` for each error. Short forms stand for what a
//! case is not about: see [`SHORT_FORMS`].
#![expect(clippy::unwrap_used, reason = "a broken case is to fail its test")]
#![allow(dead_code, reason = "not every test needs all of a case")]

const FILES: [(&str, &str); 10] = [
    ("document", include_str!("../refused/document.txt")),
    ("state", include_str!("../refused/state.txt")),
    ("policy", include_str!("../refused/policy.txt")),
    ("match", include_str!("../refused/match.txt")),
    ("key", include_str!("../refused/key.txt")),
    ("limit", include_str!("../refused/limit.txt")),
    ("plan", include_str!("../refused/plan.txt")),
    ("cost", include_str!("../refused/cost.txt")),
    ("response", include_str!("../refused/response.txt")),
    ("sync", include_str!("../refused/sync.txt")),
];

const SHORT_FORMS: [(&str, &str); 6] = [
    ("$NAME", r#""name": "a""#),
    ("$KEY", r#""key": ["ip"]"#),
    ("$LIMIT", r#""limit": {"token_bucket": {"capacity": 10, "rate": "1/s"}}"#),
    ("$LOCAL", r#""sync": "local""#),
    ("$POLICY", r#"{"name": "a", "key": ["ip"], "limit": "unlimited"}"#),
    ("$COMPANION", r#""companion": {"cluster": "tidegate"}"#),
];

/// A configuration that is refused.
pub(crate) struct Case {
    /// The name of its file.
    pub(crate) file: &'static str,
    /// What is wrong with it.
    pub(crate) claim: &'static str,
    /// The configuration in full.
    pub(crate) config: String,
    /// What is told, a line `=> error` for each error.
    pub(crate) errors: String,
}

/// All of them.
pub(crate) fn refused() -> Vec<Case> {
    FILES
        .into_iter()
        .flat_map(|(file, text)| text.split("## ").skip(1).map(move |case| read(file, case)))
        .collect()
}

fn read(file: &'static str, case: &'static str) -> Case {
    let (claim, rest) = case.split_once('\n').unwrap();
    let (config, errors) = rest.split_once("\n=> ").unwrap();
    let config =
        SHORT_FORMS.iter().fold(config.to_owned(), |config, (short, long)| config.replace(short, long));
    Case { file, claim, config, errors: format!("=> {}", errors.trim_end()) }
}
