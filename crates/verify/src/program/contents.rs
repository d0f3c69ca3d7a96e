//! Contents of chunks: multisets of contributions. Equal multisets are stored once.

use rustc_hash::FxHashMap;

/// Contribution: rank, and index of a chunk of the input of this rank.
pub(super) type Contribution = (u32, u32);

/// Index of a multiset; 0 is the empty multiset.
pub(super) type Multiset = u32;

/// Maximum number of contributions in all multisets together: about 1.5 GB.
const MAX_CONTRIBUTIONS: usize = 1 << 27;

/// All multisets that have occurred, and their indices.
pub(super) struct Contents {
    multisets: Vec<Box<[Contribution]>>,
    numbers: FxHashMap<Box<[Contribution]>, Multiset>,
    sums: FxHashMap<(Multiset, Multiset), Multiset>,
    contributions: usize,
}

impl Contents {
    pub(super) fn new() -> Contents {
        Contents {
            multisets: vec![Box::default()],
            numbers: FxHashMap::from_iter([(Box::default(), 0)]),
            sums: FxHashMap::default(),
            contributions: 0,
        }
    }

    pub(super) fn are_too_many(&self) -> bool {
        self.contributions > MAX_CONTRIBUTIONS
    }

    pub(super) fn get(&self, multiset: Multiset) -> &[Contribution] {
        &self.multisets[multiset as usize]
    }

    /// Returns the index of the multiset `sorted`. Stores the multiset if it has not occurred
    /// before.
    pub(super) fn number(&mut self, sorted: Vec<Contribution>) -> Multiset {
        let sorted = sorted.into_boxed_slice();
        if let Some(&number) = self.numbers.get(&sorted) {
            return number;
        }
        let number = self.multisets.len() as Multiset;
        self.contributions += sorted.len();
        self.multisets.push(sorted.clone());
        self.numbers.insert(sorted, number);
        number
    }

    pub(super) fn sum(&mut self, one: Multiset, other: Multiset) -> Multiset {
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

    /// Returns a contribution that both multisets contain.
    pub(super) fn common(&self, one: Multiset, other: Multiset) -> Option<Contribution> {
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
