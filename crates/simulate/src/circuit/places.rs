//! Which circuits have been met, each with a place.

use opticoll_base::hash::hash;
use opticoll_fabric::fabric::{Hop, Light};

/// A table that is emptied at once, however many circuits are in it.
#[derive(Default)]
pub(super) struct CircuitPlaces {
    /// Each circuit is at its hash, or in the first free bucket behind that. A power of two of them, at least twice as many as
    /// circuits.
    buckets: Vec<Bucket>,
    round: u32,
    circuits: Vec<KnownCircuit>,
}

#[derive(Clone, Copy, Default)]
struct Bucket {
    /// When it was filled: in an earlier round than this one, it is free again.
    round: u32,
    circuit: u32,
}

struct KnownCircuit {
    ends: u64,
    light: Light,
    place: u32,
}

const FEWEST_BUCKETS: usize = 64;

impl CircuitPlaces {
    pub(super) fn clear(&mut self) {
        self.circuits.clear();
        self.round = match self.round.checked_add(1) {
            Some(round) => round,
            None => {
                self.buckets.fill(Bucket::default());
                1
            }
        };
    }

    pub(super) fn is_empty(&self) -> bool {
        self.circuits.is_empty()
    }

    /// The place of a hop's circuit, where it was entered before; otherwise it is entered with the one given.
    pub(super) fn enter(&mut self, hop: &Hop, place: u32) -> Option<u32> {
        if self.circuits.len() * 2 >= self.buckets.len() {
            self.grow();
        }
        let (ends, light) = (u64::from(hop.from) << 32 | u64::from(hop.to), hop.light);
        let mut at = self.first_bucket(ends, light);
        loop {
            let Bucket { round, circuit } = self.buckets[at];
            if round != self.round {
                break;
            }
            let known = &self.circuits[circuit as usize];
            if (known.ends, known.light) == (ends, light) {
                return Some(known.place);
            }
            at = (at + 1) & (self.buckets.len() - 1);
        }
        self.buckets[at] = Bucket {
            round: self.round,
            circuit: self.circuits.len() as u32,
        };
        self.circuits.push(KnownCircuit { ends, light, place });
        None
    }

    fn first_bucket(&self, ends: u64, light: Light) -> usize {
        let light = u64::from(light.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash(ends ^ light) as usize & (self.buckets.len() - 1)
    }

    /// Makes room for twice as many.
    fn grow(&mut self) {
        let buckets = (self.buckets.len() * 2).max(FEWEST_BUCKETS);
        self.buckets.clear();
        self.buckets.resize(buckets, Bucket::default());
        self.round = 1;
        for circuit in 0..self.circuits.len() {
            let KnownCircuit { ends, light, .. } = self.circuits[circuit];
            let mut at = self.first_bucket(ends, light);
            while self.buckets[at].round == self.round {
                at = (at + 1) & (buckets - 1);
            }
            self.buckets[at] = Bucket {
                round: self.round,
                circuit: circuit as u32,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::CircuitPlaces;
    use opticoll_fabric::fabric::{Hop, Light};

    /// Against a table of the standard library, over circuits that come again within a round and after it.
    #[test]
    fn a_circuit_is_found_until_the_table_is_emptied() {
        let mut places = CircuitPlaces::default();
        let mut seed = 5u64;
        let mut random = |below: u64| {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            ((seed >> 33) % below) as u32
        };
        for round in [1, 7, 500, 3, 2000, 60, u64::from(u32::MAX)] {
            let mut expected = HashMap::new();
            if round == u64::from(u32::MAX) {
                places.round = u32::MAX;
            }
            places.clear();
            assert!(places.is_empty());
            for place in 0..round.min(700) as u32 {
                let hop = Hop {
                    from: random(12),
                    to: random(12),
                    light: Light(random(9)),
                    slot: 0,
                };
                let key = (hop.from, hop.to, hop.light);
                assert_eq!(places.enter(&hop, place), expected.get(&key).copied());
                expected.entry(key).or_insert(place);
            }
        }
    }
}
