//! Memo of pure functions for all threads: planners ask for the bounds of the same collectives many
//! times.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of values in a memo; a full memo is emptied.
const MAX_ENTRIES: usize = 1 << 14;

/// Known values of a function that depends on its arguments alone.
pub(super) struct Memo<Arguments, Value> {
    known: Mutex<BTreeMap<Arguments, Value>>,
}

impl<Arguments: Ord, Value: Copy> Memo<Arguments, Value> {
    pub(super) const fn new() -> Memo<Arguments, Value> {
        Memo {
            known: Mutex::new(BTreeMap::new()),
        }
    }

    /// Returns the value for `arguments`, computed by `compute` if it is not known.
    pub(super) fn get(&self, arguments: Arguments, compute: impl FnOnce() -> Value) -> Value {
        if let Some(value) = self.known().get(&arguments) {
            return *value;
        }
        let value = compute();
        let mut known = self.known();
        if known.len() >= MAX_ENTRIES {
            known.clear();
        }
        known.insert(arguments, value);
        value
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Arguments, Value>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
