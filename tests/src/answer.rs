//! An HTTP answer as tests look at it, and the client that gets it.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

/// A test that waits longer for one answer than this has failed: a hang must not look like a success.
const DEADLINE: Duration = Duration::from_secs(10);

/// A complete answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The header fields.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The values of a field joined as HTTP joins them, or `None` where the field is absent.
    pub fn header(&self, name: &str) -> Option<String> {
        let values: Vec<_> = self
            .headers
            .get_all(name)
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    /// What is left of a policy by the field `RateLimit`, or `None` where the field does not tell of it.
    pub fn remaining(&self, policy: &str) -> Option<u64> {
        let field = self.header("ratelimit")?;
        let start = format!("\"{policy}\";r=");
        let number = field.split(", ").find_map(|member| member.strip_prefix(&start))?;
        let number = number.split(';').next()?;
        Some(number.parse().unwrap_or_else(|_| panic!("no number is left in {field}")))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in the body {:?}", self.text()))
    }

    /// Reads all bytes of a connection that carried one HTTP/1.1 answer.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let text = || String::from_utf8_lossy(bytes);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no answer: {:?}", text()));
        let mut lines = bytes[..end].split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let status = lines.next().and_then(|line| line.get(9..12)).and_then(|code| str::from_utf8(code).ok());
        let status = status.and_then(|code| code.parse().ok());
        let mut headers = HeaderMap::new();
        for line in lines {
            let colon = line.iter().position(|byte| *byte == b':').expect("a header line has a colon");
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            let name = HeaderName::from_bytes(name).expect("a valid field name");
            headers.append(name, HeaderValue::from_bytes(value).expect("a valid field value"));
        }
        let status = status.unwrap_or_else(|| panic!("no status: {:?}", text()));
        Self { status, headers, body: bytes[end + 4..].to_vec() }
    }

    /// Sends a request and takes the whole answer.
    pub async fn receive(request: reqwest::RequestBuilder) -> Self {
        Self::try_receive(request).await.expect("the server answers")
    }

    /// `Err` where there is no server, no answer in time, or half of one.
    pub(crate) async fn try_receive(request: reqwest::RequestBuilder) -> reqwest::Result<Self> {
        let response = request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Self { status, headers, body: response.bytes().await?.to_vec() })
    }
}

/// A client that shows what was answered: it follows no redirect, keeps no cookie, uses no proxy,
/// and gives up after ten seconds.
pub fn client() -> reqwest::Client {
    builder().build().expect("the client needs nothing from outside")
}

/// The same with a connection for each request. A server that drains its connections may end one in the moment
/// in which a request is sent on it again, which is nobody's fault and no answer.
pub(crate) fn client_of_new_connections() -> reqwest::Client {
    builder().pool_max_idle_per_host(0).build().expect("the client needs nothing from outside")
}

/// The same by HTTP/2, without asking whether the server knows it.
pub fn client_of_http2() -> reqwest::Client {
    builder().http2_prior_knowledge().build().expect("the client needs nothing from outside")
}

fn builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().timeout(DEADLINE)
}
