//! The keys of an object: which may stand there, and their values.

use crate::error::{Error, Problem, Remedy};
use crate::node::Node;
use crate::place::Place;
use crate::report::{Report, Reported};
use crate::spot::Spot;
use crate::words::Words;

/// The values of an object by key.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    place: &'a Place<'a>,
    entries: &'a [(String, Node)],
    words: &'static Words,
    reported: Option<Reported>,
}

impl<'a> Fields<'a> {
    /// The object at `place`. Keys that cannot stand in it are reported.
    pub(crate) fn new(
        place: &'a Place<'a>,
        entries: &'a [(String, Node)],
        words: &'static Words,
        report: &mut Report,
    ) -> Self {
        Self { place, entries, words, reported: check_keys(place, entries, words, report) }
    }

    /// Whether there is a key that cannot stand here.
    pub(crate) const fn reported(&self) -> Option<Reported> {
        self.reported
    }

    /// Whether there are no keys at all.
    pub(crate) const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn optional(&self, key: &'static str) -> Option<Spot<'a>> {
        let (_, node) = self.entries.iter().find(|(name, _)| name == key)?;
        Some(Spot::at(self.place.key(key), node))
    }

    pub(crate) fn required(
        &self,
        key: &'static str,
        form: &'static str,
        report: &mut Report,
    ) -> Result<Spot<'a>, Reported> {
        self.optional(key).ok_or_else(|| self.missing(key, Problem::Missing, form, report))
    }

    /// Reports that `key` is missing, unless its misspelling was reported.
    pub(crate) fn missing(
        &self,
        key: &'static str,
        problem: Problem,
        form: &'static str,
        report: &mut Report,
    ) -> Reported {
        let misspelled =
            |name: &str| self.words.find(name).is_none() && self.words.nearest(name) == Some(key);
        match self.reported {
            Some(reported) if self.entries.iter().any(|(name, _)| misspelled(name)) => reported,
            _ => {
                let path = self.place.key(key).path();
                report.add(Error { path, value: None, problem, remedy: Remedy::Do(form) })
            }
        }
    }
}

/// Reports the keys that cannot stand in an object.
fn check_keys(
    place: &Place<'_>,
    entries: &[(String, Node)],
    words: &'static Words,
    report: &mut Report,
) -> Option<Reported> {
    let mut seen: Vec<&str> = Vec::new();
    let mut reported = None;
    for (key, node) in entries {
        let (problem, remedy) = match words.find(key) {
            Some(known) if seen.contains(&known) => (Problem::RepeatedKey, Remedy::Do("keep one of them")),
            Some(known) => {
                seen.push(known);
                continue;
            }
            None => words.judge(key, Problem::UnknownKey, Remedy::OneOf(words.known)),
        };
        reported = Some(Spot::at(place.key(key), node).refuse(problem, remedy, report));
    }
    reported
}
