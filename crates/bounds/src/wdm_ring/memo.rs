//! Cache of pure functions, shared by all threads. Planners ask for the bounds of the same
//! collectives many times.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of values in a cache; a full cache is emptied.
const MAX_ENTRIES: usize = 1 << 14;

/// Cached values of a function that depends on its arguments alone.
pub(super) struct Memo<Arguments, Value> {
    values: Mutex<BTreeMap<Arguments, Value>>,
}

impl<Arguments: Ord, Value: Copy> Memo<Arguments, Value> {
    pub(super) const fn new() -> Memo<Arguments, Value> {
        Memo {
            values: Mutex::new(BTreeMap::new()),
        }
    }

    /// Returns the cached value for `arguments`. If there is none, computes and caches it.
    pub(super) fn get(&self, arguments: Arguments, compute: impl FnOnce() -> Value) -> Value {
        if let Some(value) = self.values().get(&arguments) {
            return *value;
        }
        let value = compute();
        let mut values = self.values();
        if values.len() >= MAX_ENTRIES {
            values.clear();
        }
        values.insert(arguments, value);
        value
    }

    fn values(&self) -> MutexGuard<'_, BTreeMap<Arguments, Value>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
