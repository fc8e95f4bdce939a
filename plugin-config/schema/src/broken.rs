//! Ways to break a configuration, each at one place.

use plugin_config::Step;
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::made::{find, make};
use crate::terrain::{Terrain, escaped};

/// Every place of a value, its own first.
pub fn places(value: &Value) -> Vec<Vec<Step>> {
    let mut places = vec![Vec::new()];
    let inner: Vec<(Step, &Value)> = match value {
        Value::Object(object) => object.iter().map(|(key, value)| (Step::Key(key.clone()), value)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, value)| (Step::Index(index), value)).collect()
        }
        _ => Vec::new(),
    };
    for (step, value) in inner {
        places.extend(self::places(value).into_iter().map(|place| [vec![step.clone()], place].concat()));
    }
    places
}

/// A place as a JSON pointer.
pub fn pointer(place: &[Step]) -> String {
    place.iter().fold(String::new(), |pointer, step| match step {
        Step::Key(key) => format!("{pointer}/{}", escaped(key)),
        Step::Index(index) => format!("{pointer}/{index}"),
    })
}

/// Breaks the value at a place, or at least changes it.
pub fn break_at(value: &mut Value, place: &[Step], terrain: &Terrain, dice: &mut Dice<'_>) {
    if dice.once_in(6) {
        take_out(value, place);
    } else if let Some(there) = find(value, place) {
        change(there, terrain, dice);
    }
}

fn take_out(value: &mut Value, place: &[Step]) {
    let Some((last, front)) = place.split_last() else { return };
    match (find(value, front), last) {
        (Some(Value::Object(object)), Step::Key(key)) => drop(object.remove(key)),
        (Some(Value::Array(items)), Step::Index(index)) if *index < items.len() => drop(items.remove(*index)),
        _ => {}
    }
}

/// Changes a value: by what its type suggests, or to something else.
fn change(value: &mut Value, terrain: &Terrain, dice: &mut Dice<'_>) {
    if dice.once_in(4) {
        *value = other(terrain, dice);
        return;
    }
    match value {
        Value::Object(object) => {
            let keys: Vec<String> = object.keys().cloned().collect();
            let key = dice.one_of(&keys).cloned().unwrap_or_default();
            match dice.roll(3) {
                0 => drop(object.insert("unknown".to_owned(), 1.into())),
                1 => {
                    let inner = object.remove(&key).unwrap_or_default();
                    object.insert(misspelled(&key, dice), inner);
                }
                _ => drop(object.insert(misspelled(&key, dice), other(terrain, dice))),
            }
        }
        Value::Array(list) => match (dice.roll(3), dice.one_of(&*list).cloned()) {
            (0, Some(item)) => list.push(item),
            (1, Some(item)) if list.len() < 65 => list.resize(list.len() + 65, item),
            _ => list.push(other(terrain, dice)),
        },
        Value::String(text) => {
            let pieces = [
                " ", "*", "(", "\\", "é", "\u{0}", "?", "/", "//", "/../", "%41", "%2f", "A", "{b}", ":80",
                ".", "\n", "0", "a b",
            ];
            let piece = dice.one_of(&pieces).copied().unwrap_or_default();
            *text = match dice.roll(4) {
                0 => format!("{piece}{text}"),
                1 => text.chars().skip(1).collect(),
                2 => text.repeat(dice.roll(3) * (1_200 / (text.len() + 1) + 1)),
                _ => format!("{text}{piece}"),
            };
        }
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            let changed = [-number, number + 0.5, number * 2.0, number * 1e6, number - 1.0, 0.0];
            *value = json!(dice.one_of(&changed));
        }
        Value::Bool(_) | Value::Null => *value = other(terrain, dice),
    }
}

fn misspelled(key: &str, dice: &mut Dice<'_>) -> String {
    match dice.roll(4) {
        0 => format!("{key}s"),
        1 => key.to_uppercase(),
        2 => key.chars().skip(1).collect(),
        _ => format!(" {key}"),
    }
}

/// Something that probably belongs elsewhere.
fn other(terrain: &Terrain, dice: &mut Dice<'_>) -> Value {
    let values = [
        Value::Null,
        json!(true),
        json!(0),
        json!(-0.0),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!(9_007_199_254_740_993_u64),
        json!(""),
        json!("x"),
        json!([]),
        json!({}),
        json!(["ip"]),
    ];
    match dice.one_of(&terrain.definitions()) {
        Some(definition) if dice.once_in(2) => make(terrain, definition.clone(), dice, 0),
        _ => dice.one_of(&values).cloned().unwrap_or_default(),
    }
}
