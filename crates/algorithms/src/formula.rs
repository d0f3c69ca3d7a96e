//! Parser of the cost formulas in records, such as `2 ceil(log2 N)` or `N - 2 + K`.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = factor { ["/"] factor }
//! factor  = number | variable | "(" sum ")" | function factor
//!         | ("min" | "max") "(" sum "," sum ")"
//! ```

use std::collections::BTreeMap;

/// Values of the variables of a formula; indexed by the letter of the variable.
pub type Variables = BTreeMap<char, f64>;

/// Evaluates a formula. Returns `None` if the text does not parse or if a variable has no value.
/// The parser does not know the prefix `<=` of an upper bound: pass the text after the prefix.
///
/// ```
/// use opticoll_algorithms::formula::{Variables, value};
/// let values = Variables::from([('N', 12.0)]);
/// assert_eq!(value("N / 2 ceil(log2 N)", &values), Some(24.0));
/// assert_eq!(value("G - 1", &values), None);
/// ```
pub fn value(formula: &str, values: &Variables) -> Option<f64> {
    let mut reader = FormulaParser {
        tokens: tokens(formula),
        next: 0,
        values,
    };
    let value = reader.sum()?;
    (reader.next == reader.tokens.len()).then_some(value)
}

/// Returns the variables that the number of ranks determines: N is the number of ranks, P the
/// largest power of two that is at most N, and H the largest power of two below N. F is 0 if N is a
/// power of two, otherwise 1.
pub fn rank_variables(ranks: u32) -> Variables {
    let power = |exponent: u32| f64::from(2u32.saturating_pow(exponent));
    let floor = power(ranks.max(1).ilog2());
    let below = match ranks.is_power_of_two() {
        true => floor / 2.0,
        false => floor,
    };
    Variables::from([
        ('N', ranks.into()),
        ('P', floor),
        ('F', f64::from(u8::from(!ranks.is_power_of_two()))),
        ('H', below),
    ])
}

fn tokens(formula: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut in_word = false;
    for letter in formula.chars() {
        let word = letter.is_ascii_alphanumeric();
        if word && in_word {
            if let Some(last) = tokens.last_mut() {
                last.push(letter);
            }
        } else if !letter.is_whitespace() {
            tokens.push(letter.into());
        }
        in_word = word;
    }
    tokens
}

struct FormulaParser<'a> {
    tokens: Vec<String>,
    next: usize,
    values: &'a Variables,
}

impl FormulaParser<'_> {
    fn peek(&self) -> &str {
        self.tokens.get(self.next).map_or("", String::as_str)
    }

    fn take(&mut self, token: &str) -> bool {
        let is_next = self.peek() == token;
        self.next += usize::from(is_next);
        is_next
    }

    fn sum(&mut self) -> Option<f64> {
        let mut sum = self.product()?;
        loop {
            if self.take("+") {
                sum += self.product()?;
            } else if self.take("-") {
                sum -= self.product()?;
            } else {
                return Some(sum);
            }
        }
    }

    fn product(&mut self) -> Option<f64> {
        let mut product = self.factor()?;
        loop {
            if self.take("/") {
                product /= self.factor()?;
            } else if matches!(self.peek(), "" | "+" | "-" | ")" | ",") {
                return Some(product);
            } else {
                product *= self.factor()?;
            }
        }
    }

    fn factor(&mut self) -> Option<f64> {
        let token = self.peek().to_owned();
        self.next += 1;
        Some(match token.as_str() {
            "(" => {
                let inner = self.sum()?;
                self.take(")").then_some(inner)?
            }
            "log2" => self.factor()?.log2(),
            "ceil" => self.factor()?.ceil(),
            "floor" => self.factor()?.floor(),
            "min" | "max" => {
                let first = self.take("(").then(|| self.sum())??;
                let second = self.take(",").then(|| self.sum())??;
                let value = if token == "min" {
                    first.min(second)
                } else {
                    first.max(second)
                };
                self.take(")").then_some(value)?
            }
            _ => match token.parse() {
                Ok(number) => number,
                Err(_) => *self.values.get(&token.chars().next()?)?,
            },
        })
    }
}
