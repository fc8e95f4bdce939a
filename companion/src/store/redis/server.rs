//! Which server to connect to, and how to open a stream to it.

use core::fmt;

use redis::{ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo};
use tokio::net::TcpStream;

/// Both mean the same.
const SCHEMES: [&str; 2] = ["redis://", "valkey://"];

/// What this version does not know yet.
const LATER: [&str; 4] = ["rediss://", "valkeys://", "redis-cluster://", "redis-sentinel://"];

/// A Redis or Valkey server, with what it wants to know first: user, password, database.
#[derive(Clone, Debug)]
pub struct Server {
    host: String,
    port: u16,
    pub(super) settings: RedisConnectionInfo,
}

/// Why a text does not name a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocationError {
    /// A scheme that is none of a store.
    Scheme,
    /// A store that this version does not know yet.
    NotYet {
        /// Its scheme.
        scheme: &'static str,
    },
    /// The scheme is right and the rest is not.
    Malformed {
        /// What the rest lacks.
        detail: String,
    },
}

impl fmt::Display for LocationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme => f.write_str("not a store"),
            Self::NotYet { scheme } => write!(f, "{scheme} is not supported yet"),
            Self::Malformed { detail } => write!(f, "not a store: {detail}"),
        }?;
        f.write_str("; use memory or redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]")
    }
}

impl core::error::Error for LocationError {}

impl std::str::FromStr for Server {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, LocationError> {
        for scheme in LATER {
            if text.starts_with(scheme) {
                return Err(LocationError::NotYet { scheme });
            }
        }
        let rest =
            SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme)).ok_or(LocationError::Scheme)?;
        check_rest(rest)?;
        let malformed = |error: redis::RedisError| {
            let detail = error.detail().map_or_else(|| error.category().to_owned(), str::to_owned);
            LocationError::Malformed { detail }
        };
        let info = format!("redis://{rest}").into_connection_info().map_err(malformed)?;
        let ConnectionAddr::Tcp(host, port) = info.addr() else {
            return Err(LocationError::Scheme);
        };
        // The library's name would be one more command that a server of 6.2 refuses.
        let settings = info.redis_settings().clone().set_skip_set_lib_name();
        Ok(Self { host: host.clone(), port: *port, settings })
    }
}

/// What the library would not find, or not say in words that help. No word of the text itself: it may be a
/// part of a password.
fn check_rest(rest: &str) -> Result<(), LocationError> {
    let malformed = |detail: &str| Err(LocationError::Malformed { detail: detail.to_owned() });
    let Some((_, path)) = rest.split_once(['/', '?', '#']) else { return Ok(()) };
    if path.contains('@') {
        return malformed("in user and password, write / as %2F, ? as %3F, # as %23 and @ as %40");
    }
    let database = path.split(['?', '#']).next().unwrap_or_default();
    if !database.is_empty() && database.parse::<u32>().is_err() {
        return malformed("the database is a number");
    }
    Ok(())
}

impl PartialEq for Server {
    fn eq(&self, other: &Self) -> bool {
        let identity = |server: &Self| {
            let settings = &server.settings;
            let login = (settings.username().map(str::to_owned), settings.password().map(str::to_owned));
            (server.host.clone(), server.port, settings.db(), login)
        };
        identity(self) == identity(other)
    }
}

/// Without user and password: this goes into logs.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "redis://{}:{}/{}", self.host, self.port, self.settings.db())
    }
}

impl Server {
    pub(super) async fn open(&self) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        // A call is one small packet whose answer somebody waits for.
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Server, LocationError> {
        text.parse()
    }

    #[test]
    fn the_parts_of_a_url_are_read_and_the_password_is_not_shown() {
        let server = parse("redis://user:secret@example.com:7000/3").unwrap();
        assert_eq!(server.to_string(), "redis://example.com:7000/3");
        assert_eq!(server.settings.password(), Some("secret"));
        assert!(!format!("{server:?}").contains("secret"));
        assert_eq!(parse("redis://127.0.0.1").unwrap().to_string(), "redis://127.0.0.1:6379/0");
        assert_eq!(parse("valkey://h/1"), parse("redis://h/1"));
        assert_eq!(parse("redis://:a%2Fb%40c@h").unwrap().settings.password(), Some("a/b@c"));
    }

    #[test]
    fn what_is_not_a_store_is_refused_with_what_is() {
        assert_eq!(parse("http://127.0.0.1"), Err(LocationError::Scheme));
        assert_eq!(parse("redis:/127.0.0.1"), Err(LocationError::Scheme));
        assert_eq!(parse("rediss://h"), Err(LocationError::NotYet { scheme: "rediss://" }));
        for text in ["redis://", "redis://h:x", "redis://h/one"] {
            let error = parse(text).unwrap_err();
            assert!(matches!(error, LocationError::Malformed { .. }), "{text}: {error:?}");
            assert!(error.to_string().contains("use memory or redis://"), "{error}");
        }
        for text in ["redis://h/db", "redis://h/-1", "valkey://h:1/0/1", "redis://h/0x?protocol=resp3"] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with("not a store: the database is a number; use "), "{text}: {error}");
        }
    }

    #[test]
    fn a_refusal_does_not_show_the_password() {
        for text in [
            "redis://:secret@",
            "redis://:secret@h:port",
            "redis://:secret@h/db",
            "redis://:secret@0.0.0.0",
            "redis://:se/secret@h",
            "redis://:se#secret@h",
            "redis://:secret%ff@h",
            "redis://:secret@h?protocol=secret",
            "rediss://:secret@h",
            "http://:secret@h",
            ":secret@h",
            "secret",
        ] {
            let error = parse(text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
        }
    }
}
