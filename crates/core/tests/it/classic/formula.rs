//! Reads the formulas of records: `2 ceil(log2 N)`, `N - 2 + K`, `<= N / 2 ceil(log2 N)`.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = factor { ["/"] factor }
//! factor  = number | variable | "(" sum ")" | function factor | ("min" | "max") "(" sum "," sum ")"
//! ```

use std::collections::BTreeMap;

/// The values of the variables.
pub(super) type Values = BTreeMap<char, f64>;

/// Whether a number is what a formula says: equal to it, or at most that after `<=`.
pub(super) fn agrees(number: f64, formula: &str, values: &Values) -> bool {
    match formula.strip_prefix("<=") {
        Some(bound) => number <= value(bound, values) + 1e-9,
        None => (number - value(formula, values)).abs() < 1e-9,
    }
}

/// The value of a formula.
pub(super) fn value(formula: &str, values: &Values) -> f64 {
    let mut reader = Reader {
        tokens: tokens(formula),
        next: 0,
        values,
    };
    let value = reader.sum();
    assert_eq!(
        reader.next,
        reader.tokens.len(),
        "`{formula}` is no formula"
    );
    value
}

/// Words, numbers and signs.
fn tokens(formula: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut in_word = false;
    for letter in formula.chars() {
        let word = letter.is_ascii_alphanumeric();
        if word && in_word {
            tokens.last_mut().unwrap().push(letter);
        } else if !letter.is_whitespace() {
            tokens.push(letter.into());
        }
        in_word = word;
    }
    tokens
}

struct Reader<'a> {
    tokens: Vec<String>,
    next: usize,
    values: &'a Values,
}

impl Reader<'_> {
    fn peek(&self) -> &str {
        self.tokens.get(self.next).map_or("", String::as_str)
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.peek() == token;
        self.next += usize::from(found);
        found
    }

    fn sum(&mut self) -> f64 {
        let mut sum = self.product();
        loop {
            if self.take("+") {
                sum += self.product();
            } else if self.take("-") {
                sum -= self.product();
            } else {
                return sum;
            }
        }
    }

    fn product(&mut self) -> f64 {
        let mut product = self.factor();
        loop {
            if self.take("/") {
                product /= self.factor();
            } else if matches!(self.peek(), "" | "+" | "-" | ")" | ",") {
                return product;
            } else {
                product *= self.factor();
            }
        }
    }

    fn factor(&mut self) -> f64 {
        let token = self.peek().to_owned();
        self.next += 1;
        match token.as_str() {
            "(" => {
                let inner = self.sum();
                assert!(self.take(")"));
                inner
            }
            "log2" => self.factor().log2(),
            "ceil" => self.factor().ceil(),
            "floor" => self.factor().floor(),
            "min" | "max" => {
                assert!(self.take("("));
                let one = self.sum();
                assert!(self.take(","));
                let other = self.sum();
                assert!(self.take(")"));
                if token == "min" {
                    one.min(other)
                } else {
                    one.max(other)
                }
            }
            _ => match token.parse() {
                Ok(number) => number,
                Err(_) => self.values[&token.chars().next().unwrap()],
            },
        }
    }
}

#[test]
fn formulas_are_read_as_they_are_meant() {
    let values = Values::from([('N', 12.0), ('P', 8.0), ('K', 5.0)]);
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
