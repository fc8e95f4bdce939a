//! Texts with a form of their own. Lengths are in characters, of which a schema counts; where others than ASCII may
//! stand, the parser's bound in bytes is narrower.

use limiter::rate::MAX_COUNT;
use plugin_config::{MAX_HOST_BYTES, MAX_NAME_BYTES, MAX_PATH_BYTES, MAX_TOKEN_BYTES, MAX_VALUE_BYTES};
use schemars::JsonSchema;

use crate::numbers::up_to;

/// RFC 9110, section 5.6.2.
pub(super) const TOKEN: &str = "^[!#$%&'*+.^_`|~0-9A-Za-z-]*$";
/// The same without small letters.
const UPPER_TOKEN: &str = "^[!#$%&'*+.^_`|~0-9A-Z-]*$";
/// The header that is compared as a host elsewhere, in any case.
const HOST_HEADER: &str = "^[Hh][Oo][Ss][Tt]$";
/// A path without query and fragment, of what clients can send as it is.
const PATH: &str = "^/[!\"$->@-\\[\\]-~]*$";
/// A path with variables, each a whole segment.
const TEMPLATE: &str = "^(/([!\"$-.0->@-\\[\\]-z|~]*|\\{[A-Za-z_][A-Za-z0-9_]*\\}))+$";
/// What no path has in the spelling in which paths are compared: two slashes, dot segments, escapes of what may stand
/// there itself, and other escapes in lower case.
const NOT_NORMAL: &str = "//|/\\.\\.?(/|$)|%(2[DEde]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff]|7[Ee])|%([a-f][0-9A-Fa-f]|[0-9A-F][a-f])";
/// What a path to the letter does not have, since other tools mean something else by it: stars at its end or as a
/// segment, and variables.
const WILD: &str = "\\*$|/\\*\\*?(/|$)|/\\{[^/]+\\}(/|$)";
/// The value of a header: tabs and no other control characters, and no blanks around it.
const VALUE: &str =
    "^([^\\u0000-\\u0020\\u007f]([^\\u0000-\\u0008\\u000a-\\u001f\\u007f]*[^\\u0000-\\u0020\\u007f])?)?$";
/// The same without its end.
const VALUE_START: &str = "^[^\\u0000-\\u0020\\u007f][^\\u0000-\\u0008\\u000a-\\u001f\\u007f]*$";
/// Labels of DNS, or what may be an address of IPv6.
const HOST: &str = "^(\\*\\.)?([a-z0-9_-]+(\\.[a-z0-9_-]+)*|\\[[0-9a-f:.]+\\])$";
/// Any text without NUL, which separates them on the way to Envoy.
const WITHOUT_NUL: &str = "^[^\\u0000]*$";

fn timeout() -> String {
    format!("^({}ms|{}s)$", up_to(10_000), up_to(10))
}

fn retry_after() -> String {
    let (seconds, minutes, hours) = (up_to(86_400), up_to(1_440), up_to(24));
    format!("^({seconds}000ms|{seconds}s|{minutes}m|{hours}h|{}d)$", up_to(1))
}

/// An address of IPv4, or what may be one of IPv6, and the bits that are the block's.
fn cidr() -> String {
    let byte = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
    let bits = "(0{0,2}[0-9]|0?[12][0-9]|0?3[0-2])";
    let more_bits = "(0{0,2}[0-9]|0?[1-9][0-9]|1[01][0-9]|12[0-8])";
    format!("^({byte}(\\.{byte}){{3}}(/{bits})?|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*(/{more_bits})?)$")
}

fn rate() -> String {
    format!("^{}/[smhd]$", up_to(MAX_COUNT))
}

/// A span of time from `1ms` to `10s`.
#[derive(JsonSchema)]
#[schemars(extend("pattern" = timeout(), "default" = "50ms", "examples" = ["50ms", "1s"]))]
pub struct Timeout(pub String);

/// A span of time in whole seconds, from `1s` to `1d`: a number and one of `ms`, `s`, `m`, `h`, `d`.
#[derive(JsonSchema)]
#[schemars(extend("pattern" = retry_after(), "examples" = ["5s", "1m"]))]
pub struct RetryAfter(pub String);

/// Tokens in a span: a whole number of 1 to 1000000000, a slash, and one of `s` (second), `m` (minute), `h` (hour), `d`
/// (day).
#[derive(JsonSchema)]
#[schemars(extend("pattern" = rate(), "examples" = ["2/s", "100/m", "1000/h", "5000/d"]))]
pub struct Rate(pub String);

