//! A value and its place, and the ways to read one: each gives a value, or reports why there is none.

use core::ops::RangeInclusive;
use core::time::Duration;
use std::borrow::Cow;

use limiter::span;

use crate::error::{Error, Problem, Remedy, Type};
use crate::fields::Fields;
use crate::node::Node;
use crate::place::Place;
use crate::report::{Report, Reported};
use crate::shown;
use crate::words::Words;

/// The greatest whole number of a configuration. Above it doubles, which Envoy's `Struct` makes of all
/// numbers, are not exact.
pub const MAX_WHOLE: u64 = 1 << 53;

/// The remedy for what is there twice.
pub(crate) const KEEP_ONE: Remedy = Remedy::Do("keep one of them");

/// A value of the configuration and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot<'a> {
    pub(crate) node: &'a Node,
    pub(crate) place: Place<'a>,
}

impl<'a> Spot<'a> {
    pub(crate) const fn root(node: &'a Node) -> Self {
        Self { node, place: Place::root() }
    }

    pub(crate) const fn at(place: Place<'a>, node: &'a Node) -> Self {
        Self { node, place }
    }

    /// Reports what is wrong with this value.
    pub(crate) fn refuse(&self, problem: Problem, remedy: Remedy, report: &mut Report) -> Reported {
        let value = Some(shown::value(self.node));
        report.add(Error { path: self.place.path(), value, problem, remedy })
    }

    /// Reports that there are `count` of the `things` in this value, more than `most`.
    pub(crate) fn too_many(&self, count: usize, things: &str, most: usize, report: &mut Report) -> Reported {
        let value = Some(format!("{count} {things}"));
        let remedy = Remedy::AtMost(most as u64);
        report.add(Error { path: self.place.path(), value, problem: Problem::TooMany, remedy })
    }

    pub(crate) fn text(&self, form: &'static str, report: &mut Report) -> Result<&'a str, Reported> {
        self.node.as_text().ok_or_else(|| self.wrong_type(Type::Text, form, report))
    }

    pub(crate) fn flag(&self, report: &mut Report) -> Result<bool, Reported> {
        let Node::Flag(flag) = self.node else {
            return Err(self.wrong_type(Type::Flag, "use true or false without quotes", report));
        };
        Ok(*flag)
    }

    /// A whole number from 1 to [`MAX_WHOLE`]. `zero` is the remedy where it is 0.
    pub(crate) fn positive(&self, zero: &'static str, report: &mut Report) -> Result<u64, Reported> {
        self.positive_up_to(MAX_WHOLE, zero, report)
    }

    /// The same up to `most`, which is not above [`MAX_WHOLE`].
    pub(crate) fn positive_up_to(
        &self,
        most: u64,
        zero: &'static str,
        report: &mut Report,
    ) -> Result<u64, Reported> {
        let (problem, remedy) = match *self.node {
            Node::Whole(0) => (Problem::Zero, Remedy::Do(zero)),
            Node::Whole(number) if number <= most => return Ok(number),
            Node::Negative(_) => (Problem::Negative, Remedy::Do("use 1 or more")),
            Node::Float(number) if number < 0.0 => (Problem::Negative, Remedy::Do("use 1 or more")),
            Node::Float(0.0) => (Problem::Zero, Remedy::Do(zero)),
            Node::Whole(_) => (Problem::TooLarge, Remedy::AtMost(most)),
            // Up to `MAX_WHOLE` the conversion loses nothing.
            #[expect(clippy::cast_precision_loss, reason = "see above")]
            Node::Float(number) if number > most as f64 => (Problem::TooLarge, Remedy::AtMost(most)),
            Node::Float(number) if number.fract() != 0.0 => {
                (Problem::Fraction, Remedy::Do("round it to 1 or more"))
            }
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in range")]
            Node::Float(number) => return Ok(number as u64),
            Node::Text(_) => (Problem::WrongType(Type::Number), Remedy::Do("use a number without quotes")),
            _ => (Problem::WrongType(Type::Number), Remedy::Do("use a number")),
        };
        Err(self.refuse(problem, remedy, report))
    }

    /// A span of time within `range`; `form` says the range.
    pub(crate) fn span(
        &self,
        range: &RangeInclusive<Duration>,
        form: &'static str,
        report: &mut Report,
    ) -> Result<Duration, Reported> {
        let text = match self.node {
            Node::Whole(number) => Cow::Owned(number.to_string()),
            _ => Cow::Borrowed(self.text(form, report)?),
        };
        let problem = match span::parse(&text) {
            Ok(span) if range.contains(&span) => return Ok(span),
            Ok(_) | Err(span::SpanError::Zero | span::SpanError::TooLong) => Problem::OutOfRange,
            Err(span::SpanError::Malformed) => Problem::NotADuration,
        };
        let remedy = with_unit(&text, range).map_or(Remedy::Do(form), Remedy::Write);
        Err(self.refuse(problem, remedy, report))
    }

    /// A text of 1 to `most` bytes; `form` is the remedy for another one.
    pub(crate) fn filled_text(
        &self,
        most: usize,
        form: &'static str,
        report: &mut Report,
    ) -> Result<&'a str, Reported> {
        let text = self.text(form, report)?;
        let problem = match text.len() {
            0 => Problem::Empty,
            length if length > most => Problem::TooLarge,
            _ => return Ok(text),
        };
        Err(self.refuse(problem, Remedy::Do(form), report))
    }

