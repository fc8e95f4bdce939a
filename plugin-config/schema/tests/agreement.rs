//! The schema and the parser agree on what is written in files, and on ten thousand configurations made up at random.
//! `TIDEGATE_CONFIGURATIONS` is another number of them, and `TIDEGATE_SEED` the first seed; a failure names its own.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

#[path = "../../tests/cases/mod.rs"]
mod cases;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use config_schema::asked::ask;
use config_schema::broken::{break_at, places, pointer};
use config_schema::dice::Dice;
use config_schema::judge::Judge;
use config_schema::made::configuration;
use config_schema::spelled::spell;
use config_schema::terrain::Terrain;
use plugin_config::Step;
use serde_json::Value;

/// The keys and forms that a configuration passes, each with where it stands.
fn passed(terrain: &Terrain, value: &Value) -> Vec<(String, String)> {
    let mut passed = Vec::new();
    terrain.passed(terrain.start(), value, "", &mut |way, at| passed.push((way.to_owned(), at.to_owned())));
    passed
}

fn judge() -> Judge {
    Judge::new(&config_schema::schema()).unwrap()
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |number| number.parse().unwrap())
}

#[test]
fn parser_and_schema_agree_on_configurations_made_up_at_random() {
    let (judge, terrain) = (judge(), Terrain::new(config_schema::schema()));
    let first = number("TIDEGATE_SEED", 0);
    let count = number("TIDEGATE_CONFIGURATIONS", 10_000);
    println!("seeds {first} to {}", first + count);
    let (mut right, mut wrong) = (BTreeSet::new(), BTreeSet::new());
    let (mut accepted, mut refused, mut applied) = (0, 0, 0);
    let mut seed = first;
    while accepted + refused < count {
        seed += 1;
        let mut dice = Dice::Seed(seed);
        let mut value = configuration(&terrain, &mut dice);
        let mut ruling = |value: &Value, doubled, dice: &mut Dice<'_>| {
            let text = spell(value, doubled, dice);
            let ruling =
                judge.judge(text.as_bytes()).unwrap_or_else(|reason| panic!("seed {seed}: {reason}\n{text}"));
            if ruling.is_some() {
                accepted += 1;
            } else {
                refused += 1;
            }
            ruling
        };
        let Some(config) = ruling(&value, false, &mut dice) else { continue };
        applied += ask(&config, &value, &mut dice);
        right.extend(passed(&terrain, &value).into_iter().map(|(_, at)| at));
        if dice.once_in(8) {
            assert!(ruling(&value, true, &mut dice).is_none(), "seed {seed}: a key stands there twice");
        }
        for _ in 0..=dice.roll(3) {
            let passed = passed(&terrain, &value);
            // Rather what was never broken yet, every other time.
            let rare = |place: &Vec<Step>| {
                let way = pointer(place);
                passed.iter().any(|(known, at)| *known == way && !wrong.contains(at))
            };
            let all = places(&value);
            let rare: Vec<Vec<Step>> = all.iter().filter(|place| rare(place)).cloned().collect();
            let among = if rare.is_empty() || dice.once_in(2) { all } else { rare };
            let place = dice.one_of(&among).cloned().unwrap_or_default();
            break_at(&mut value, &place, &terrain, &mut dice);
            if ruling(&value, false, &mut dice).is_none() {
                let way = pointer(&place);
                wrong.extend(passed.into_iter().filter(|(known, _)| *known == way).map(|(_, at)| at));
                break;
            }
        }
    }
    println!("{accepted} accepted, {refused} refused, {applied} policies applied to requests");
    // Fewer cannot reach everything.
    if count >= 10_000 {
        let never = |seen: &BTreeSet<String>| {
            terrain.all().into_iter().filter(|at| !seen.contains(at)).collect::<Vec<_>>()
        };
        assert_eq!(never(&right), [""; 0], "never in a valid configuration");
        assert_eq!(never(&wrong), [""; 0], "never broken");
        assert!(accepted > count / 4 && refused > count / 4, "{accepted} accepted, {refused} refused");
        assert!(applied as u64 > count / 20, "{applied}");
    }
}

/// All files of a folder of tests, by name.
fn files(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests").join(folder);
    let mut files: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(&path).unwrap())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn both_accept_what_the_tests_of_the_parser_accept() {
    let judge = judge();
    for (name, text) in files("accepted") {
        assert!(
            judge.judge(text.as_bytes()).unwrap_or_else(|reason| panic!("{name}: {reason}")).is_some(),
            "{name}"
        );
    }
}

#[test]
fn what_the_tests_of_the_parser_refuse_is_refused_for_what_a_schema_can_say_or_is_listed() {
    let judge = judge();
    for case in cases::refused() {
        let shown = format!("{} ({}.txt)\n{}", case.claim, case.file, case.errors);
        let ruling = judge.judge(case.config.as_bytes());
        assert!(ruling.unwrap_or_else(|reason| panic!("{shown}\n{reason}")).is_none(), "{shown}");
    }
}
