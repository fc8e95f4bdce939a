//! `path`: in the spelling in which the paths of requests are compared.

use std::borrow::Cow;

use limiter::matching::{PathMatch, Template, TemplateError};
use limiter::path::normalize;

use crate::error::{Problem, Remedy};
use crate::pattern;
use crate::report::{Report, Reported};
use crate::spot::Spot;
use crate::words::Words;

/// The most bytes of a path or template.
pub const MAX_PATH_BYTES: usize = 1024;

const FORM: &str = "use {\"exact\": \"/orders\"}, {\"prefix\": \"/api/\"}, {\"template\": \"/users/{id}\"} or \
                    {\"regex\": \"/v[0-9]+/.*\"}";
const PATHS: Words = Words::new(&[EXACT, PREFIX, TEMPLATE, "regex"]);
const EXACT: &str = "exact";
const PREFIX: &str = "prefix";
const TEMPLATE: &str = "template";
const EMPTY: &str = "use \"/\" for the root, or leave it out to match every path";
const VARIABLE: &str =
    "use a template whose variables are whole segments, as in {\"template\": \"/users/{id}\"}";
const NAME: &str = "name variables by a letter or underscore, then letters, digits and underscores, as in \
                    \"/users/{user_id}\"";
const NOT_NORMAL: Problem = Problem::NotNormal { things: "paths" };

pub(super) fn read(spot: &Spot<'_>, report: &mut Report) -> Result<PathMatch, Reported> {
    let (form, spot) = spot.form(&PATHS, FORM, report)?;
    Ok(match form {
        EXACT => PathMatch::Exact(literal(&spot, report)?.to_owned()),
        PREFIX => PathMatch::Prefix(literal(&spot, report)?.to_owned()),
        TEMPLATE => PathMatch::Template(template(&spot, report)?),
        _ => PathMatch::Regex(pattern::read(&spot, report)?),
    })
}

fn literal<'a>(spot: &Spot<'a>, report: &mut Report) -> Result<&'a str, Reported> {
    let path = normal(spot, report)?;
    match meant(path) {
        Some(remedy) => Err(spot.refuse(Problem::Wildcard, remedy, report)),
        None => Ok(path),
    }
}

/// What was probably meant by a path with a wildcard or a variable, as other tools have them.
fn meant(path: &str) -> Option<Remedy> {
    let without_star = path.trim_end_matches('*');
    let is_wild = |segment: &str| {
        matches!(segment, "*" | "**")
            || (segment.len() > 2 && segment.starts_with('{') && segment.ends_with('}'))
    };
    if !without_star.split('/').any(is_wild) {
        return (without_star.len() < path.len())
            .then(|| Remedy::WriteUnder(PREFIX, without_star.to_owned()));
    }
    let segments = path.split('/').enumerate().map(|(index, segment)| match segment {
        "*" | "**" => Cow::Owned(format!("{{part_{index}}}")),
        _ => Cow::Borrowed(segment),
    });
    let template = segments.collect::<Vec<_>>().join("/");
    let is_one = template.parse::<Template>().is_ok();
    Some(if is_one { Remedy::WriteUnder(TEMPLATE, template) } else { Remedy::Do(VARIABLE) })
}

fn template(spot: &Spot<'_>, report: &mut Report) -> Result<Template, Reported> {
    // Braces are like letters to normal form.
    let text = normal(spot, report)?;
    let remedy = match text.parse::<Template>() {
        Ok(template) => return Ok(template),
        Err(TemplateError::NoSlash | TemplateError::PartOfASegment) => VARIABLE,
        Err(TemplateError::BadName) => NAME,
        Err(TemplateError::RepeatedName) => "give every variable a name of its own",
        Err(TemplateError::NoVariable) if text.contains('*') => {
            "use variables in place of wildcards, as in \"/users/{id}\""
        }
        Err(TemplateError::NoVariable) => "write a variable, as in \"/users/{id}\", or use \"exact\"",
    };
    Err(spot.refuse(Problem::NotATemplate, Remedy::Do(remedy), report))
}

/// A path as requests' paths look once normalised: one in another spelling would never match.
fn normal<'a>(spot: &Spot<'a>, report: &mut Report) -> Result<&'a str, Reported> {
    let path = spot.text("use a path such as \"/orders\"", report)?;
    let (problem, remedy) = if path.is_empty() {
        (Problem::Empty, Remedy::Do(EMPTY))
    } else if path.len() > MAX_PATH_BYTES {
        (Problem::TooLarge, Remedy::Do("use 1024 bytes or less"))
    } else if !path.starts_with('/') {
        (NOT_NORMAL, Remedy::Do("start it with a slash, as in \"/orders\""))
    } else if path.contains(['?', '#']) {
        (NOT_NORMAL, Remedy::Do("write the path without query and fragment; they are not compared"))
    } else {
        let normal = normalize(path.as_bytes());
        if *normal == *path.as_bytes() {
            return Ok(path);
        }
        (NOT_NORMAL, Remedy::Write(String::from_utf8_lossy(&normal).into_owned()))
    };
    Err(spot.refuse(problem, remedy, report))
}
