//! Which port of which rank holds which circuit.
//!
//! Ports of which any will do are a *pool*. A circuit takes the port of a pool that holds it already; else
//! the first that holds nothing; else that which was used longest ago, and of several the first.

use rustc_hash::FxHashMap;

/// A port for a circuit: one of a pool, and what it must be set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Port {
    /// The ports of which any will do, as a number of their own: transmitters and receivers of a rank have
    /// different ones, unless a port is both.
    pub pool: u64,
    /// How many ports the pool has, at least 1.
    pub size: u32,
    /// What it is set to. Where circuits are set up and released in groups it is the pool of the port at the
    /// other end.
    pub state: u64,
}

/// The ports of all ranks; `S` says since when a port is as it is.
#[derive(Debug, Clone, Default)]
pub struct Ports<S> {
    /// By number of a pool: its index.
    indices: FxHashMap<u64, u32>,
    pools: Vec<PortPool<S>>,
}

/// Most pools have one port, which needs no room elsewhere.
#[derive(Debug, Clone)]
struct PortPool<S> {
    first: Option<(u64, S)>,
    others: Vec<Option<(u64, S)>>,
}

/// The port of a pool that a circuit takes.
#[derive(Debug, Clone, Copy)]
pub struct TakenPort<S> {
    /// Its place in the pool.
    pub place: usize,
    /// What it is set to so far, and since when.
    pub before: Option<(u64, S)>,
    /// Whether that is the circuit.
    pub holds: bool,
    /// The index of its pool, once one of its ports was set.
    index: Option<u32>,
}

impl<S: Copy> Ports<S> {
    /// The port that a circuit takes, where `since` puts ports in the order of their last use.
    pub fn take<K: Ord>(&self, port: Port, since: impl Fn(S) -> K) -> TakenPort<S> {
        let index = self.indices.get(&port.pool).copied();
        let Some(pool) = index.map(|index| &self.pools[index as usize]) else {
            return TakenPort {
                place: 0,
                before: None,
                holds: false,
                index,
            };
        };
        let taken = |place, before: Option<(u64, S)>| TakenPort {
            place,
            before,
            holds: before.is_some_and(|(state, _)| state == port.state),
            index,
        };
        if port.size == 1 {
            return taken(0, pool.first);
        }
        let ports = || std::iter::once(&pool.first).chain(&pool.others).enumerate();
        let held = ports().map(|(place, &one)| taken(place, one));
        if let Some(held) = held.clone().find(|one| one.holds) {
            return held;
        }
        let next = 1 + pool.others.len();
        let unused = ports().find(|(_, one)| one.is_none());
        let unused = unused.map(|(place, _)| place);
        if let Some(place) = unused.or((next < port.size as usize).then_some(next)) {
            return taken(place, None);
        }
        let oldest = held.min_by_key(|one| one.before.map(|(_, state_since)| since(state_since)));
        oldest.unwrap_or(taken(0, None))
    }

    /// Sets the port that a circuit takes to what it needs.
    #[inline]
    pub fn set_taken(&mut self, port: Port, taken: &TakenPort<S>, since: S) {
        match taken.index {
            Some(index) => self.set_at(index, port.state, taken.place, since),
            None => self.set(port, taken.place, since),
        }
    }

    /// Sets the port at a place of a pool to what a circuit needs.
    #[inline]
    pub fn set(&mut self, port: Port, place: usize, since: S) {
        let next = self.pools.len() as u32;
        let index = *self.indices.entry(port.pool).or_insert(next);
        if index == next {
            self.pools.push(PortPool {
                first: None,
                others: Vec::new(),
            });
        }
        self.set_at(index, port.state, place, since);
    }

    #[inline]
    fn set_at(&mut self, index: u32, state: u64, place: usize, since: S) {
        let pool = &mut self.pools[index as usize];
        let now = Some((state, since));
        match place.checked_sub(1) {
            None => pool.first = now,
            Some(place) => {
                if pool.others.len() <= place {
                    pool.others.resize(place + 1, None);
                }
                pool.others[place] = now;
            }
        }
    }

    /// Leaves the port at a place of a pool without a circuit.
    pub fn clear(&mut self, pool: u64, place: usize) {
        if let Some(&index) = self.indices.get(&pool) {
            let pool = &mut self.pools[index as usize];
            match place.checked_sub(1) {
                None => pool.first = None,
                Some(place) => {
                    if let Some(port) = pool.others.get_mut(place) {
                        *port = None;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn port(state: u64) -> Port {
        Port {
            pool: 7,
            size: 2,
            state,
        }
    }

    #[test]
    fn a_circuit_takes_its_port_then_an_unused_one_then_the_oldest() {
        let mut ports = Ports::default();
        let mut enter = |state: u64, now: u32, place: usize, holds: bool| {
            let taken = ports.take(port(state), |since: u32| since);
            assert_eq!(
                (taken.place, taken.holds),
                (place, holds),
                "{state} at {now}"
            );
            ports.set(port(state), taken.place, now);
        };
        enter(10, 1, 0, false);
        enter(11, 2, 1, false);
        enter(10, 3, 0, true);
        enter(12, 4, 1, false);
        enter(11, 5, 0, false);
        ports.clear(7, 1);
        assert_eq!(ports.take(port(12), |since| since).place, 1);
        assert!(ports.take(port(11), |since| since).holds);
    }
}
