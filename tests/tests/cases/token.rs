//! Tokens as an identity provider would sign them, and Envoy's filter that verifies them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

/// What provider and Envoy share; there is nothing behind it to be kept from anybody.
const SECRET: &[u8; 32] = b"the tests sign tokens with this.";

/// A JSON Web Token (RFC 7519) with these claims, signed with HS256.
pub(crate) fn sign(claims: &Value) -> String {
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", encode(&json!({ "alg": "HS256", "typ": "JWT" })), encode(claims));
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET).expect("a secret of any length will do");
    mac.update(signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
}

/// Envoy's `jwt_authn` for these tokens. Requests without one pass, too; those with a wrong one get 401.
pub(crate) fn filter(payload_in_metadata: &str) -> Value {
    let key = json!({ "kty": "oct", "alg": "HS256", "k": URL_SAFE_NO_PAD.encode(SECRET) });
    let provider = json!({
        "payload_in_metadata": payload_in_metadata,
        "local_jwks": { "inline_string": json!({ "keys": [key] }).to_string() },
    });
    let either = json!([{ "provider_name": "provider" }, { "allow_missing": {} }]);
    json!({
        "name": "envoy.filters.http.jwt_authn",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication",
            "providers": { "provider": provider },
            "rules": [{
                "match": { "prefix": "/" },
                "requires": { "requires_any": { "requirements": either } },
            }],
        },
    })
}
