//! The judgement of a configuration, in a form that other languages read.

use plugin_config::{Error, parse};
use serde::Serialize;

/// Whether a configuration is valid, and what a page shows of it.
#[derive(Debug, Serialize)]
pub(crate) struct Verdict {
    valid: bool,
    policies: Option<usize>,
    errors: Vec<Fault>,
    left_out: usize,
}

/// One error, in parts and as a whole.
#[derive(Debug, Serialize)]
struct Fault {
    path: String,
    value: Option<String>,
    problem: String,
    remedy: String,
    message: String,
}

impl Verdict {
    pub(crate) fn of(text: &str) -> Self {
        match parse(text.as_bytes()) {
            Ok(config) => {
                Self { valid: true, policies: Some(config.policies.len()), errors: Vec::new(), left_out: 0 }
            }
            Err(errors) => {
                let left_out = errors.left_out();
                Self {
                    valid: false,
                    policies: None,
                    errors: errors.iter().map(Fault::of).collect(),
                    left_out,
                }
            }
        }
    }

    pub(crate) fn to_json(&self) -> String {
        // Texts and numbers under fixed names: there is nothing that JSON could refuse.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Fault {
    fn of(error: &Error) -> Self {
        Self {
            path: error.path.to_string(),
            value: error.value.clone(),
            problem: error.problem.to_string(),
            remedy: error.remedy.to_string(),
            message: error.to_string(),
        }
    }
}