    /// An object with these keys. Keys that cannot stand in it are reported; the others can be read.
    pub(crate) fn object(
        &self,
        words: &'static Words,
        form: &'static str,
        report: &mut Report,
    ) -> Result<Fields<'_>, Reported> {
        let Node::Object(entries) = self.node else {
            return Err(self.wrong_type(Type::Object, form, report));
        };
        Ok(Fields::new(&self.place, entries, words, report))
    }

    /// The one entry of an object such as `{"exact": "/orders"}`; `form` says what may stand there.
    pub(crate) fn form(
        &self,
        words: &'static Words,
        form: &'static str,
        report: &mut Report,
    ) -> Result<(&'static str, Spot<'_>), Reported> {
        let fields = self.object(words, form, report)?;
        if let Some(reported) = fields.reported() {
            return Err(reported);
        }
        let mut found = words.known.iter().filter_map(|key| Some((*key, fields.optional(key)?)));
        match (found.next(), found.next()) {
            (Some(one), None) => Ok(one),
            (None, _) => Err(self.refuse(Problem::Empty, Remedy::Do(form), report)),
            (Some(_), Some(_)) => Err(self.refuse(Problem::SeveralForms, KEEP_ONE, report)),
        }
    }

    /// One of the known words; `form` is the remedy where nothing known is near.
    pub(crate) fn word(
        &self,
        words: &'static Words,
        form: &'static str,
        report: &mut Report,
    ) -> Result<&'static str, Reported> {
        let text = self.text(form, report)?;
        words.find(text).ok_or_else(|| {
            let (problem, remedy) = words.judge(text, Problem::UnknownWord, Remedy::Do(form));
            self.refuse(problem, remedy, report)
        })
    }

    pub(crate) fn wrong_type(&self, wanted: Type, form: &'static str, report: &mut Report) -> Reported {
        self.refuse(Problem::WrongType(wanted), Remedy::Do(form), report)
    }
}

/// The span that a number without a unit was meant for: in seconds or milliseconds, where one of them alone is in
/// range.
fn with_unit(number: &str, range: &RangeInclusive<Duration>) -> Option<String> {
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let is_in_range = |text: &String| span::parse(text).is_ok_and(|span| range.contains(&span));
    let mut spans = ["s", "ms"].map(|unit| format!("{number}{unit}")).into_iter().filter(is_in_range);
    match (spans.next(), spans.next()) {
        (Some(span), None) => Some(span),
        _ => None,
    }
}
