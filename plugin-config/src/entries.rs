//! The entries of lists, and of objects whose keys are names, and the ways to read all of them.

use crate::error::{Problem, Remedy, Type};
use crate::node::Node;
use crate::report::{Report, Reported};
use crate::spot::{KEEP_ONE, Spot};

impl<'a> Spot<'a> {
    /// The entries of a list of at most `most` of the `things`.
    pub(crate) fn list(
        &self,
        most: usize,
        things: &str,
        form: &'static str,
        report: &mut Report,
    ) -> Result<Vec<Spot<'_>>, Reported> {
        let Node::List(items) = self.node else {
            return Err(self.wrong_type(Type::List, form, report));
        };
        if items.len() > most {
            return Err(self.too_many(items.len(), things, most, report));
        }
        let spot = |(index, node)| Spot { node, place: self.place.index(index) };
        Ok(items.iter().enumerate().map(spot).collect())
    }

    /// The same for a list that must have entries; `form` says what becomes of an empty one.
    pub(crate) fn filled_list(
        &self,
        most: usize,
        things: &str,
        form: &'static str,
        report: &mut Report,
    ) -> Result<Vec<Spot<'_>>, Reported> {
        if matches!(self.node, Node::List(items) if items.is_empty()) {
            return Err(self.refuse(Problem::Empty, Remedy::Do(form), report));
        }
        self.list(most, things, form, report)
    }

    /// The entries of an object whose keys are names, at most `most` of the `things`. `form` says what becomes of an
    /// empty one. A name that comes again is reported, and left out.
    pub(crate) fn named(
        &self,
        most: usize,
        things: &str,
        form: &'static str,
        report: &mut Report,
    ) -> Result<Vec<(&'a str, Spot<'_>)>, Reported> {
        let Node::Object(entries) = self.node else {
            return Err(self.wrong_type(Type::Object, form, report));
        };
        if entries.is_empty() {
            return Err(self.refuse(Problem::Empty, Remedy::Do(form), report));
        }
        if entries.len() > most {
            return Err(self.too_many(entries.len(), things, most, report));
        }
        let mut named: Vec<(&str, Spot<'_>)> = Vec::new();
        for (name, node) in entries {
            let spot = Spot { node, place: self.place.key(name) };
            if named.iter().any(|(other, _)| other == name) {
                spot.refuse(Problem::RepeatedKey, KEEP_ONE, report);
            } else {
                named.push((name, spot));
            }
        }
        Ok(named)
    }
}

/// Reads all of `spots`, those after a wrong one too; `read` is given what was read before.
pub(crate) fn all<T>(
    spots: &[Spot<'_>],
    report: &mut Report,
    mut read: impl FnMut(&Spot<'_>, &[T], &mut Report) -> Result<T, Reported>,
) -> Result<Vec<T>, Reported> {
    let mut values = Vec::new();
    let mut reported = None;
    for spot in spots {
        match read(spot, &values, report) {
            Ok(value) => values.push(value),
            Err(error) => reported = Some(error),
        }
    }
    reported.map_or(Ok(values), Err)
}

/// The same for a list without repetitions.
pub(crate) fn all_different<T: PartialEq>(
    spots: &[Spot<'_>],
    report: &mut Report,
    read: impl Fn(&Spot<'_>, &mut Report) -> Result<T, Reported>,
) -> Result<Vec<T>, Reported> {
    all(spots, report, |spot, before, report| {
        let value = read(spot, report)?;
        if before.contains(&value) {
            return Err(spot.refuse(Problem::Repeated, KEEP_ONE, report));
        }
        Ok(value)
    })
}
