//! The formulas of the algorithms' records are parsed and evaluated correctly.

pub(super) use opticoll::algorithms::formula::Variables;
use opticoll::algorithms::formula::{rank_variables, value as read};

/// Returns whether a number agrees with a formula: it equals the formula, or is at most the formula
/// after `<=`.
pub(super) fn agrees(number: f64, formula: &str, values: &Variables) -> bool {
    match formula.strip_prefix("<=") {
        Some(bound) => number <= value(bound, values) + 1e-9,
        None => (number - value(formula, values)).abs() < 1e-9,
    }
}

fn value(formula: &str, values: &Variables) -> f64 {
    read(formula, values).unwrap_or_else(|| panic!("`{formula}` is no formula"))
}

#[test]
fn formulas_are_read_as_they_are_meant() {
    let values = Variables::from([('N', 12.0), ('P', 8.0), ('K', 5.0)]);
    for (formula, expected) in [
        ("N - 1", 11.0),
        ("2 (N - 1) / N", 22.0 / 12.0),
        ("N / 2 ceil(log2 N)", 24.0),
        ("log2 P + 2", 5.0),
        ("N ceil(log2 N) - (N - 1)", 37.0),
        ("max(N - P, P / 2)", 4.0),
        ("min(2, N / 2)", 2.0),
        ("N - 2 + K", 15.0),
        ("2 floor(log2(N - 1))", 6.0),
    ] {
        assert!(
            (value(formula, &values) - expected).abs() < 1e-12,
            "{formula}"
        );
    }
    assert!(agrees(3.0, "<= 3", &values) && !agrees(4.0, "<= 3", &values));
    assert!(agrees(3.0, "3", &values) && !agrees(2.0, "3", &values));
}

#[test]
fn what_is_no_formula_has_no_value() {
    for text in ["", "N -", "(N", "min(N)", "G - 1", "N )", "log2"] {
        assert_eq!(read(text, &rank_variables(12)), None, "{text}");
    }
}

#[test]
fn variables_follow_from_the_number_of_ranks() {
    for (ranks, expected) in [(12, [12.0, 8.0, 1.0, 8.0]), (16, [16.0, 16.0, 0.0, 8.0])] {
        let values = rank_variables(ranks);
        assert_eq!(['N', 'P', 'F', 'H'].map(|name| values[&name]), expected);
    }
}
