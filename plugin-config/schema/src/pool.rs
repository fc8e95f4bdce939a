//! Texts to make configurations of: those that are right, those at the bounds, and some that only the parser refuses.

use serde_json::Value;

use crate::dice::Dice;
use crate::terrain::Point;

/// Texts by the definition that they are of.
const TEXTS: [(&str, &[&str]); 18] = [
    ("Timeout", &["1ms", "50ms", "10000ms", "1s", "10s", "0010s"]),
    ("RetryAfter", &["1s", "5s", "86400s", "1000ms", "86400000ms", "1m", "1440m", "24h", "1d", "01d"]),
    ("Rate", &["1/s", "2/s", "100/m", "1000/h", "5000/d", "1000000000/s", "999983/d", "0007/m", "1/d"]),
    ("HeaderName", &["x-api-key", "X-Api-Key", "authorization", "x-plan", "a", "!#$%&'*+.^_`|~", "cookie"]),
    ("CookieName", &["sid", "SID", "a.b", "__Host-x"]),
    ("QueryName", &["api_key", "user", "a b", "ü", "%41", "a+b", "="]),
    ("Method", &["GET", "POST", "PUT", "M-SEARCH", "HEAD"]),
    (
        "Path",
        &[
            "/",
            "/orders",
            "/orders/",
            "/api/",
            "/caf%C3%A9",
            "/~user/x;v=1",
            "/100%",
            "/a%2Fb",
            "/.well-known/x",
            "/...",
        ],
    ),
    ("Template", &["/users/{id}", "/{a}", "/users/{id}/orders", "/{a}/{b}/", "/{a}/{a}", "/x/*/{_1}"]),
    ("Regex", &["/v[0-9]+/.*", "a|b", "(?i)yes", ".*", "[", "\\d{1000}{1000}", "(a)", "é+", "^/x$"]),
    ("Step", &["payload", "sub", "ns", "com.example", "a b", "é", "\u{1}"]),
    ("RouteName", &["checkout", "internal", "a/b", "é", " "]),
    (
        "Host",
        &["api.example.com", "*.example.com", "localhost", "10.0.0.1", "[::1]", "[1:2]", "*.x", "a_b.c-d"],
    ),
    (
        "Cidr",
        &[
            "10.0.0.0/8",
            "203.0.113.7",
            "2001:db8::/32",
            "::/0",
            "0.0.0.0/00",
            "10.0.0.1/8",
            "::ffff:10.0.0.0/104",
            "::1",
            "1:2",
        ],
    ),
    ("HeaderText", &["yes", "", "a,b", "é", "a b", "a\tb", "mobile-2"]),
    ("HeaderStart", &["Bearer ", "mobile-", "é", "a\t"]),
    ("FieldValue", &["tidegate", "", " ", "a, b"]),
    ("", &["per-ip", "orders", "a", "Too many requests", "tidegate", "x y", "~"]),
];

/// Keys of maps.
const HEADERS: &[&str] =
    &["x-a", "X-A", "Host", "x-client", "accept", "x-b", "content-type", "Content-Type", "x-c", "via"];
const PLANS: &[&str] = &["gold", "silver", "internal", "a b", "é", "", "free", "banned"];

/// All of them.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    TEXTS.iter().flat_map(|(_, texts)| texts.iter()).chain(HEADERS).chain(PLANS).copied()
}

/// A text for this part of the schema.
pub(crate) fn text(point: &Point<'_>, dice: &mut Dice<'_>) -> String {
    let known =
        TEXTS.iter().find(|(name, _)| *name == point.definition()).map_or(&[][..], |(_, texts)| texts);
    let examples = point.schema.get("examples").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let example = dice.one_of(examples).and_then(Value::as_str);
    let text = match dice.one_of(known).copied() {
        Some(text) if example.is_none() || !dice.once_in(3) => text,
        _ => example.unwrap_or_default(),
    };
    match (dice.once_in(40), point.bound("maxLength")) {
        // As long as it may be, or longer by what is not ASCII.
        (true, Some(most)) => {
            let missing = most.saturating_sub(text.chars().count());
            text.to_owned() + &dice.one_of(&["a", "/a", "é"]).copied().unwrap_or_default().repeat(missing)
        }
        _ => text.to_owned(),
    }
}

/// A key for the map that stands there in the schema.
pub(crate) fn key(at: &str, dice: &mut Dice<'_>) -> String {
    let pool = if at.contains("Headers") || at.contains("headers") { HEADERS } else { PLANS };
    let key = dice.one_of(pool).copied().unwrap_or_default();
    // Maps at their bounds need more keys than there are.
    if dice.once_in(4) { format!("{key}{}", dice.roll(100)) } else { key.to_owned() }
}
