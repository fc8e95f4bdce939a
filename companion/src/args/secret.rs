//! Passwords stay out of messages about the command line, which end up in logs.

use std::ffi::OsStr;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;

use crate::store::Location;

/// Reads a store. Unlike clap's own parsers it does not print a value that it refuses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocationParser;

impl TypedValueParser for LocationParser {
    type Value = Location;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Location, clap::Error> {
        let text = value.to_string_lossy();
        text.parse::<Location>().map_err(|error| {
            let message = format!("invalid value for '--store <STORE>' or TIDEGATE_STORE: {error}\n");
            clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }
}

/// A message about a command line without the passwords of its arguments, which clap quotes where it does
/// not know what to do with them: what stands before the last `@` of each is left out.
pub fn without_passwords(message: &str, arguments: impl IntoIterator<Item = String>) -> String {
    let mut message = message.to_owned();
    for argument in arguments {
        let Some((before, _)) = argument.rsplit_once('@') else { continue };
        let login = before.split_once("://").map_or(before, |(_, login)| login);
        if !login.is_empty() {
            message = message.replace(login, "…");
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_left_out_wherever_it_is_quoted() {
        let without = |argument: &str| {
            without_passwords(&format!("unexpected argument '{argument}' found"), [argument.to_owned()])
        };
        assert_eq!(without("redis://:secret@h/0"), "unexpected argument 'redis://…@h/0' found");
        assert_eq!(without("--x=redis://me:s@cr//t@h"), "unexpected argument '--x=redis://…@h' found");
        assert_eq!(without(":secret@h"), "unexpected argument '…@h' found");
        assert_eq!(without("redis://h"), "unexpected argument 'redis://h' found");
        assert_eq!(without("redis://@h"), "unexpected argument 'redis://@h' found");
    }
}
