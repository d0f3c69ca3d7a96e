//! Values of pure functions, shared by all threads: planners ask for the bounds of the same collectives many times.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Answers are kept for so many questions.
const MOST_KEPT: usize = 1 << 14;

/// The answers of a function that depends on nothing but what is asked.
pub(super) struct Memo<Asked, Answer> {
    known: Mutex<BTreeMap<Asked, Answer>>,
}

impl<Asked: Ord, Answer: Copy> Memo<Asked, Answer> {
    pub(super) const fn new() -> Memo<Asked, Answer> {
        Memo {
            known: Mutex::new(BTreeMap::new()),
        }
    }

    /// The answer to a question, which is computed where it is not known.
    pub(super) fn to(&self, asked: Asked, compute: impl FnOnce() -> Answer) -> Answer {
        if let Some(answer) = self.known().get(&asked) {
            return *answer;
        }
        let answer = compute();
        let mut known = self.known();
        if known.len() >= MOST_KEPT {
            known.clear();
        }
        known.insert(asked, answer);
        answer
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Asked, Answer>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
