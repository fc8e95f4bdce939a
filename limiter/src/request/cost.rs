//! Costs that requests tell.

use super::told::Told;
use crate::policy::ToldCost;

/// The tokens that a request takes. What cannot be read costs the most that a request may: nobody gains by it. Every
/// request costs something, whatever it says.
pub(super) fn tokens(value: &Told, told: &ToldCost) -> u64 {
    match value {
        Told::Absent => told.default,
        Told::Ambiguous => told.max,
        Told::Value(value) => whole(value).map_or(told.max, |tokens| tokens.clamp(1, told.max)),
    }
}

/// A number written in digits alone; one that is too great for us is the greatest.
fn whole(value: &[u8]) -> Option<u64> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let digits = value.iter().map(|digit| u64::from(digit.saturating_sub(b'0')));
    is_number.then(|| digits.fold(0, |number: u64, digit| number.saturating_mul(10).saturating_add(digit)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::CostSource;

    #[test]
    fn a_cost_is_what_is_told_within_its_bounds() {
        let told = ToldCost { source: CostSource::Header("x-cost".into()), default: 3, max: 100 };
        let cost = |value: &str| tokens(&Told::Value(value.into()), &told);
        assert_eq!(tokens(&Told::Absent, &told), 3);
        assert_eq!(tokens(&Told::Ambiguous, &told), 100);
        for (value, expected) in [("1", 1), ("42", 42), ("100", 100), ("007", 7)] {
            assert_eq!(cost(value), expected, "{value:?}");
        }
        assert_eq!((cost("0"), cost("000")), (1, 1), "nothing is free");
        for value in [
            "101",
            "99999999999999999999999",
            "-1",
            "+1",
            "1.5",
            "1e309",
            "NaN",
            "0x10",
            "many",
            "1 2",
            "\u{0661}",
        ] {
            assert_eq!(cost(value), 100, "{value:?}");
        }
    }
}
