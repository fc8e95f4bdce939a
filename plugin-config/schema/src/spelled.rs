//! The same JSON in other spellings: numbers as doubles, and keys that come twice.

use serde_json::Value;

use crate::dice::Dice;

/// Writes a configuration; `doubled`: with one of its first keys twice, which are three at least.
pub fn spell(value: &Value, doubled: bool, dice: &mut Dice<'_>) -> String {
    let mut text = String::new();
    let mut left = if doubled { 2 + dice.roll(3) } else { 0 };
    write(value, &mut left, dice, &mut text);
    text
}

fn write(value: &Value, left: &mut usize, dice: &mut Dice<'_>, text: &mut String) {
    match value {
        Value::Object(object) => {
            text.push('{');
            let mut is_first = true;
            for (key, value) in object {
                *left = left.saturating_sub(1);
                for _ in 0..if *left == 1 { 2 } else { 1 } {
                    text.push_str(if is_first { "" } else { "," });
                    is_first = false;
                    text.push_str(&Value::from(key.as_str()).to_string());
                    text.push(':');
                    write(value, left, dice, text);
                }
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { ", " });
                write(item, left, dice, text);
            }
            text.push(']');
        }
        Value::Number(number) if number.is_u64() || number.is_i64() => {
            let whole = number.to_string();
            text.push_str(&whole);
            text.push_str(["", ".0", "e0", "0E-1"].get(dice.roll(12)).copied().unwrap_or_default());
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&value.to_string());
        }
    }
}
