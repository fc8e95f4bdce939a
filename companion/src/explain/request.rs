//! A request as it is described on a command line.

use core::fmt;
use core::str::FromStr;

use limiter::request::{Given, JWT_AUTHN};

use super::Explain;

/// A method and a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    method: String,
    target: String,
}

/// A header field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    name: String,
    value: String,
}

/// A value under a path of metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataEntry {
    path: Vec<String>,
    value: Vec<u8>,
}

/// Why a text describes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescribedError(&'static str);

impl fmt::Display for DescribedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for DescribedError {}

impl FromStr for Target {
    type Err = DescribedError;

    fn from_str(text: &str) -> Result<Self, DescribedError> {
        let (method, target) = match text.trim().split_once(' ') {
            Some((method, target)) => (method, target.trim()),
            // A path alone is what is typed most.
            None => ("GET", text.trim()),
        };
        if target.starts_with('/') || target == "*" {
            Ok(Self { method: method.to_owned(), target: target.to_owned() })
        } else {
            Err(DescribedError("use a method and a path, as in \"POST /orders?x=1\""))
        }
    }
}

impl FromStr for Field {
    type Err = DescribedError;

    fn from_str(text: &str) -> Result<Self, DescribedError> {
        let (name, value) = text.split_once(':').unwrap_or_default();
        if name.trim().is_empty() {
            return Err(DescribedError("use a name, a colon and a value, as in \"x-api-key: abc\""));
        }
        Ok(Self { name: name.trim().to_ascii_lowercase(), value: value.trim().to_owned() })
    }
}

impl FromStr for MetadataEntry {
    type Err = DescribedError;

    fn from_str(text: &str) -> Result<Self, DescribedError> {
        let error =
            DescribedError("use a path and a value, as in payload.sub=42 or [\"payload\", \"a.b\"]=42");
        let (path, value) = if text.starts_with('[') {
            let mut paths = serde_json::Deserializer::from_str(text).into_iter::<Vec<String>>();
            let path = paths.next().and_then(Result::ok).ok_or(error)?;
            let rest = text.get(paths.byte_offset()..).and_then(|rest| rest.trim_start().strip_prefix('='));
            (path, rest.ok_or(error)?)
        } else {
            let (path, value) = text.split_once('=').ok_or(error)?;
            (path.split('.').map(str::to_owned).collect(), value)
        };
        if path.len() < 2 || path.iter().any(String::is_empty) {
            return Err(error);
        }
        Ok(Self { path, value: value.as_bytes().to_vec() })
    }
}

impl Explain {
    /// The request as the policies see it.
    pub(super) fn given(&self) -> Given {
        let host = self.headers.iter().find(|field| field.name == "host").map(|field| field.value.as_str());
        let headers = self.headers.iter().filter(|field| field.name != "host");
        let claims = self.claims.iter().map(|claim| {
            let path = core::iter::once(JWT_AUTHN.to_owned()).chain(claim.path.iter().cloned());
            (path.collect(), claim.value.clone())
        });
        let entry = |entry: &MetadataEntry| (entry.path.clone(), entry.value.clone());
        Given {
            method: self.request.method.clone().into_bytes(),
            target: self.request.target.clone().into_bytes(),
            authority: self.host.as_deref().or(host).unwrap_or_default().as_bytes().to_vec(),
            address: Some(self.ip),
            headers: headers.map(|field| (field.name.clone(), field.value.clone().into_bytes())).collect(),
            route: self.route.clone().into_bytes(),
            metadata: claims.chain(self.metadata.iter().map(entry)).collect(),
            route_metadata: self.route_metadata.iter().map(entry).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_method_and_a_path() {
        let target = |method: &str, target: &str| Target { method: method.into(), target: target.into() };
        assert_eq!("POST /orders?x=1".parse(), Ok(target("POST", "/orders?x=1")));
        assert_eq!("/orders".parse(), Ok(target("GET", "/orders")));
        for text in ["", "POST", "POST orders", "http://a/b"] {
            assert!(text.parse::<Target>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_field_is_a_name_and_a_value() {
        let field = Field { name: "x-api-key".into(), value: "a: b".into() };
        assert_eq!("X-Api-Key:  a: b ".parse(), Ok(field));
        assert!("abc".parse::<Field>().is_err());
        assert!(": abc".parse::<Field>().is_err());
    }

    #[test]
    fn an_entry_of_metadata_is_a_path_and_a_value() {
        let entry = |path: &[&str], value: &str| MetadataEntry {
            path: path.iter().map(|part| (*part).to_owned()).collect(),
            value: value.into(),
        };
        assert_eq!("payload.sub=a=b".parse(), Ok(entry(&["payload", "sub"], "a=b")));
        assert_eq!(r#"["payload", "a.b"] =42"#.parse(), Ok(entry(&["payload", "a.b"], "42")));
        for text in ["sub=1", "payload.sub", ".sub=1", "[1]=2", r#"["a"]=1"#, r#"["a", "b"]"#] {
            assert!(text.parse::<MetadataEntry>().is_err(), "{text:?}");
        }
    }
}
