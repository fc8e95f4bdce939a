//! What a fuzzer checks of one input, and what it is given to begin with.

use serde_json::Value;

use crate::asked::ask;
use crate::broken::{break_at, places};
use crate::dice::Dice;
use crate::judge::Judge;
use crate::made::configuration;
use crate::pool;
use crate::spelled::spell;
use crate::terrain::Terrain;

/// What checks need.
///
/// # Errors
/// The schema is none.
pub fn both() -> Result<(Judge, Terrain), String> {
    let schema = crate::schema();
    Ok((Judge::new(&schema)?, Terrain::new(schema)))
}

/// Checks an input: choices of the generator after a zero byte, with which no JSON begins, and else a configuration.
///
/// # Errors
/// Parser and schema disagree, or an error does not say what it must. All else that can go wrong is a panic.
pub fn check(input: &[u8], judge: &Judge, terrain: &Terrain) -> Result<(), String> {
    let Some((0, choices)) = input.split_first().map(|(first, rest)| (*first, rest)) else {
        let config = judge.judge(input)?;
        if let (Some(config), Ok(written)) = (config, serde_json::from_slice(input)) {
            ask(&config, &written, &mut Dice::Seed(input.len() as u64));
        }
        return Ok(());
    };
    let mut dice = Dice::Bytes(choices);
    let breaks = dice.roll(4);
    let mut value = configuration(terrain, &mut dice);
    for _ in 0..breaks {
        let place = dice.one_of(&places(&value)).cloned().unwrap_or_default();
        break_at(&mut value, &place, terrain, &mut dice);
    }
    let text = spell(&value, dice.once_in(16), &mut dice);
    let config = judge.judge(text.as_bytes()).map_err(|reason| format!("{reason}\n{text}"))?;
    if let Some(config) = config {
        ask(&config, &value, &mut dice);
    }
    Ok(())
}

/// Inputs of choices to begin with.
pub fn choices() -> impl Iterator<Item = Vec<u8>> {
    (0..64).map(|seed| {
        let mut dice = Dice::Seed(seed);
        core::iter::once(0).chain((0..384).map(|_| u8::try_from(dice.roll(256)).unwrap_or(0))).collect()
    })
}

/// The words of configurations, as libFuzzer reads them.
pub fn dictionary() -> String {
    let mut words =
        vec!["true".to_owned(), "null".to_owned(), "1e300".to_owned(), "9007199254740992".to_owned()];
    words.extend(pool::words().map(|text| Value::from(text).to_string()));
    gather(&crate::schema(), &mut words);
    words.sort();
    words.dedup();
    words.iter().fold(String::new(), |lines, word| {
        let escaped = word.bytes().map(|byte| match byte {
            b'"' | b'\\' => format!("\\{}", char::from(byte)),
            b' '..=b'~' => char::from(byte).to_string(),
            _ => format!("\\x{byte:02x}"),
        });
        lines + "\"" + &escaped.collect::<String>() + "\"\n"
    })
}

fn gather(schema: &Value, words: &mut Vec<String>) {
    match schema {
        Value::Object(object) => {
            for (key, inner) in object {
                match inner {
                    Value::Object(properties) if key == "properties" => {
                        words.extend(properties.keys().map(|name| format!("\"{name}\":")));
                    }
                    Value::String(constant) if key == "const" => words.push(format!("\"{constant}\"")),
                    _ => {}
                }
                gather(inner, words);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, words)),
        _ => {}
    }
}
