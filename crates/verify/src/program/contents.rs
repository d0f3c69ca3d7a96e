//! What chunks hold: multisets of contributions, each kept once.

use rustc_hash::FxHashMap;

/// A contribution: a rank, and a chunk of its input.
pub(super) type Contribution = (u32, u32);

/// What a chunk holds, by its number; 0 is nothing.
pub(super) type Held = u32;

/// Contributions in all multisets together, at most: some 1.5 GB.
const MOST_CONTRIBUTIONS: usize = 1 << 27;

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

    /// Whether there are more than fit into memory.
    pub(super) fn too_many(&self) -> bool {
        self.contributions > MOST_CONTRIBUTIONS
    }

    /// A sorted multiset by its number.
    pub(super) fn of(&self, held: Held) -> &[Contribution] {
        &self.known[held as usize]
    }

    /// The number of a sorted multiset.
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

    /// Both together.
    pub(super) fn sum(&mut self, one: Held, other: Held) -> Held {
        let key = (one.min(other), one.max(other));
        if let Some(&sum) = self.sums.get(&key) {
            return sum;
        }
        let mut all = [self.of(one), self.of(other)].concat();
        all.sort_unstable();
        let sum = self.number(all);
        self.sums.insert(key, sum);
        sum
    }

    /// The first contribution that two have in common.
    pub(super) fn common(&self, one: Held, other: Held) -> Option<Contribution> {
        let (one, other) = (self.of(one), self.of(other));
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
