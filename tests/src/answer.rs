//! An HTTP answer as tests look at it, and the client that gets it.

use std::time::Duration;

use reqwest::header::HeaderMap;
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

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in the body {:?}", self.text()))
    }

    pub(crate) async fn receive(request: reqwest::RequestBuilder) -> Self {
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
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .timeout(DEADLINE)
        .build()
        .expect("the client needs nothing from outside")
}
