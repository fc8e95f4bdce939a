//! Where log lines go: to standard error, structured, for people or for programs.

use std::io::IsTerminal;

use tracing::level_filters::LevelFilter;

use crate::args::{LogFormat, LogLevel};

/// Sets up the log of this process, once.
pub fn start(format: LogFormat, level: LogLevel) {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let builder = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
}

/// What `action` logs on this thread.
#[cfg(test)]
pub(crate) fn lines_of(action: impl FnOnce()) -> String {
    use std::io::{Read, Seek};

    let mut file = tempfile::tempfile().unwrap();
    let writer = std::sync::Mutex::new(file.try_clone().unwrap());
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(writer).finish();
    tracing::subscriber::with_default(subscriber, action);
    let mut lines = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut lines).unwrap();
    lines
}
