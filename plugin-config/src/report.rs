//! The errors of one configuration, gathered while it is read on.

use core::fmt;

use crate::error::Error;

/// The errors of one configuration, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors {
    errors: Vec<Error>,
    left_out: usize,
}

/// The most errors that are told at once; of the others, the count.
pub const MAX_ERRORS: usize = 128;

impl Errors {
    /// The errors, at most [`MAX_ERRORS`].
    pub fn iter(&self) -> core::slice::Iter<'_, Error> {
        self.errors.iter()
    }

    /// How many errors more there are.
    pub const fn left_out(&self) -> usize {
        self.left_out
    }
}

impl From<Error> for Errors {
    fn from(error: Error) -> Self {
        Self { errors: vec![error], left_out: 0 }
    }
}

impl<'a> IntoIterator for &'a Errors {
    type Item = &'a Error;
    type IntoIter = core::slice::Iter<'a, Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl core::error::Error for Errors {}

/// One error a line, without a line feed at the end.
impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        if self.left_out > 0 {
            write!(f, "\n{} more errors are not shown", self.left_out)?;
        }
        Ok(())
    }
}

/// Where readers put what they find wrong.
#[derive(Debug, Default)]
pub(crate) struct Report {
    errors: Vec<Error>,
    left_out: usize,
}

/// The proof that an error was reported: a reader that gives no value must have said why.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported(());

impl Report {
    pub(crate) fn add(&mut self, error: Error) -> Reported {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(error);
        } else {
            self.left_out += 1;
        }
        Reported(())
    }

    /// The value, unless something was reported.
    pub(crate) fn finish<T>(self, value: T) -> Result<T, Errors> {
        if self.errors.is_empty() {
            return Ok(value);
        }
        Err(Errors { errors: self.errors, left_out: self.left_out })
    }
}
