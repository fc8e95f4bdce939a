//! Configurations made up from the schema at random, most of them valid.

use plugin_config::{Errors, Problem, Step, parse};
use serde_json::{Map, Value, json};

use crate::dice::Dice;
use crate::pool;
use crate::terrain::{Point, Terrain};

/// How often what is wrong is mended. What is still wrong then stays.
const MAX_MENDINGS: usize = 8;
/// Deeper than a configuration is.
const MAX_DEPTH: usize = 16;

/// A configuration as the schema has it, which the parser accepts as well most of the time.
pub fn configuration(terrain: &Terrain, dice: &mut Dice<'_>) -> Value {
    let mut value = make(terrain, terrain.start(), dice, 0);
    for (index, policy) in
        value.get_mut("policies").and_then(Value::as_array_mut).into_iter().flatten().enumerate()
    {
        if let Some(name) = policy.get_mut("name").filter(|_| !dice.once_in(20)) {
            *name = json!(format!("{}-{index}", name.as_str().unwrap_or_default().get(..8).unwrap_or("p")));
        }
    }
    for _ in 0..MAX_MENDINGS {
        let Err(errors) = parse(value.to_string().as_bytes()) else { break };
        mend(&mut value, &errors, terrain, dice);
    }
    value
}

/// Makes a value that the schema accepts, as far as it stands for itself.
pub fn make(terrain: &Terrain, point: Point<'_>, dice: &mut Dice<'_>, depth: usize) -> Value {
    let point = terrain.resolve(point);
    if let Some(constant) = point.schema.get("const") {
        return constant.clone();
    }
    if let Some(form) = dice.one_of(&Terrain::forms(&point)) {
        return make(terrain, form.clone(), dice, depth + 1);
    }
    match point.schema.get("type").and_then(Value::as_str) {
        _ if depth > MAX_DEPTH => Value::Null,
        Some("object") => Value::Object(object(terrain, &point, dice, depth)),
        Some("array") => Value::Array(list(terrain, &point, dice, depth)),
        Some("string") => pool::text(&point, dice).into(),
        Some("boolean") => dice.once_in(2).into(),
        _ => number(&point, dice),
    }
}

fn object(terrain: &Terrain, point: &Point<'_>, dice: &mut Dice<'_>, depth: usize) -> Map<String, Value> {
    let mut object = Map::new();
    let optional = Terrain::properties(point).len().clamp(2, 4);
    for (name, inner) in Terrain::properties(point) {
        if point.requires(name) || dice.once_in(optional) {
            object.insert(name.to_owned(), make(terrain, inner, dice, depth + 1));
        }
    }
    if let Some(inner) = Terrain::inner(point, "additionalProperties") {
        let count = count(point, "minProperties", "maxProperties", dice);
        for _ in 0..count {
            object.insert(pool::key(&point.at, dice), make(terrain, inner.clone(), dice, depth + 1));
        }
    }
    object
}

fn list(terrain: &Terrain, point: &Point<'_>, dice: &mut Dice<'_>, depth: usize) -> Vec<Value> {
    let Some(inner) = Terrain::inner(point, "items") else { return Vec::new() };
    let mut list: Vec<Value> = Vec::new();
    for _ in 0..count(point, "minItems", "maxItems", dice) {
        let item = make(terrain, inner.clone(), dice, depth + 1);
        if !(point.schema.get("uniqueItems").is_some() && list.contains(&item)) {
            list.push(item);
        }
    }
    list
}

/// As few as there may be and some more; now and then as many as there may be.
fn count(point: &Point<'_>, least: &str, most: &str, dice: &mut Dice<'_>) -> usize {
    let most = point.bound(most).unwrap_or(4);
    if dice.once_in(50) { most } else { (point.bound(least).unwrap_or(0) + dice.roll(3)).min(most) }
}

fn number(point: &Point<'_>, dice: &mut Dice<'_>) -> Value {
    let bound = |key: &str| point.schema.get(key).and_then(Value::as_u64);
    let (least, most) = (bound("minimum").unwrap_or(0), bound("maximum").unwrap_or(1 << 53));
    let near = |steps: usize| least.saturating_add(steps as u64).min(most);
    match dice.roll(8) {
        0 => least.into(),
        1 => most.into(),
        2 => near(dice.roll(1 << 30)).into(),
        _ => near(dice.roll(100)).into(),
    }
}

/// Takes out what is refused, and makes what is missing.
fn mend(value: &mut Value, errors: &Errors, terrain: &Terrain, dice: &mut Dice<'_>) {
    // The last ones first: what is taken out of a list moves what follows it.
    let errors: Vec<_> = errors.iter().collect();
    for error in errors.into_iter().rev() {
        let Some((last, front)) = error.path.0.split_last() else { continue };
        let Some(parent) = find(value, front) else { continue };
        match (parent, last) {
            (Value::Object(object), Step::Key(key)) if error.problem == Problem::Missing => {
                let point =
                    error.path.0.iter().try_fold(terrain.start(), |point, step| down(terrain, point, step));
                if let Some(point) = point {
                    object.insert(key.clone(), make(terrain, point, dice, 0));
                }
            }
            (Value::Object(object), Step::Key(key)) => match object.get_mut(key) {
                Some(Value::Array(items)) if error.problem == Problem::TooMany && items.len() > 1 => {
                    items.truncate(items.len() / 2);
                }
                _ => drop(object.remove(key)),
            },
            (Value::Array(items), Step::Index(index)) if *index < items.len() => drop(items.remove(*index)),
            _ => {}
        }
    }
}

fn down<'a>(terrain: &'a Terrain, point: Point<'a>, step: &Step) -> Option<Point<'a>> {
    match step {
        Step::Key(key) => terrain.under(point, key),
        Step::Index(_) => {
            let point = terrain.resolve(point);
            Terrain::inner(&point, "items")
        }
    }
}

/// The value at the end of a way.
pub fn find<'a>(value: &'a mut Value, way: &[Step]) -> Option<&'a mut Value> {
    way.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Index(index) => value.get_mut(index),
    })
}
