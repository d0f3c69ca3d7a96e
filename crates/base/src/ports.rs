//! Which port of which rank holds which circuit.
//!
//! Ports of which any will do are a *pool*. A circuit takes the port of a pool that holds it already; else
//! the first that holds nothing; else that which was used longest ago, and of several the first.

use rustc_hash::FxHashMap;

/// Numbers for pools in the order in which they are first seen.
#[derive(Debug, Clone, Default)]
pub struct PoolNumbers {
    /// Of pools whose own numbers are small, by these; [`NO_NUMBER`] where there is none yet.
    near: Vec<u32>,
    far: FxHashMap<u64, u32>,
    count: u32,
}

/// Numbers of pools from here on are looked up by hash.
const NEAR: u64 = 1 << 18;

const NO_NUMBER: u32 = u32::MAX;

impl PoolNumbers {
    /// The number of a pool, where it has one.
    #[inline]
    pub fn known(&self, pool: u64) -> Option<u32> {
        match pool < NEAR {
            true => {
                let number = self.near.get(pool as usize).copied();
                number.filter(|&number| number != NO_NUMBER)
            }
            false => self.far.get(&pool).copied(),
        }
    }

    /// The number of a pool, which is the next one where it had none.
    #[inline]
    pub fn number(&mut self, pool: u64) -> u32 {
        let next = self.count;
        let number = match pool < NEAR {
            true => {
                if self.near.len() as u64 <= pool {
                    self.near.resize(pool as usize + 1, NO_NUMBER);
                }
                let number = &mut self.near[pool as usize];
                if *number == NO_NUMBER {
                    *number = next;
                }
                *number
            }
            false => *self.far.entry(pool).or_insert(next),
        };
        self.count += u32::from(number == next);
        number
    }
}

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
    /// The index of each pool.
    indices: PoolNumbers,
    /// The first port of each pool: what it is set to, and since when.
    first: Vec<Option<(u64, S)>>,
    /// Those behind it, as far as a pool has any.
    others: Vec<Vec<Option<(u64, S)>>>,
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
    #[inline]
    pub fn take<K: Ord>(&self, port: Port, since: impl Fn(S) -> K) -> TakenPort<S> {
        let index = self.indices.known(port.pool);
        let Some(at) = index.map(|index| index as usize) else {
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
            return taken(0, self.first[at]);
        }
        let others = self.others.get(at).map_or(&[][..], Vec::as_slice);
        let ports = || std::iter::once(&self.first[at]).chain(others).enumerate();
        let held = ports().map(|(place, &one)| taken(place, one));
        if let Some(held) = held.clone().find(|one| one.holds) {
            return held;
        }
        let next = 1 + others.len();
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
        let index = self.indices.number(port.pool);
        if index as usize == self.first.len() {
            self.first.push(None);
        }
        self.set_at(index, port.state, place, since);
    }

    #[inline]
    fn set_at(&mut self, index: u32, state: u64, place: usize, since: S) {
        let index = index as usize;
        let now = Some((state, since));
        let Some(place) = place.checked_sub(1) else {
            self.first[index] = now;
            return;
        };
        if self.others.len() <= index {
            self.others.resize(self.first.len(), Vec::new());
        }
        let others = &mut self.others[index];
        if others.len() <= place {
            others.resize(place + 1, None);
        }
        others[place] = now;
    }

    /// Leaves the port at a place of a pool without a circuit.
    pub fn clear(&mut self, pool: u64, place: usize) {
        let Some(index) = self.indices.known(pool).map(|index| index as usize) else {
            return;
        };
        let port = match place.checked_sub(1) {
            None => self.first.get_mut(index),
            Some(place) => self.others.get_mut(index).and_then(|of| of.get_mut(place)),
        };
        if let Some(port) = port {
            *port = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_near_and_far_are_numbered_as_they_come() {
        let mut numbers = PoolNumbers::default();
        let pools = [NEAR, 3, NEAR - 1, 3, u64::MAX, NEAR, 0, u64::MAX];
        assert_eq!(
            pools.map(|pool| numbers.number(pool)),
            [0, 1, 2, 1, 3, 0, 4, 3]
        );
        assert_eq!(numbers.known(u64::MAX), Some(3));
        assert_eq!((numbers.known(1), numbers.known(NEAR + 1)), (None, None));
        assert_eq!(numbers.known(NEAR - 1), Some(2));
    }

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
