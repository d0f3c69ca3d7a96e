//! Assignment of circuits to the ports of ranks.
//!
//! A *pool* is a set of interchangeable ports. A circuit uses the port of its pool whose state is
//! already the state that the circuit needs. If no port is in this state, the circuit uses the
//! first unused port. If no port is unused, the circuit uses the least recently used port, and
//! among equally old ports the port with the lowest index.

use rustc_hash::FxHashMap;

/// Map from identifiers of pools to consecutive numbers, which are assigned from 0 in the order of
/// first appearance.
#[derive(Debug, Clone, Default)]
pub struct PoolNumbering {
    /// Number assigned to each pool, indexed by the pool's identifier, for identifiers below
    /// [`ARRAY_POOLS`]; [`NO_NUMBER`] if the pool has not appeared yet.
    in_array: Vec<u32>,
    hashed: FxHashMap<u64, u32>,
    count: u32,
}

/// Pools with identifiers below this limit are looked up in an array (4 bytes each), other pools by
/// hash.
const ARRAY_POOLS: u64 = 1 << 18;

const NO_NUMBER: u32 = u32::MAX;

impl PoolNumbering {
    /// Returns the number assigned to `pool`, or `None` if the pool is new.
    #[inline]
    pub fn known(&self, pool: u64) -> Option<u32> {
        match pool < ARRAY_POOLS {
            true => {
                let number = self.in_array.get(pool as usize).copied();
                number.filter(|&number| number != NO_NUMBER)
            }
            false => self.hashed.get(&pool).copied(),
        }
    }

    /// Returns the number assigned to `pool`. A new pool is assigned the next number.
    #[inline]
    pub fn number(&mut self, pool: u64) -> u32 {
        let next = self.count;
        let number = match pool < ARRAY_POOLS {
            true => {
                if self.in_array.len() as u64 <= pool {
                    self.in_array.resize(pool as usize + 1, NO_NUMBER);
                }
                let number = &mut self.in_array[pool as usize];
                if *number == NO_NUMBER {
                    *number = next;
                }
                *number
            }
            false => *self.hashed.entry(pool).or_insert(next),
        };
        self.count += u32::from(number == next);
        number
    }
}

/// Port that a circuit needs: the pool, and the state of the port while the circuit is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Port {
    /// Identifier of the pool. The transmitters and the receivers of a rank are two pools, unless
    /// each port of the rank is both a transmitter and a receiver.
    pub pool: u64,
    /// Number of ports in the pool, at least 1.
    pub size: u32,
    /// Number that identifies what the port is joined or tuned to while the circuit is up. On a
    /// lightpath grid, this number is the pool of the port at the other end of the circuit.
    pub state: u64,
}

/// States of the ports of all ranks. With each state, the table stores a value of type `S`. This
/// value describes the use of the port, such as the time of its last use.
#[derive(Debug, Clone, Default)]
pub struct Ports<S> {
    /// Index of each pool in `first` and `others`: the number assigned to the pool.
    indices: PoolNumbering,
    /// State and use of the first port of each pool; `None` if the port is unused. Indexed by the
    /// number assigned to the pool.
    first: Vec<Option<(u64, S)>>,
    /// States and uses of the second, third and further ports of each pool, up to the last port
    /// that a circuit has used. Indexed by the number assigned to the pool.
    others: Vec<Vec<Option<(u64, S)>>>,
}

/// Port that [`Ports::take`] selects for a circuit.
#[derive(Debug, Clone, Copy)]
pub struct SelectedPort<S> {
    /// Index of the port within its pool.
    pub place: usize,
    /// State and use of the port before the circuit; `None` if the port is unused.
    pub before: Option<(u64, S)>,
    /// True if the port is already in the state that the circuit needs.
    pub holds: bool,
    /// Index of the pool in [`Ports::first`]; `None` if the pool has no entry yet.
    pool_index: Option<u32>,
}

impl<S: Copy> Ports<S> {
    /// Selects the port for a circuit, by the rules in the header of this module. `since` maps a
    /// value of type `S` to a key that increases with the time of the port's last use.
    #[inline]
    pub fn take<K: Ord>(&self, port: Port, since: impl Fn(S) -> K) -> SelectedPort<S> {
        let pool_index = self.indices.known(port.pool);
        let Some(at) = pool_index.map(|index| index as usize) else {
            return SelectedPort {
                place: 0,
                before: None,
                holds: false,
                pool_index,
            };
        };
        let taken = |place, before: Option<(u64, S)>| SelectedPort {
            place,
            before,
            holds: before.is_some_and(|(state, _)| state == port.state),
            pool_index,
        };
        if port.size == 1 {
            return taken(0, self.first[at]);
        }
        let others = self.others.get(at).map_or(&[][..], Vec::as_slice);
        let ports = || std::iter::once(&self.first[at]).chain(others).enumerate();
        let candidates = ports().map(|(place, &port)| taken(place, port));
        if let Some(held) = candidates.clone().find(|port| port.holds) {
            return held;
        }
        let next = 1 + others.len();
        let unused = ports().find(|(_, port)| port.is_none());
        let unused = unused.map(|(place, _)| place);
        if let Some(place) = unused.or((next < port.size as usize).then_some(next)) {
            return taken(place, None);
        }
        let oldest =
            candidates.min_by_key(|port| port.before.map(|(_, state_since)| since(state_since)));
        oldest.unwrap_or(taken(0, None))
    }

    /// Sets the port that [`Ports::take`] selected to the state that the circuit needs. `since`
    /// describes the use of the port.
    #[inline]
    pub fn set_taken(&mut self, port: Port, taken: &SelectedPort<S>, since: S) {
        match taken.pool_index {
            Some(index) => self.set_at(index, port.state, taken.place, since),
            None => self.set(port, taken.place, since),
        }
    }

    /// Sets the port at index `place` of a pool to the state `port.state`. `since` describes the
    /// use of the port.
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

    /// Marks the port at index `place` of a pool as unused.
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
        let mut numbers = PoolNumbering::default();
        let pools = [
            ARRAY_POOLS,
            3,
            ARRAY_POOLS - 1,
            3,
            u64::MAX,
            ARRAY_POOLS,
            0,
            u64::MAX,
        ];
        assert_eq!(
            pools.map(|pool| numbers.number(pool)),
            [0, 1, 2, 1, 3, 0, 4, 3]
        );
        assert_eq!(numbers.known(u64::MAX), Some(3));
        assert_eq!(
            (numbers.known(1), numbers.known(ARRAY_POOLS + 1)),
            (None, None)
        );
        assert_eq!(numbers.known(ARRAY_POOLS - 1), Some(2));
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
