//! Contents of chunks: multisets of contributions, each stored once.

use rustc_hash::FxHashMap;

/// Contribution: a rank, and a chunk of its input.
pub(super) type Contribution = (u32, u32);

/// Number of a multiset; 0 is the empty multiset.
pub(super) type Held = u32;

/// Maximum number of contributions in all multisets together: about 1.5 GB.
const MAX_CONTRIBUTIONS: usize = 1 << 27;

/// All multisets that occurred.
pub(super) struct Contents {
    known: Vec<Box<[Contribution]>>,
    numbers: FxHashMap<Box<[Contribution]>, Held>,
    sums: FxHashMap<(Held, Held), Held>,
    contributions: usize,
}

impl Contents {
    pub(super) fn new() -> Contents {
        Contents {
            known: vec![Box::default()],
            numbers: FxHashMap::from_iter([(Box::default(), 0)]),
            sums: FxHashMap::default(),
            contributions: 0,
        }
    }

    /// Returns whether the multisets exceed the memory limit.
    pub(super) fn are_too_many(&self) -> bool {
        self.contributions > MAX_CONTRIBUTIONS
    }

    /// Returns the sorted multiset with a number.
    pub(super) fn get(&self, held: Held) -> &[Contribution] {
        &self.known[held as usize]
    }

    /// Returns the number of a sorted multiset, which is stored if it is new.
    pub(super) fn number(&mut self, sorted: Vec<Contribution>) -> Held {
        let sorted = sorted.into_boxed_slice();
        if let Some(&number) = self.numbers.get(&sorted) {
            return number;
        }
        let number = self.known.len() as Held;
        self.contributions += sorted.len();
        self.known.push(sorted.clone());
        self.numbers.insert(sorted, number);
        number
    }

    /// Returns the number of the sum of two multisets.
    pub(super) fn sum(&mut self, one: Held, other: Held) -> Held {
        let key = (one.min(other), one.max(other));
        if let Some(&sum) = self.sums.get(&key) {
            return sum;
        }
        let mut members = [self.get(one), self.get(other)].concat();
        members.sort_unstable();
        let sum = self.number(members);
        self.sums.insert(key, sum);
        sum
    }

    /// Returns a contribution that two multisets have in common.
    pub(super) fn common(&self, one: Held, other: Held) -> Option<Contribution> {
        let (one, other) = (self.get(one), self.get(other));
        let (few, many) = if one.len() < other.len() {
            (one, other)
        } else {
            (other, one)
        };
        few.iter()
            .copied()
            .find(|contribution| many.binary_search(contribution).is_ok())
    }
}
