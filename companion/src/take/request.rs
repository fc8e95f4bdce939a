//! Requests as bytes: read strictly, and refused with the place and the remedy.

use core::fmt;
use std::collections::HashSet;

use limiter::wire::{Charge, MAX_BATCH_CHARGES, MAX_CHARGES, MAX_TAKES, Take, TakeRequest};

use super::key::{self, KeyError};
use super::lease::{self, LeaseError};
use super::report::{self, ReportError};

/// The most bytes that a parser's message brings into an answer: it quotes what the caller sent.
const MAX_QUOTED_BYTES: usize = 300;

/// Why a request is refused before the store is asked. Nothing was charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// Not JSON.
    Json {
        /// The parser's words.
        detail: String,
    },
    /// JSON, and not a request.
    Field {
        /// Where, as in `takes[0].charges[1].limit`.
        path: String,
        /// The parser's words.
        detail: String,
    },
    /// No takes, or more than [`MAX_TAKES`].
    Takes {
        /// How many there are.
        count: usize,
    },
    /// More than [`MAX_BATCH_CHARGES`] charges in all takes.
    BatchCharges {
        /// How many there are.
        count: usize,
    },
    /// A take without charges, or with more than [`MAX_CHARGES`].
    Charges {
        /// The take's place.
        take: usize,
        /// How many there are.
        count: usize,
    },
    /// A key that callers may not name.
    Key {
        /// The take's place.
        take: usize,
        /// The charge's place in it.
        charge: usize,
        /// What is wrong.
        error: KeyError,
    },
    /// The same key twice in one take, which would be decided as if each were alone.
    SameKey {
        /// The take's place.
        take: usize,
        /// The second charge's place in it.
        charge: usize,
    },
    /// A cost of zero with nothing asked of leases and nothing reported.
    NoCost {
        /// The take's place.
        take: usize,
        /// The charge's place in it.
        charge: usize,
    },
    /// Something that callers may not ask of leases.
    Lease {
        /// The take's place.
        take: usize,
        /// The charge's place in it.
        charge: usize,
        /// What is wrong.
        error: LeaseError,
    },
    /// Something that callers may not report.
    Report {
        /// The take's place.
        take: usize,
        /// The charge's place in it.
        charge: usize,
        /// What is wrong.
        error: ReportError,
    },
}

impl RequestError {
    /// One word for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Json { .. } => "invalid_json",
            Self::Field { .. } => "invalid_request",
            Self::Takes { .. } => "invalid_takes",
            Self::BatchCharges { .. } | Self::Charges { .. } => "invalid_charges",
            Self::Key { .. } => "invalid_key",
            Self::SameKey { .. } => "repeated_key",
            Self::NoCost { .. } => "invalid_cost",
            Self::Lease { .. } => "invalid_lease",
            Self::Report { .. } => "invalid_report",
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json { detail } => write!(f, "not JSON: {detail}"),
            Self::Field { path, detail } => write!(f, "{path}: {detail}"),
            Self::Takes { count } => write!(f, "takes: {count} are not allowed; use 1 to {MAX_TAKES}"),
            Self::BatchCharges { count } => write!(
                f,
                "takes: {count} charges in all are not allowed; use {MAX_BATCH_CHARGES} or less, and a request for the rest"
            ),
            Self::Charges { take, count } => {
                write!(f, "takes[{take}].charges: {count} are not allowed; use 1 to {MAX_CHARGES}")
            }
            Self::Key { take, charge, error } => write!(f, "takes[{take}].charges[{charge}].key: {error}"),
            Self::SameKey { take, charge } => {
                write!(f, "takes[{take}].charges[{charge}].key: comes twice in this take; charge it once")
            }
            Self::NoCost { take, charge } => write!(
                f,
                "takes[{take}].charges[{charge}].cost: 0 is not allowed; use 1 or more, a lease or a report"
            ),
            Self::Lease { take, charge, error } => {
                write!(f, "takes[{take}].charges[{charge}].lease.{error}")
            }
            Self::Report { take, charge, error } => {
                write!(f, "takes[{take}].charges[{charge}].report.{error}")
            }
        }
    }
}

impl core::error::Error for RequestError {}

/// Reads a request and checks what its types do not.
///
/// # Errors
/// The first fault found.
pub fn read(bytes: &[u8]) -> Result<TakeRequest, RequestError> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let request: TakeRequest = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        unread(&path, error.inner())
    })?;
    json.end().map_err(|error| unread("", &error))?;
    check(&request)?;
    Ok(request)
}