/// The name of a request header, in any case. `host` is not one: hosts have keys of their own.
#[derive(JsonSchema)]
#[schemars(extend(
    "pattern" = TOKEN, "not" = { "pattern": HOST_HEADER }, "minLength" = 1, "maxLength" = MAX_TOKEN_BYTES, "examples" = ["x-api-key", "authorization"]
))]
pub struct HeaderName(pub String);

/// The name of a cookie, whose case counts.
#[derive(JsonSchema)]
#[schemars(extend("pattern" = TOKEN, "minLength" = 1, "maxLength" = MAX_TOKEN_BYTES, "examples" = ["sid"]))]
pub struct CookieName(pub String);

/// The name of a parameter of the query, decoded: `a b` for what a URL has as `a%20b` or `a+b`. At most 128 bytes.
#[derive(JsonSchema)]
#[schemars(extend("minLength" = 1, "maxLength" = MAX_NAME_BYTES, "examples" = ["api_key"]))]
pub struct QueryName(pub String);

/// A method in upper case.
#[derive(JsonSchema)]
#[schemars(extend(
    "pattern" = UPPER_TOKEN, "minLength" = 1, "maxLength" = MAX_TOKEN_BYTES, "examples" = ["GET", "POST"]
))]
pub struct Method(pub String);

/// A path in the spelling in which paths are compared, without wildcards and variables: it starts with a slash and has no query, no doubled slashes, no
/// dot segments; letters, digits, `-`, `.`, `_` and `~` are not percent-encoded, and what is has upper-case digits.
#[derive(JsonSchema)]
#[schemars(extend(
    "pattern" = PATH, "not" = { "pattern": format!("{NOT_NORMAL}|{WILD}") }, "maxLength" = MAX_PATH_BYTES,
    "examples" = ["/orders", "/api/", "/caf%C3%A9"]
))]
pub struct Path(pub String);

/// A path some of whose segments are variables, as `{id}`: each takes one segment that is not empty. Names are letters,
/// digits and underscores, each once.
#[derive(JsonSchema)]
#[schemars(extend(
    "pattern" = TEMPLATE, "not" = { "pattern": NOT_NORMAL }, "maxLength" = MAX_PATH_BYTES,
    "allOf" = [{ "pattern": "\\{" }], "examples" = ["/users/{id}", "/users/{id}/orders"]
))]
pub struct Template(pub String);

/// A regular expression that the whole text must fit, in the syntax of the Rust crate `regex-lite`. At most 256 bytes.
#[derive(JsonSchema)]
#[schemars(extend("minLength" = 1, "maxLength" = limiter::matching::MAX_PATTERN_BYTES, "examples" = ["/v[0-9]+/.*"]))]
pub struct Regex(pub String);

/// A part of the way to a value in metadata: at most 128 bytes, no NUL.
#[derive(JsonSchema)]
#[schemars(extend("pattern" = WITHOUT_NUL, "minLength" = 1, "maxLength" = MAX_NAME_BYTES, "examples" = ["sub"]))]
pub struct Step(pub String);

/// A host: `api.example.com`, `*.example.com` for every name below it, or an address, of IPv6 as `[::1]`. In lower case,
/// without port and without a dot at its end.
#[derive(JsonSchema)]
#[schemars(extend(
    "minLength" = 1, "maxLength" = MAX_HOST_BYTES, "pattern" = HOST, "examples" = ["api.example.com", "*.example.com"]
))]
pub struct Host(pub String);

/// A block of addresses, or one address. The bits that the block leaves open must be zero.
#[derive(JsonSchema)]
#[schemars(extend("pattern" = cidr(), "examples" = ["10.0.0.0/8", "2001:db8::/32", "203.0.113.7"]))]
pub struct Cidr(pub String);

/// The value of a header, without blanks around it. At most 1024 bytes.
#[derive(JsonSchema)]
#[schemars(extend("pattern" = VALUE, "maxLength" = MAX_VALUE_BYTES))]
pub struct HeaderText(pub String);

/// What the value of a header starts with. At most 1024 bytes.
#[derive(JsonSchema)]
#[schemars(extend("pattern" = VALUE_START, "minLength" = 1, "maxLength" = MAX_VALUE_BYTES))]
pub struct HeaderStart(pub String);
