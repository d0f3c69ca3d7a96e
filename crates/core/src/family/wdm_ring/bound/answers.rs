//! Answers that are kept: planners ask for the bounds of the same collectives again and again.

use std::cell::RefCell;
use std::collections::BTreeMap;

/// Answers are kept for so many questions.
const MOST_KEPT: usize = 1 << 14;

/// The answers of a function that depends on nothing but what is asked.
pub(super) struct Answers<Asked, Answer> {
    known: RefCell<BTreeMap<Asked, Answer>>,
}

impl<Asked: Ord, Answer: Copy> Answers<Asked, Answer> {
    pub(super) const fn new() -> Answers<Asked, Answer> {
        Answers {
            known: RefCell::new(BTreeMap::new()),
        }
    }

    /// The answer to a question, which is computed where it is not known.
    pub(super) fn to(&self, asked: Asked, compute: impl FnOnce() -> Answer) -> Answer {
        if let Some(answer) = self.known.borrow().get(&asked) {
            return *answer;
        }
        let answer = compute();
        let mut known = self.known.borrow_mut();
        if known.len() >= MOST_KEPT {
            known.clear();
        }
        known.insert(asked, answer);
        answer
    }
}