fn unread(path: &str, error: &serde_json::Error) -> RequestError {
    let detail = shorten(&error.to_string());
    if error.is_data() {
        // The path of the whole document is a dot.
        let path = if path == "." { "request".to_owned() } else { shorten(path) };
        RequestError::Field { path, detail }
    } else {
        RequestError::Json { detail }
    }
}

fn shorten(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_QUOTED_BYTES);
    match text.split_at_checked(end) {
        Some((start, rest)) if !rest.is_empty() => format!("{start}…"),
        _ => text.to_owned(),
    }
}

fn check(request: &TakeRequest) -> Result<(), RequestError> {
    let count = request.takes.len();
    if count == 0 || count > MAX_TAKES {
        return Err(RequestError::Takes { count });
    }
    request.takes.iter().enumerate().try_for_each(|(index, take)| check_take(index, take))?;
    let count = request.takes.iter().map(|take| take.charges.len()).sum();
    if count > MAX_BATCH_CHARGES {
        return Err(RequestError::BatchCharges { count });
    }
    Ok(())
}

fn check_take(take: usize, Take { charges }: &Take) -> Result<(), RequestError> {
    let count = charges.len();
    if count == 0 || count > MAX_CHARGES {
        return Err(RequestError::Charges { take, count });
    }
    let mut seen = HashSet::with_capacity(count);
    for (charge, Charge { key, cost, lease, report, .. }) in charges.iter().enumerate() {
        key::check(key).map_err(|error| RequestError::Key { take, charge, error })?;
        if !seen.insert(key.as_str()) {
            return Err(RequestError::SameKey { take, charge });
        }
        if let Some(ask) = lease {
            lease::check(ask).map_err(|error| RequestError::Lease { take, charge, error })?;
        }
        if let Some(report) = report {
            report::check(report).map_err(|error| RequestError::Report { take, charge, error })?;
        }
        if *cost == 0 && lease.is_none() && report.is_none() {
            return Err(RequestError::NoCost { take, charge });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHARGE: &str = r#"{"key":"rl:{1}:p","limit":{"token_bucket":{"capacity":1,"rate":"1/s"}}}"#;

    fn refusal(text: &str) -> (&'static str, String) {
        let error = read(text.as_bytes()).unwrap_err();
        (error.code(), error.to_string())
    }

    fn of_charge(charge: &str) -> (&'static str, String) {
        refusal(&format!(r#"{{"takes":[{{"charges":[{CHARGE}]}},{{"charges":[{charge}]}}]}}"#))
    }

    #[test]
    fn what_is_not_json_is_told_from_what_is_not_a_request() {
        for text in ["", "{", "takes", "{\"takes\":[]} x", "\u{0}", "{\"takes\":[]"] {
            assert_eq!(refusal(text).0, "invalid_json", "{text:?}");
        }
        assert_eq!(read(b"{\"takes\":\"\xff\"}").unwrap_err().code(), "invalid_json");
        for text in ["{}", "[1]", "null", r#"{"takes":1}"#, r#"{"takes":[],"more":1}"#] {
            assert_eq!(refusal(text).0, "invalid_request", "{text:?}");
        }
        assert_eq!(refusal(&"[".repeat(100_000)).0, "invalid_request");
    }

    #[test]
    fn a_wrong_field_is_named_by_its_path() {
        let (code, message) = of_charge(&CHARGE.replace("\"1/s\"", "\"2/x\""));
        assert_eq!(code, "invalid_request");
        assert!(message.starts_with("takes[1].charges[0].limit.token_bucket: not a rate; use "), "{message}");
        let (_, message) = of_charge(&CHARGE.replace("\"capacity\":1", "\"capacity\":-1"));
        assert!(message.starts_with("takes[1].charges[0].limit.token_bucket.capacity: "), "{message}");
        let (_, message) = of_charge(&CHARGE.replace("\"key\"", "\"kee\""));
        assert!(message.starts_with("takes[1].charges[0].kee: unknown field"), "{message}");
        let (_, message) = of_charge(&CHARGE.replace("token_bucket", "bucket_of_tokens"));
        assert!(message.contains("unknown variant `bucket_of_tokens`"), "{message}");
    }

    #[test]
    fn numbers_and_keys_are_checked_with_their_place() {
        assert_eq!(refusal(r#"{"takes":[]}"#).0, "invalid_takes");
        assert_eq!(refusal(r#"{"takes":[{"charges":[]}]}"#).0, "invalid_charges");
        let take = format!(r#"{{"charges":[{CHARGE}]}}"#);
        let many = format!(r#"{{"takes":[{}]}}"#, vec![take; MAX_TAKES + 1].join(","));
        assert_eq!(refusal(&many).1, "takes: 129 are not allowed; use 1 to 128");
        let many = vec![CHARGE; MAX_CHARGES + 1].join(",");
        assert_eq!(of_charge(&many).1, "takes[1].charges: 17 are not allowed; use 1 to 16");
        assert_eq!(of_charge(&format!("{CHARGE},{CHARGE}")).0, "repeated_key");
        let free = CHARGE.replace("\"limit\"", "\"cost\":0,\"limit\"");
        assert_eq!(
            of_charge(&free).1,
            "takes[1].charges[0].cost: 0 is not allowed; use 1 or more, a lease or a report"
        );
        assert_eq!(of_charge(&CHARGE.replace("rl:{1}:p", "p")).0, "invalid_key");
    }

    #[test]
    fn a_batch_has_a_maximum_of_charges_whatever_its_takes() {
        let charges: Vec<_> = (0..MAX_CHARGES).map(|at| CHARGE.replace(":p", &format!(":{at}"))).collect();
        let take = |count| format!(r#"{{"charges":[{}]}}"#, charges[..count].join(","));
        let mut takes = vec![take(MAX_CHARGES); MAX_BATCH_CHARGES / MAX_CHARGES];
        let written = |takes: &[String]| format!(r#"{{"takes":[{}]}}"#, takes.join(","));
        assert!(read(written(&takes).as_bytes()).is_ok());
        takes.push(take(1));
        let (code, message) = refusal(&written(&takes));
        assert_eq!(code, "invalid_charges");
        assert!(
            message.starts_with("takes: 257 charges in all are not allowed; use 256 or less"),
            "{message}"
        );
    }

    #[test]
    fn a_cost_of_zero_is_for_reports() {
        let report = |to| format!(r#""report":{{"holder":"a","from":4,"to":{to},"ttl_us":1}}"#);
        let delivery = CHARGE.replace("\"limit\"", &format!("\"cost\":0,{},\"limit\"", report(5)));
        let request = format!(r#"{{"takes":[{{"charges":[{delivery}]}}]}}"#);
        assert!(read(request.as_bytes()).is_ok());
        let (code, message) = of_charge(&delivery.replace(&report(5), &report(3)));
        assert_eq!(code, "invalid_report");
        assert!(message.starts_with("takes[1].charges[0].report.to: 3 is less than from"), "{message}");
        let (code, message) = of_charge(&delivery.replace("\"to\":5", "\"to\":5,\"too\":5"));
        assert_eq!(code, "invalid_request");
        assert!(message.starts_with("takes[1].charges[0].report.too: unknown field"), "{message}");
    }

    #[test]
    fn a_cost_of_zero_is_for_leases() {
        let lease = |holder| format!(r#""lease":{{"holder":"{holder}","id":1,"want":5,"ttl_us":1}}"#);
        let renewal = CHARGE.replace("\"limit\"", &format!("\"cost\":0,{},\"limit\"", lease("a")));
        let request = format!(r#"{{"takes":[{{"charges":[{renewal}]}}]}}"#);
        assert!(read(request.as_bytes()).is_ok());
        let (code, message) = of_charge(&renewal.replace(&lease("a"), &lease("a b")));
        assert_eq!(code, "invalid_lease");
        assert!(message.starts_with("takes[1].charges[0].lease.holder: not a holder's name"), "{message}");
        let (code, message) = of_charge(&renewal.replace("\"want\":5", "\"want\":5,\"wants\":5"));
        assert_eq!(code, "invalid_request");
        assert!(message.starts_with("takes[1].charges[0].lease.wants: unknown field"), "{message}");
    }

    #[test]
    fn what_a_caller_sent_is_quoted_in_part_only() {
        let (_, message) = of_charge(&CHARGE.replace("\"key\"", &format!("\"{}\"", "é".repeat(100_000))));
        assert!(message.len() < 1_000, "{}", message.len());
    }
}
