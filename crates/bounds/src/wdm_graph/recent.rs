//! Cache of values that depend on a graph of fibres and a key. Planners ask for the bounds of the
//! same graph many times.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use opticoll_fabric::family::wdm_graph::WdmGraph;

/// Maximum number of graphs in a cache. The oldest graph is removed first.
const MAX_GRAPHS: usize = 8;

/// Values of one graph, by key.
type Values<Key, Value> = (WdmGraph, BTreeMap<Key, Value>);

/// Cached values of a function that depends on a graph and a key alone.
pub(super) struct Recent<Key, Value> {
    graphs: Mutex<Vec<Values<Key, Value>>>,
}

impl<Key: Ord, Value: Clone> Recent<Key, Value> {
    pub(super) const fn new() -> Recent<Key, Value> {
        Recent {
            graphs: Mutex::new(Vec::new()),
        }
    }

    /// Returns the cached value for `graph` and `key`. If there is none, computes and caches it.
    pub(super) fn get(&self, graph: &WdmGraph, key: Key, compute: impl FnOnce() -> Value) -> Value {
        let known = |graphs: &MutexGuard<'_, Vec<Values<Key, Value>>>| {
            graphs.iter().position(|(of, _)| of == graph)
        };
        let graphs = self.graphs();
        if let Some(value) = known(&graphs).and_then(|place| graphs[place].1.get(&key)) {
            return value.clone();
        }
        drop(graphs);
        let value = compute();
        let mut graphs = self.graphs();
        let place = known(&graphs).unwrap_or_else(|| {
            if graphs.len() == MAX_GRAPHS {
                graphs.remove(0);
            }
            graphs.push((graph.clone(), BTreeMap::new()));
            graphs.len() - 1
        });
        graphs[place].1.insert(key, value.clone());
        value
    }

    fn graphs(&self) -> MutexGuard<'_, Vec<Values<Key, Value>>> {
        self.graphs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
