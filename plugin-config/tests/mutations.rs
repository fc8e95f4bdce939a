//! Whatever stands in a configuration, the parser does not panic, and every error says where. Cases are
//! numbered by the seed that makes them; a failure names it.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests may panic")]

use plugin_config::parse;
use serde_json::{Value, json};
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const WHOLE: &str = include_str!("accepted/whole.json");

/// A small generator of numbers (`SplitMix64`): the tests also run where there is no source of chance.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % sides as u64).unwrap()
    }
}

/// Every error says where, and shows nothing that is long or disturbs a terminal.
fn check(bytes: &[u8], seed: u64) -> bool {
    let errors = match plugin_config::check(bytes) {
        Ok((_, warnings)) => {
            for warning in warnings {
                let text = warning.to_string();
                assert!(text.len() < 1000 && !text.chars().any(char::is_control), "seed {seed}: {text:?}");
            }
            assert!(parse(bytes).is_ok(), "seed {seed}");
            return true;
        }
        Err(errors) => errors,
    };
    assert!(errors.iter().count() > 0, "seed {seed}");
    for error in &errors {
        let text = error.to_string();
        assert!(!error.path.to_string().is_empty(), "seed {seed}: {text}");
        assert!(text.len() < 1000, "seed {seed}: {text}");
        assert!(!text.chars().any(char::is_control), "seed {seed}: {text:?}");
    }
    false
}

#[test]
fn changed_bytes_never_panic_and_every_error_has_a_path() {
    const BYTES: &[u8] = b"\"\\{}[],:0-e.tfnu \n\0\xff\xc3:/?#%";
    for seed in 0..3_000 {
        let mut dice = Dice(seed);
        let mut bytes = WHOLE.as_bytes().to_vec();
        for _ in 0..=dice.roll(4) {
            let at = dice.roll(bytes.len());
            match dice.roll(4) {
                0 => bytes[at] = BYTES[dice.roll(BYTES.len())],
                1 => bytes.insert(at, BYTES[dice.roll(BYTES.len())]),
                2 => drop(bytes.remove(at)),
                _ => bytes.truncate(at + 1),
            }
        }
        check(&bytes, seed);
    }
}

#[test]
fn changed_values_never_panic_and_every_error_has_a_path() {
    let (mut accepted, mut refused) = (0, 0);
    for seed in 0..3_000 {
        let mut dice = Dice(seed);
        let mut whole: Value = serde_json::from_str(WHOLE).unwrap();
        for _ in 0..=dice.roll(3) {
            change(&mut whole, &mut dice);
        }
        if check(whole.to_string().as_bytes(), seed) { accepted += 1 } else { refused += 1 }
    }
    // Else the changes would show nothing.
    assert!(accepted > 30 && refused > 1_000, "{accepted} accepted, {refused} refused");
}

/// Changes a value somewhere below this one.
fn change(value: &mut Value, dice: &mut Dice) {
    let pick = dice.roll(6);
    match value {
        Value::Array(items) if !items.is_empty() && pick > 0 => {
            let at = dice.roll(items.len());
            match pick {
                1 => drop(items.remove(at)),
                2 => items.push(items[at].clone()),
                _ => change(&mut items[at], dice),
            }
        }
        Value::Object(entries) if !entries.is_empty() && pick > 0 => {
            let key = entries.keys().nth(dice.roll(entries.len())).unwrap().clone();
            match pick {
                1 => drop(entries.remove(&key)),
                2 => {
                    let value = entries.remove(&key).unwrap();
                    let names = ["", "first", "regex", "\u{202e}", "nmae", "\n", "exact", "limit"];
                    entries.insert(names[dice.roll(names.len())].into(), value);
                }
                _ => change(&mut entries[&key], dice),
            }
        }
        _ => *value = some_value(dice),
    }
}

fn some_value(dice: &mut Dice) -> Value {
    let values = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(3.0),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(f64::MAX),
        json!(""),
        json!("ip"),
        json!("path"),
        json!("exact"),
        json!("local"),
        json!("lease"),
        json!("async"),
        json!("share"),
        json!("5s"),
        json!("99999999999999999999d"),
        json!("99999999999999999999/s"),
        json!("/%"),
        json!("/{id}"),
        json!("/a/*"),
        json!("(a|b)+[^c]"),
        json!("*.example.com"),
        json!("10.0.0.0/8"),
        json!("unlimited"),
        json!("blocked"),
        json!("skip"),
        json!(64),
        json!("/../é"),
        json!("\u{1b}[2J\u{202e}'\"\\"),
        json!("x".repeat(5_000)),
        json!([]),
        json!({}),
        json!(["ip", "ip"]),
        json!({"header": "x"}),
        json!({"first": ["ip"]}),
        json!({"claim": ["payload", "sub"]}),
        json!({"x": "blocked"}),
        json!({"present": true}),
        json!({"text": "x"}),
        json!({"regex": "(("}),
        json!({"token_bucket": {"capacity": 1, "rate": "1/s"}}),
        json!([[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]),
    ];
    values[dice.roll(values.len())].clone()
}
